package history

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/revision"
)

// This file lets revisions say what they hold, so that the command line can read the history of a kind that nobody has
// told it of.

// Annotations of a revision that say how it is to be read.
const (
	// FieldPathsAnnotation lists the field paths that the revision holds, separated by commas: "spec.template".
	FieldPathsAnnotation = "cairn.dev/field-paths"
	// IgnoredPathsAnnotation lists fields inside of these that the revision does not hold, separated by commas:
	// "spec.replicas".
	IgnoredPathsAnnotation = "cairn.dev/ignored-paths"
	// SecretsAnnotation is "left-out" if the revision does not hold values that look like secrets: see
	// [revision.Target.WithoutSecrets].
	SecretsAnnotation = "cairn.dev/secrets" //nolint:gosec // a name
	// ChildrenAnnotation lists the kinds of the objects that are made from it, separated by commas: "v1/Pod",
	// "apps/v1/Deployment". It is absent if they are not known.
	ChildrenAnnotation = "cairn.dev/children"
)

// leftOut is the value of SecretsAnnotation.
const leftOut = "left-out"

// Description returns the annotations by which [Described] finds this format again. Give them to the revisions of a
// kind that package history does not know, in [Apps.Annotations].
func (f *Apps) Description() map[string]string {
	out := map[string]string{FieldPathsAnnotation: joined(f.Versioned.Paths())}
	if ignored := f.Versioned.Ignored(); len(ignored) > 0 {
		out[IgnoredPathsAnnotation] = joined(ignored)
	}
	if f.Versioned.Masked() {
		out[SecretsAnnotation] = leftOut
	}
	kinds := make([]string, 0, len(f.Children))
	for _, of := range f.Children {
		version, kind := of.ToAPIVersionAndKind()
		kinds = append(kinds, version+"/"+kind)
	}
	if len(kinds) > 0 {
		out[ChildrenAnnotation] = strings.Join(kinds, ",")
	}
	return out
}

func joined(paths []revision.Path) string {
	texts := make([]string, 0, len(paths))
	for _, path := range paths {
		texts = append(texts, path.String())
	}
	return strings.Join(texts, ",")
}

// pathsOf reads what joined has written.
func pathsOf(text string) ([]revision.Path, error) {
	var out []revision.Path
	for part := range strings.SplitSeq(text, ",") {
		path, err := revision.ParsePath(part)
		if err != nil {
			return nil, err
		}
		out = append(out, path)
	}
	return out, nil
}

// describedTarget is what a revision says that it holds.
func describedTarget(annotations map[string]string) (*revision.Target, error) {
	paths, err := pathsOf(annotations[FieldPathsAnnotation])
	if err != nil {
		return nil, err
	}
	target, err := revision.FieldPaths(nil, paths...)
	if err != nil {
		return nil, err
	}
	if annotations[SecretsAnnotation] == leftOut {
		target = target.WithoutSecrets()
	}
	text, ignores := annotations[IgnoredPathsAnnotation]
	if !ignores {
		return target, nil
	}
	ignored, err := pathsOf(text)
	if err != nil {
		return nil, err
	}
	return target.Without(ignored...)
}

// Described returns the format that a revision of a parent kind describes. ok is false if it has no description, or one
// that cannot be read; of the revision its metadata are enough. The format is for reading a log and for going back: its
// children are found by the labels of the revision.
func Described(o metav1.Object, parent schema.GroupVersionKind) (f *Apps, ok bool) {
	target, err := describedTarget(o.GetAnnotations())
	if err != nil {
		return nil, false
	}
	var children []schema.GroupVersionKind
	if text, known := o.GetAnnotations()[ChildrenAnnotation]; known {
		for one := range strings.SplitSeq(text, ",") {
			end := strings.LastIndex(one, "/")
			if end < 0 {
				return nil, false
			}
			children = append(children, schema.FromAPIVersionAndKind(one[:end], one[end+1:]))
		}
	}
	set := labels.Set{}
	for key, value := range o.GetLabels() {
		if key != appsv1.ControllerRevisionHashLabelKey {
			set[key] = value
		}
	}
	return &Apps{
		Parent:     parent,
		Versioned:  target,
		HashLabel:  appsv1.ControllerRevisionHashLabelKey,
		Children:   children,
		ChildLabel: appsv1.ControllerRevisionHashLabelKey,
		Labels:     func(client.Object) map[string]string { return set },
		SelectorOf: func(client.Object) (labels.Selector, error) {
			if len(set) == 0 {
				return nil, fmt.Errorf("revision %s has no labels by which its parent's children could be found", o.GetName())
			}
			return set.AsSelector(), nil
		},
		NewParent: func() client.Object {
			out := &unstructured.Unstructured{}
			out.SetGroupVersionKind(parent)
			return out
		},
	}, true
}
