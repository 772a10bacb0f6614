package check

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// This file says what went wrong so that a person can see why.

// trailLength is how many events a violation shows.
const trailLength = 8

// Violation is one broken promise.
type Violation struct {
	// Invariant is its name in the design: H2, R1.
	Invariant string
	Object    Key
	// RV is the resource version at which it is seen.
	RV uint64
	// Sentence says what is wrong.
	Sentence string
	// Trail are the last events of the object and its parent up to there, oldest first.
	Trail []Event
	// Replay is how to make the history again, empty if nobody said.
	Replay string
}

// String is the whole story, for a test's output.
func (v Violation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s at %d: %s: %s", v.Invariant, v.RV, v.Object, v.Sentence)
	for _, e := range v.Trail {
		fmt.Fprintf(&b, "\n    %s", e)
	}
	if v.Replay != "" {
		fmt.Fprintf(&b, "\n    again: %s", v.Replay)
	}
	return b.String()
}

// trail returns the last events up to rv of an object, its parent, and the pods it shares the parent with.
func trail(h *History, k Key, parent types.UID, rv uint64) []Event {
	var out []Event
	for _, e := range h.Events {
		if e.RV > rv {
			break
		}
		o := e.Object()
		if e.Key == k || parent != "" && (o.GetUID() == parent || ownerUID(o) == parent) {
			out = append(out, e)
		}
	}
	return out[max(0, len(out)-trailLength):]
}
