package builder

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/readiness"
)

// This file says what an author tells of each kind of children.

// Rule is one kind of children. [Rolled] and [Applied] make one.
type Rule struct {
	kind    client.Object
	applied bool
	named   bool
	// checked is true if the availability of a child shows whether its revision works.
	checked  bool
	minReady func(parent client.Object) time.Duration
	ready    func(child client.Object) (since time.Time, why string)
}

// Rolled is a kind of children that belong to a revision, and are deleted and made again when the parent goes to
// another one. kind is an empty child.
//
// ready says since when a child is ready, or why it is not, in one clause that a person can read. It decides what
// counts against [Strategy.MaxUnavailable]. Nil is the condition Ready of a Pod; children of other kinds are then ready
// once they exist.
func Rolled[C client.Object](kind C, ready func(child C) (since time.Time, why string)) Rule {
	_, pod := client.Object(kind).(*corev1.Pod)
	r := Rule{kind: kind, ready: created, checked: pod || ready != nil}
	if pod {
		r.ready = podReady
	}
	if ready != nil {
		r.ready = func(child client.Object) (time.Time, string) {
			return ready(child.DeepCopyObject().(C))
		}
	}
	return r
}

// Applied is a kind of children that belong to no revision: they are what the newest one wants, at once, by server-side
// apply. What others own of them stays. kind is an empty child. A Service is one, or a ConfigMap that nobody rolls. One
// that is not wanted any more goes once no child of another kind is left whose revision wants it: what is held may need
// it.
func Applied(kind client.Object) Rule { return Rule{kind: kind, applied: true} }

// MinReady returns the rule with a time that children must have been ready for until they count as available
// (minReadySeconds).
func (r Rule) MinReady(of func(parent client.Object) time.Duration) Rule {
	r.minReady = of
	return r
}

// NamedByRevision returns the rule of a kind whose children have the hash of their revision in their names, so that two
// of them can be at one place: [Strategy.MaxSurge] needs it. The author returns the name of the place, "web-0"; the
// child is called "web-0-HASH", and its annotation [PlaceAnnotation] says "web-0". A place and hash of more than 253
// characters are cut, and told apart by a hash of the place. A Pod's host name is its name, of which kubelets cut what
// is beyond 63 characters: an author whose pods are known by their places sets spec.hostname.
//
// Children that were created before a rule was named by revision stay at the place of their name until they are
// replaced.
func (r Rule) NamedByRevision() Rule {
	r.named = true
	return r
}

// created is a child that has nothing to wait for.
func created(child client.Object) (time.Time, string) { return child.GetCreationTimestamp().Time, "" }

// podReady reads the condition Ready.
func podReady(child client.Object) (time.Time, string) {
	pod := child.(*corev1.Pod)
	switch c := readiness.Condition(pod); {
	case c == nil:
		return time.Time{}, "it has not started yet"
	case c.Status != corev1.ConditionTrue:
		return time.Time{}, unready(pod, c)
	default:
		return c.LastTransitionTime.Time, ""
	}
}

// unready says why a pod is not ready. A container that waits says more than the condition, of which a kubelet says
// only which containers it is about.
func unready(pod *corev1.Pod, ready *corev1.PodCondition) string {
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if c.State.Waiting != nil && c.State.Waiting.Reason != "" {
			return fmt.Sprintf("container %s: %s", c.Name, c.State.Waiting.Reason)
		}
	}
	return cmp.Or(ready.Message, "it is not ready")
}
