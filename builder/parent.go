package builder

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/revision"
)

// This file is what a kind of parents is, whether package builder makes their children or somebody else does: which of their fields
// are recorded, how their revisions are found, and what a parent is like with these fields taken from a revision.

// parentKind is a kind of parents that was found to be sound.
type parentKind[P client.Object] struct {
	gvk      schema.GroupVersionKind
	resource schema.GroupResource
	target   *revision.Target
	// generational says that every edit of the versioned fields raises metadata.generation.
	generational bool
	// example is the empty parent that the author gave, and labelled returns the labels of what belongs to one, nil for the default.
	example  P
	labelled func(parent P) map[string]string
}

// describeParent checks what an author says of parents, and asks the API server about their kind. The errors are all that is wrong.
func describeParent[P client.Object](
	scheme *runtime.Scheme, mapper meta.RESTMapper, example P, versions []string, labelled func(P) map[string]string,
) (parentKind[P], []error) {
	k := parentKind[P]{example: example, labelled: labelled}
	var errs []error
	var err error
	if k.gvk, k.resource, err = served(scheme, mapper, example); err != nil {
		errs = append(errs, fmt.Errorf("field Parent: %w", err))
	}
	if k.target, k.generational, err = versioned(example, k.gvk.Group, versions); err != nil {
		errs = append(errs, err)
	}
	return k, errs
}

// versioned reads field paths of a kind in a group. generational says that every edit of them raises metadata.generation.
func versioned[P client.Object](example P, group string, versions []string) (target *revision.Target, generational bool, err error) {
	var normalize revision.Normalizer
	_, untyped := client.Object(example).(*unstructured.Unstructured)
	if !untyped {
		normalize = revision.Typed[P]()
	}
	// Kinds of Kubernetes itself need not have a generation, and ConfigMaps have none.
	generational = strings.Contains(group, ".")
	var paths []revision.Path
	for _, text := range versions {
		path, err := revision.ParsePath(text)
		if err == nil && !untyped {
			err = inType(reflect.TypeFor[P](), path)
		}
		if err != nil {
			return nil, false, fmt.Errorf("field Versions: %q: %w", text, err)
		}
		generational = generational && path[0] == "spec"
		paths = append(paths, path)
	}
	if target, err = revision.FieldPaths(normalize, paths...); err != nil {
		return nil, false, fmt.Errorf("field Versions: %w", err)
	}
	return target, generational, nil
}

// inServedSchema checks the versioned fields of parents without a Go type against the schema that the API server serves.
func (k *parentKind[P]) inServedSchema(mgr ctrl.Manager) error {
	if _, untyped := client.Object(k.example).(*unstructured.Unstructured); !untyped {
		return nil
	}
	return inServedSchema(mgr.GetConfig(), mgr.GetHTTPClient(), k.gvk, k.target.Paths())
}

// empty returns an empty parent.
func (k *parentKind[P]) empty() client.Object { return k.blank() }

func (k *parentKind[P]) blank() P {
	out := k.example.DeepCopyObject().(P) //nolint:forcetypeassert // the copy of a P
	v := reflect.ValueOf(out).Elem()
	if u, ok := client.Object(out).(*unstructured.Unstructured); ok {
		u.Object = map[string]any{}
		u.SetGroupVersionKind(k.gvk)
		return out
	}
	v.SetZero()
	return out
}

// labelsOf are the labels of what belongs to a parent. The selector is made of them, so that the two cannot differ.
func (k *parentKind[P]) labelsOf(parent client.Object) map[string]string {
	if k.labelled != nil {
		return k.labelled(parent.(P)) //nolint:forcetypeassert // the author's own kind
	}
	key := strings.ToLower(k.gvk.Kind)
	if k.gvk.Group != "" {
		key = k.gvk.Group + "/" + key
	}
	return map[string]string{key: revision.LabelValue(parent.GetName())}
}

func (k *parentKind[P]) selector(parent client.Object) (labels.Selector, error) {
	return labels.ValidatedSelectorFromSet(k.labelsOf(parent))
}

// format is how the revisions are stored. children is the kind that is made from them, empty if nobody says.
func (k *parentKind[P]) format(children schema.GroupVersionKind) history.Format {
	f := &history.Apps{
		Parent:       k.gvk,
		Versioned:    k.target,
		ByGeneration: k.generational,
		HashLabel:    HashLabel,
		SelectorOf:   k.selector,
		Children:     children,
		ChildLabel:   HashLabel,
		NewParent:    k.empty,
		Labels:       k.labelsOf,
	}
	description := f.Description()
	f.Annotations = func(client.Object) map[string]string { return description }
	return format{f}
}

// restore returns a parent with its versioned fields taken from a snapshot.
func (k *parentKind[P]) restore(parent P, from *revision.Snapshot) (P, error) {
	out := k.blank()
	tree, err := from.Restore(parent)
	if err != nil {
		return out, err
	}
	raw, err := json.Marshal(tree)
	if err != nil {
		return out, err
	}
	if u, ok := client.Object(out).(*unstructured.Unstructured); ok {
		return out, utiljson.Unmarshal(raw, &u.Object)
	}
	return out, json.Unmarshal(raw, out)
}
