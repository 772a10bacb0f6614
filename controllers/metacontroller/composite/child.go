package composite

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/history/metacontroller"
	"github.com/cairn-dev/cairn/internal/readiness"
)

// This file holds what a plan is made from: children, what is wanted of them, and how their kinds are updated.

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

// alone reports whether children of this kind are a set of their own, with a budget. The others of a parent are one set,
// of which one is updated at a time, in the order that the hook gave, whatever their kinds (Metacontroller).
func (s strategy) alone() bool {
	return s.maxUnavailable != nil || s.partition > 0 || s.ready.MinReady > 0 || s.paused
}

// holds reports whether some children may have to keep an older revision.
func (s strategy) holds() bool { return s.paused || s.partition > 0 }

// atOnce is the strategy without its rollout, for a parent that is going: there is no revision to keep to any more.
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

// facts is all that a plan is made from.
type facts struct {
	// newest is the revision that the parent asks for. answers holds what the hook wants, by the name of the revision; that
	// of the newest is always there, others if a plan without them asked for them.
	newest  string
	answers map[string]wanted
	// claimed says which revision each child belongs to, as the revisions have it. It is empty for a child that is held and
	// that no revision claims.
	claimed map[metacontroller.Child]string
	// lost says, by the names of revisions that nothing can be made from, what is wrong with them.
	lost map[string]string
	// observed are the parent's children, the ones that are going included.
	observed map[metacontroller.Child]*unstructured.Unstructured
	// strategies are those of the kinds that the controller declares.
	strategies map[schema.GroupKind]strategy
	// same reports whether a child is what is wanted of it, so that applying that again would change nothing.
	same func(observed, desired *unstructured.Unstructured) bool
	// untold returns why nobody can tell that, nil if somebody can. Nil stands for a world in which somebody always can.
	untold func(observed, desired *unstructured.Unstructured) error
	// changed is when children were changed in place.
	changed changes
	now     time.Time
}
