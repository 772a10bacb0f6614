package composite

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/history/metacontroller"
	"github.com/cairn-dev/cairn/internal/metacontroller/children"
	"github.com/cairn-dev/cairn/internal/readiness"
)

// This file says how a kind of children is updated, what the hook wants, and how children are named.

// strategy is how one kind of child is updated. Its zero value is Metacontroller's default, OnDelete.
type strategy struct {
	method v1alpha1.ChildUpdateMethod
	// maxUnavailable is how many children of the kind may be unavailable at once, as a number or as a share of those that
	// are wanted, rounded down, but never to none. Nil is one.
	maxUnavailable *intstr.IntOrString
	// partition is how many children, the last ones in the order of the rollout, keep their revision.
	partition int
	// ready is when a child is available.
	ready readiness.Rule
	// paused keeps every child at its revision.
	paused bool
}

// strategyOf reads the strategy of a child resource, which may be absent.
func strategyOf(s *v1alpha1.ChildUpdateStrategy) strategy {
	out := strategy{method: s.EffectiveMethod()}
	if s == nil {
		return out
	}
	out.ready, out.maxUnavailable = metacontroller.ReadyRule(s), s.MaxUnavailable
	if s.Partition != nil {
		out.partition = int(*s.Partition)
	}
	out.paused = s.Paused != nil && *s.Paused
	return out
}

// inPlace reports whether a child is changed and not replaced.
func (s strategy) inPlace() bool {
	return s.method == v1alpha1.ChildUpdateInPlace || s.method == v1alpha1.ChildUpdateRollingInPlace
}

// alone reports whether children of this kind have a budget of their own. The others of a parent share one, of which
// one child is updated at a time, in the order that the hook gave, whatever their kinds (Metacontroller).
func (s strategy) alone() bool {
	return s.maxUnavailable != nil || s.partition > 0 || s.ready.MinReady > 0 || s.paused
}

// holds reports whether some children may have to keep an older revision.
func (s strategy) holds() bool { return s.paused || s.partition > 0 }

// atOnce is the strategy without its rollout, for a terminating parent: there is no revision to keep any more.
func (s strategy) atOnce() strategy {
	switch s.method {
	case v1alpha1.ChildUpdateRollingRecreate:
		return strategy{method: v1alpha1.ChildUpdateRecreate}
	case v1alpha1.ChildUpdateRollingInPlace:
		return strategy{method: v1alpha1.ChildUpdateInPlace}
	default:
		return s
	}
}

// wanted is what the hook answered for one revision of the parent.
type wanted struct {
	// order is that of the answer.
	order   []metacontroller.Child
	objects map[metacontroller.Child]*unstructured.Unstructured
}

// names returns what is wanted without the objects.
func (w wanted) names() wanted {
	out := wanted{objects: make(map[metacontroller.Child]*unstructured.Unstructured, len(w.order))}
	for _, key := range w.order {
		out.objects[key] = nil
	}
	return out
}

// child names an object as revisions and plans do.
func child(parent, o *unstructured.Unstructured) metacontroller.Child {
	c := metacontroller.Child{GroupKind: o.GroupVersionKind().GroupKind(), Name: o.GetName()}
	if parent.GetNamespace() == "" {
		c.Namespace = o.GetNamespace()
	}
	return c
}

// namesFor are those that a parent wants for its children.
func namesFor(parent *unstructured.Unstructured) children.Names {
	return children.Names{
		Parent:   parent,
		Ours:     func(client.Object) bool { return true },
		Describe: func(o *unstructured.Unstructured) string { return child(parent, o).String() },
		Orphan:   "the selector of the parent does not match its labels",
	}
}
