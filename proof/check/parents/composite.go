package parents

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/check/content"
	"github.com/cairn-dev/cairn/proof/kinds"
)

// This file tells the rules what a parent is whose children a hook describes. The hook of a test is a function of its
// parent, so that the rules can ask it themselves. A controller with children of several resources is as many kinds:
// one for each, of the same parents.

// Revisions of composite parents are Metacontroller's.
var compositeRevisions = schema.GroupVersionResource{Group: "metacontroller.k8s.io", Version: "v1alpha1", Resource: "controllerrevisions"}

// Composite is one child resource of one CompositeController.
type Composite struct {
	// Parent and Parents are the parents' kind and resource, Child and Children those of the children.
	Parent   schema.GroupVersionKind
	Parents  schema.GroupVersionResource
	Child    schema.GroupVersionKind
	Children schema.GroupVersionResource
	// Cluster is true if the parents are in no namespace, and their children are.
	Cluster bool
	// Answer is what the hook wants of all resources, in its order. It must not look at anything but the parent.
	Answer func(parent *unstructured.Unstructured) []*unstructured.Unstructured
	// Status says what the hook's status is with these children of the resource, nil if it does not count them.
	Status func(parent *unstructured.Unstructured, children []client.Object) map[string]any
	// Rolled is true if children belong to revisions.
	Rolled bool
	// FieldPaths are what a revision holds of a parent, Limit how many revisions are kept that no child belongs to.
	FieldPaths []string
	Limit      int
	// Budget is how many children may be unavailable in a rollout, of so many that are wanted. Nil is one, and none if
	// the resource is not rolled.
	Budget func(parent client.Object, wanted int) int
	// Partition is how many children, the last ones of the answer, keep their revision. Nil is none.
	Partition func(parent client.Object) int
	// Serves reports whether a child passes its status checks. Nil means that all do.
	Serves func(child client.Object) bool
	// Says is the type of the condition in which one of several controllers of the parents says whether its children are
	// updated, Also are those of the others. A controller that has its parents for itself says Updated, and Says is empty.
	Says string
	Also []string
	// Observed is the generation of a parent that a controller says to have seen. Nil is that in the status.
	Observed func(parent client.Object) int64
}

// Resources are those that the rules for these parents read.
func (c Composite) Resources() []check.Scope {
	return []check.Scope{{Resource: c.Parents}, {Resource: c.Children}, {Resource: compositeRevisions}}
}

// Kind describes the parents, with these children.
func (c Composite) Kind() check.Kind {
	k := check.Kind{
		Kind:      kinds.Kind{Parent: c.Parent, Parents: c.Parents, Children: c.Children},
		Names:     c.claims,
		Labelled:  func(client.Object) bool { return c.Rolled },
		Number:    func(revision client.Object) int64 { return content.Int64At(revision, "revision") },
		Snapshot:  func(revision client.Object) (string, error) { return content.Exact(content.PatchOf(revision)), nil },
		Target:    func(parent client.Object) string { return content.Exact(c.covered(content.AsTree(parent))) },
		StraysNow: c.straysNow,
		Units:     c.units,
		Ended:     func(client.Object) bool { return false },
		Available: func(child, _ client.Object, _ time.Time) bool { return c.Serves == nil || c.Serves(child) },
		Budget: func(parent client.Object, wanted int) check.Budget {
			switch {
			case !c.Rolled:
				return check.Budget{MaxUnavailable: wanted}
			case c.Budget == nil:
				return check.Budget{MaxUnavailable: 1}
			}
			return check.Budget{MaxUnavailable: c.Budget(parent, wanted)}
		},
		ObservedGeneration: c.observed,
		Complete:           c.complete,
		CompleteServes:     true,
		Implausible:        c.implausible,
		Miscounted:         c.miscounted,
		StatusRevisions:    func(client.Object) []string { return nil },
		Limit:              func(client.Object) int { return c.Limit },
		Most:               func(parent client.Object) int { return len(c.asked(parent, nil)) },
		Asked:              c.asked,
	}
	if c.Rolled {
		k.Revisions = compositeRevisions
	}
	if c.Says != "" {
		k.NamesOthers = c.namesOthers
	}
	return k
}

func (c Composite) observed(parent client.Object) int64 {
	if c.Observed != nil {
		return c.Observed(parent)
	}
	if c.Says != "" { // that of the status may be of what another controller has seen
		return content.Number(content.Condition(parent, c.Says)["observedGeneration"])
	}
	return content.Int64At(parent, "status", "observedGeneration")
}

// asked is the part of the hook's answer that is about this resource.
func (c Composite) asked(parent, revision client.Object) []client.Object {
	var out []client.Object
	for _, o := range c.Answer(c.restored(parent, revision)) {
		if o.GroupVersionKind().GroupKind() == c.Child.GroupKind() {
			out = append(out, o)
		}
	}
	return out
}

// restored is a parent as it was at a revision, or, without one, as it is: the fields that the revision covers are the
// revision's, and one that it does not have is gone.
func (c Composite) restored(parent, revision client.Object) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: content.AsTree(parent)}
	if revision == nil {
		return out
	}
	out, patch := out.DeepCopy(), content.PatchOf(revision)
	for _, path := range c.pathsOf(revision) {
		if v := content.At(patch, path); v != nil {
			_ = unstructured.SetNestedField(out.Object, v, path...) // an object that is none there is a wrong history
		} else {
			unstructured.RemoveNestedField(out.Object, path...)
		}
	}
	return out
}

// pathsOf are the field paths that a revision was taken with: its own, or those of the controller if it does not say.
func (c Composite) pathsOf(revision client.Object) [][]string {
	paths := c.FieldPaths
	if revision != nil {
		if own, ok, _ := unstructured.NestedStringSlice(content.AsTree(revision), "fieldPaths"); ok {
			paths = own
		}
	}
	out := make([][]string, len(paths))
	for i, path := range paths {
		out[i] = strings.Split(path, ".")
	}
	return out
}

// covered is the part of a parent that revisions hold, in their form.
func (c Composite) covered(parent map[string]any) map[string]any {
	out := map[string]any{}
	for _, path := range c.pathsOf(nil) {
		if v := content.At(parent, path); v != nil {
			_ = unstructured.SetNestedField(out, v, path...)
		}
	}
	return out
}

// claims reports whether a revision says that a child is its own. Revisions of parents that are in no namespace say in
// which one a child is.
func (c Composite) claims(child, revision client.Object) bool {
	name := child.GetName()
	if c.Cluster {
		name = child.GetNamespace() + "/" + name
	}
	return slices.Contains(claimedBy(revision, c.Child.GroupKind()), name)
}

// claimedBy are the names of the children of a kind that a revision says are its own.
func claimedBy(revision client.Object, kind schema.GroupKind) []string {
	var out []string
	list, _ := content.AsTree(revision)["children"].([]any)
	for _, item := range list {
		entry, _ := item.(map[string]any)
		if entry["apiGroup"] != kind.Group || entry["kind"] != kind.Kind {
			continue
		}
		names, _, _ := unstructured.NestedStringSlice(entry, "names")
		out = append(out, names...)
	}
	return out
}

func (c Composite) straysNow(child, parent client.Object) string {
	for _, wanted := range c.asked(parent, nil) {
		if wanted.GetName() == child.GetName() {
			return content.StraysFrom(child, wanted)
		}
	}
	return "" // it is to go, which is said of its unit
}

// units are the names that the hook wants, in its order, and then those that it does not want and that are there.
func (c Composite) units(s *check.State, parent client.Object) []check.Unit {
	there := map[string]client.Object{}
	for _, child := range s.Owned(c.Children, parent.GetUID()) {
		there[child.GetName()] = child
	}
	asked, keep := c.asked(parent, nil), 0
	if c.Partition != nil {
		keep = c.Partition(parent)
	}
	out := make([]check.Unit, 0, len(asked))
	for i, wanted := range asked {
		u := check.Unit{Name: wanted.GetName(), Wanted: true, MayStay: true, Guarded: i >= len(asked)-keep}
		if child := there[u.Name]; child != nil {
			u.Children = []client.Object{child}
		} else {
			in := cmp.Or(parent.GetNamespace(), wanted.GetNamespace())
			u.Taken = s.Get(check.Key{Resource: c.Children, Namespace: in, Name: u.Name}) != nil
		}
		delete(there, u.Name)
		out = append(out, u)
	}
	for _, child := range s.Owned(c.Children, parent.GetUID()) {
		if there[child.GetName()] != nil {
			out = append(out, check.Unit{Name: child.GetName(), Children: []client.Object{child}})
		}
	}
	return out
}

// implausible finds what no status can say.
func (c Composite) implausible(parent client.Object) []string {
	var found counters
	if s := content.Negative("", content.Floats(content.AsTree(parent)["status"])); len(s) > 0 {
		found.notef("%s", strings.Join(s, " and "))
	}
	observed := content.Int64At(parent, "status", "observedGeneration")
	found.generation(parent, observed)
	if says := c.disagree(parent, observed); says != "" {
		found.notef("Updated is True, and %s is not, for generation %d", says, observed)
	}
	return found.found
}

// miscounted compares the status with what the hook makes of the children that there are.
func (c Composite) miscounted(s *check.State, parent client.Object) []string {
	if c.Status == nil {
		return nil
	}
	said, _ := content.AsTree(parent)["status"].(map[string]any)
	counted := c.Status(c.restored(parent, nil), s.Owned(c.Children, parent.GetUID()))
	if differs := content.Missing("status", content.Floats(counted), content.Floats(said)); differs != "" {
		return []string{differs}
	}
	return nil
}
