package inspect

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
)

// This file says whether a child serves, as those who roll it out see it: it exists, is not going, and has passed the checks
// of its kind for long enough. The time is an argument.

// String returns a child as conditions and events name it.
func (m member) String() string {
	if m.Namespace == "" {
		return m.Kind + " " + m.Name
	}
	return m.Kind + " " + m.Namespace + "/" + m.Name
}

// lacks says why a child does not serve, empty if it does.
func (m member) lacks(now time.Time) string {
	switch {
	case m.object == nil:
		return "it does not exist"
	case m.object.GetDeletionTimestamp() != nil:
		return "it is going"
	}
	since := m.object.GetCreationTimestamp().Time
	for _, check := range m.checks {
		c, why := checked(m.object.Object, check)
		if why != "" {
			return why
		}
		if c.since.After(since) {
			since = c.since
		}
	}
	if m.inPlace && lags(m.object) {
		return "whoever runs it has not observed its latest spec"
	}
	// A clock that is ahead of ours makes it no longer than the whole period.
	if passed := max(0, now.Sub(since)); passed < m.minReady {
		return fmt.Sprintf("it has passed its checks for %s, and must for %s", passed.Truncate(time.Second), m.minReady)
	}
	return ""
}

// lags reports whether whoever runs a child has not looked at its spec yet. Kinds that do not say are believed.
func lags(o *unstructured.Unstructured) bool {
	observed, found, err := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	return err == nil && found && observed > 0 && observed < o.GetGeneration()
}

// checked returns the condition that a check asks for, or why an object fails it: in Metacontroller's words, and then in
// those of the object.
func checked(object map[string]any, check v1alpha1.StatusConditionCheck) (c condition, why string) {
	c, ok := findCondition(object, check.Type)
	switch {
	case !ok:
		return c, fmt.Sprintf("required condition type missing: %q", check.Type)
	case check.Status != nil && c.Status != *check.Status:
		why = fmt.Sprintf("%q condition status is %q (want %q)", check.Type, c.Status, *check.Status)
		if c.Reason != "" {
			why += ", " + c.Reason
		}
	case check.Reason != nil && c.Reason != *check.Reason:
		why = fmt.Sprintf("%q condition reason is %q (want %q)", check.Type, c.Reason, *check.Reason)
	default:
		return c, ""
	}
	if c.Message != "" {
		why += ": " + c.Message
	}
	return c, why
}

// condition is a condition of any object.
type condition struct {
	Condition

	// since is its last transition, zero if it does not say.
	since time.Time
}

func findCondition(object map[string]any, kind string) (condition, bool) {
	raw, _, _ := unstructured.NestedFieldNoCopy(object, "status", "conditions")
	list, _ := raw.([]any)
	for _, item := range list {
		m, ok := item.(map[string]any)
		if !ok || m["type"] != kind {
			continue
		}
		text := func(key string) string { s, _ := m[key].(string); return s }
		since, _ := time.Parse(time.RFC3339, text("lastTransitionTime"))
		return condition{
			Condition: Condition{Type: kind, Status: text("status"), Reason: text("reason"), Message: text("message")}, since: since,
		}, true
	}
	return condition{}, false
}
