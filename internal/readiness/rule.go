package readiness

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// This file says whether a child of any kind is available: for rollouts, and for users.

// Check asks for one condition of an object's status, as Metacontroller's statusChecks do.
type Check struct {
	// Type is the type of the condition, which must be there.
	Type string
	// Status and Reason are what the condition must have. Nil means anything.
	Status, Reason *string
}

// Rule is when objects of a kind are available.
type Rule struct {
	Checks []Check
	// Observed says that status.observedGeneration must have reached the generation, where there is one.
	Observed bool
	// MinReady is for how long an object must have passed its checks.
	MinReady time.Duration
}

// State is what a rule says of an object that exists and is not terminating.
type State struct {
	// Failed says, in Metacontroller's words, which check the object does not pass; empty if it passes all. Found is the
	// condition that it is about, nil if there is none.
	Failed string
	Found  *ObjectCondition
	// Stale says that the controller of the object has not observed its generation.
	Stale bool
	// Passed is for how long the object has passed its checks, and Left for how long it still must.
	Passed, Left time.Duration
}

// Available reports whether the object counts as available.
func (s State) Available() bool { return s.Failed == "" && !s.Stale && s.Left == 0 }

// Of applies the rule at a given time. changed is when the object was changed in place, zero if that is not known: many
// conditions do not change with the object, which would then seem to have passed its checks for long.
func (r Rule) Of(o *unstructured.Unstructured, changed, now time.Time) State {
	since := o.GetCreationTimestamp().Time
	if changed.After(since) {
		since = changed
	}
	for _, check := range r.Checks {
		found := FindCondition(o.Object, check.Type)
		if failed := check.failed(found); failed != "" {
			return State{Failed: failed, Found: found}
		}
		if found.Since.After(since) {
			since = found.Since
		}
	}
	if r.Observed && stale(o) {
		return State{Stale: true}
	}
	// If a clock is ahead of ours, the wait is still no longer than the whole period (kubernetes#77203).
	passed := max(0, now.Sub(since))
	return State{Passed: passed, Left: max(0, r.MinReady-passed)}
}

// failed says why a condition does not pass the check, empty if it does.
func (c Check) failed(found *ObjectCondition) string {
	switch {
	case found == nil:
		return fmt.Sprintf("required condition type missing: %q", c.Type)
	case c.Status != nil && found.Status != *c.Status:
		return fmt.Sprintf("%q condition status is %q (want %q)", c.Type, found.Status, *c.Status)
	case c.Reason != nil && found.Reason != *c.Reason:
		return fmt.Sprintf("%q condition reason is %q (want %q)", c.Type, found.Reason, *c.Reason)
	default:
		return ""
	}
}

// stale reports whether the controller of an object has not observed its generation, if it reports that at all.
func stale(o *unstructured.Unstructured) bool {
	observed, found, err := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	return err == nil && found && observed > 0 && observed < o.GetGeneration()
}

// ObjectCondition is a condition in the status of any object.
type ObjectCondition struct {
	Type, Status, Reason, Message string
	// Since is its last transition, zero if that is unknown.
	Since time.Time
	// Generation is the generation of the object that it describes, zero if that is unknown.
	Generation int64
}

// FindCondition returns the condition of a type in an object's status, nil if there is none or it is malformed.
func FindCondition(object map[string]any, kind string) *ObjectCondition {
	raw, _, _ := unstructured.NestedFieldNoCopy(object, "status", "conditions")
	list, _ := raw.([]any)
	for _, item := range list {
		if m, ok := item.(map[string]any); ok && m["type"] == kind {
			c := conditionIn(m)
			return &c
		}
	}
	return nil
}

// Conditions returns the conditions in the field conditions of a status, or of a part of it. Malformed conditions are
// left out.
func Conditions(status map[string]any) (out []ObjectCondition) {
	list, _ := status["conditions"].([]any)
	for _, item := range list {
		if m, ok := item.(map[string]any); ok {
			out = append(out, conditionIn(m))
		}
	}
	return out
}

func conditionIn(m map[string]any) ObjectCondition {
	text := func(key string) string { s, _ := m[key].(string); return s }
	since, _ := time.Parse(time.RFC3339, text("lastTransitionTime"))
	generation, _ := m["observedGeneration"].(int64)
	return ObjectCondition{
		Type: text("type"), Status: text("status"), Reason: text("reason"), Message: text("message"), Since: since,
		Generation: generation,
	}
}
