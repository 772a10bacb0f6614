package env

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/inspect"
	"github.com/cairn-dev/cairn/inspect/object"
)

// This file finds the objects that a verb is about, as kubectl does: by name, by -l, by -A, by -f.

// Selection are the flags by which a verb that reads finds several objects.
type Selection struct {
	selector  string
	all       bool
	filenames []string
	recursive bool
}

// AddSelection adds the flags.
func AddSelection(flags *pflag.FlagSet) *Selection {
	s := &Selection{}
	flags.StringVarP(&s.selector, "selector", "l", "", "label selector of the objects of a TYPE: app=web,tier!=db")
	flags.BoolVarP(&s.all, "all-namespaces", "A", false, "the objects of a TYPE in all namespaces")
	files := genericclioptions.FileNameFlags{
		Usage: "file, directory or URL with manifests of the objects, - for the standard input", Filenames: &s.filenames, Recursive: &s.recursive,
	}
	files.AddFlags(flags)
	flags.Lookup("recursive").Usage = "with -f: also the directories in a directory"
	return s
}

// Any reports whether one of the flags is given: then arguments need not name an object.
func (s *Selection) Any() bool { return s.selector != "" || s.all || s.FromFiles() }

// FromFiles reports whether -f is given: then arguments name no object.
func (s *Selection) FromFiles() bool { return len(s.filenames) > 0 }

// Args checks that args name objects: TYPE/NAME ..., TYPE NAME ..., or TYPE for all of a namespace.
func (s *Selection) Args(args []string) error {
	named := len(args) > 1 || len(args) == 1 && strings.Contains(args[0], "/")
	switch {
	case s.FromFiles() && (len(args) > 0 || s.selector != "" || s.all):
		return Usagef("-f says which objects, so that no others can be named or selected")
	case s.FromFiles():
		return nil
	case len(args) == 0:
		return Usagef("no object is named; name one as TYPE/NAME or TYPE NAME, for instance ds/web, or all of a TYPE")
	case named && (s.selector != "" || s.all):
		return Usagef("-l and -A select among the objects of a TYPE, so that none can be named")
	}
	return nil
}

// one reports whether the command line names one object: then machine output is that object's, and else a list.
func (s *Selection) one(args []string) bool { return !s.Any() && OneObject(args) == nil }

// Found are the objects that a verb is about.
type Found struct {
	*inspect.Inspector

	Objects []client.Object
	// One says that the command line names one object, and is not about as many as there are.
	One bool
	// Everywhere says that they are of several namespaces.
	Everywhere bool

	unread error // why there are not all
}

// Select finds the objects that args and flags mean. There may be none where a TYPE is given. One that cannot be read
// is no error as long as another can: [Found.Each] says so.
func (e *Env) Select(args []string, s *Selection) (*Found, error) {
	inspector, objects, err := e.Objects(args, s)
	if err != nil && len(objects) == 0 {
		return nil, err
	}
	f := &Found{Inspector: inspector, Objects: objects, One: s.one(args), Everywhere: s.all, unread: err}
	if namespace, _, err := e.Cluster.ToRawKubeConfigLoader().Namespace(); len(objects) == 0 && err == nil {
		where := " in " + namespace + " namespace"
		if s.all {
			where = ""
		}
		fmt.Fprintf(e.ErrOut, "No resources found%s.\n", where) // as kubectl says it
	}
	return f, nil
}

// Each asks about every object; what is listed for one is not listed anew for the next. What fails for one does not
// keep the others from being asked.
func (f *Found) Each(ask func(*inspect.Inspector, client.Object) error) error {
	i := f.Inspector
	if !f.One {
		i = i.Once()
	}
	errs := []error{f.unread}
	for _, o := range f.Objects {
		if err := ask(i, o); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Title is what an object is called above what is said of it: with its namespace where they are of several.
func (f *Found) Title(p object.Parent) string {
	if !f.Everywhere || p.Namespace == "" {
		return p.String()
	}
	return p.String() + " -n " + p.Namespace
}

// Warnings are sentences about an object: they name it where there are several.
func (f *Found) Warnings(about object.Parent, sentences []string) []string {
	if f.One {
		return sentences
	}
	out := make([]string, 0, len(sentences))
	for _, s := range sentences {
		out = append(out, f.Title(about)+": "+s)
	}
	return out
}

// Open finds the one object that args name.
func (e *Env) Open(args []string) (*inspect.Inspector, client.Object, error) {
	inspector, objects, err := e.Objects(args, &Selection{})
	if err != nil {
		return nil, nil, err
	}
	if len(objects) != 1 {
		return nil, nil, &UsageError{Err: fmt.Errorf("name exactly one object, not %d", len(objects))}
	}
	return inspector, objects[0], nil
}

// objects asks the API server for the objects that args and s select.
func (e *Env) objects(args []string, s *Selection) (*inspect.Inspector, []client.Object, error) {
	inspector, namespace, err := e.connect() // says what is missing better than the builder does
	if err != nil {
		return nil, nil, err
	}
	mapper, err := e.Cluster.ToRESTMapper()
	if err != nil {
		return nil, nil, err
	}
	infos, err := object.Fresh(mapper, func() ([]*resource.Info, error) { return e.infos(args, s, namespace) })
	out := make([]client.Object, 0, len(infos))
	for _, info := range infos {
		o, ok := info.Object.(client.Object)
		if !ok {
			return nil, nil, fmt.Errorf("the API server answered with a %T", info.Object)
		}
		out = append(out, o)
	}
	return inspector, out, err
}

func (e *Env) infos(args []string, s *Selection, namespace string) ([]*resource.Info, error) {
	_, enforce, _ := e.Cluster.ToRawKubeConfigLoader().Namespace() // connect has asked
	return resource.NewBuilder(e.Cluster).
		Unstructured().
		NamespaceParam(namespace).DefaultNamespace().AllNamespaces(s.all).
		FilenameParam(enforce && !s.all, &resource.FilenameOptions{Filenames: s.filenames, Recursive: s.recursive}).
		LabelSelectorParam(s.selector).
		ResourceTypeOrNameArgs(true, args...).
		ContinueOnError().
		Flatten().
		Latest().
		Do().Infos()
}
