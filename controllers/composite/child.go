package composite

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// This file holds what a plan is made from: children, what is wanted of them, and how their kinds are updated.

// Method says how children of a kind become what the hook wants (CompositeController, updateStrategy.method).
type Method string

// The methods of Metacontroller.
const (
	OnDelete        Method = "OnDelete"
	Recreate        Method = "Recreate"
	InPlace         Method = "InPlace"
	RollingRecreate Method = "RollingRecreate"
	RollingInPlace  Method = "RollingInPlace"
)

// rolling reports whether children of the kind belong to revisions.
func (m Method) rolling() bool { return m == RollingRecreate || m == RollingInPlace }

// inPlace reports whether a child is changed and not replaced.
func (m Method) inPlace() bool { return m == InPlace || m == RollingInPlace }

// Key names one child of a parent. The version of its kind is no part of it: two versions show one object.
type Key struct {
	schema.GroupKind

	// Namespace is empty for a child that has none.
	Namespace, Name string
}

// String is the key as conditions and events show it: Pod web-0, and Pod team/web-0 if the parent is in no namespace.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Kind + " " + k.Name
	}
	return k.Kind + " " + k.Namespace + "/" + k.Name
}

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// ConditionCheck is one condition that a child must have before the rollout goes on (updateStrategy.statusChecks).
type ConditionCheck struct {
	Type string
	// Status and Reason are looked at if they are not nil.
	Status, Reason *string
}

// Strategy is how one kind of child is updated. Its zero value is Metacontroller's default, OnDelete.
type Strategy struct {
	Method Method
	Checks []ConditionCheck
	// MaxUnavailable is how many children of the kind may be unavailable at once, as a number or as a share of those that
	// are wanted, rounded down, but never to none. Nil is one.
	MaxUnavailable *intstr.IntOrString
	// Partition is how many children, the last ones in the order of the rollout, keep their revision.
	Partition int
	// MinReady is how long a child must have passed its checks before it counts as available.
	MinReady time.Duration
	// Paused keeps every child at its revision.
	Paused bool
}

// alone reports whether children of this kind are a set of their own, with a budget. The others of a parent are one set,
// of which one is updated at a time, in the order that the hook gave, whatever their kinds (Metacontroller).
func (s Strategy) alone() bool {
	return s.MaxUnavailable != nil || s.Partition > 0 || s.MinReady > 0 || s.Paused
}

// wanted is what the hook answered for one revision of the parent.
type wanted struct {
	// order is that of the answer.
	order   []Key
	objects map[Key]*unstructured.Unstructured
}

// facts is all that a plan is made from.
type facts struct {
	// newest is the revision that the parent asks for. answers holds what the hook wants, by the name of the revision; that
	// of the newest is always there.
	newest  string
	answers map[string]wanted
	// claimed says which revision each child belongs to, as the revisions have it.
	claimed map[Key]string
	// observed are the parent's children, the ones that are going included.
	observed map[Key]*unstructured.Unstructured
	// strategies are those of the kinds that the controller declares.
	strategies map[schema.GroupKind]Strategy
	// same reports whether a child is what is wanted of it, so that applying that again would change nothing.
	same func(observed, desired *unstructured.Unstructured) bool
	now  time.Time
}
