package composite

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/history/metacontroller"
)

// This file says whether a child serves: the status checks of its kind, and for how long it has passed them. It is pure.

// health is what a rollout knows of a child.
type health struct {
	// failing says what the child lacks, in Metacontroller's words; empty if it passes every check.
	failing string
	// left is how long it still has to pass them; zero if that is over, or if it fails.
	left time.Duration
}

// available reports whether the child counts.
func (h health) available() bool { return h.failing == "" && h.left == 0 }

// changes are when children were changed in place, by UID, as far as this process remembers. Conditions do not tell: many
// do not turn when a child is changed, and then a child would have passed its checks for long at once.
type changes map[types.UID]time.Time

// note remembers what a plan changes, and forgets all of it once the rollout is over.
func (c changes) note(p *plan, now time.Time) {
	if p.complete() {
		clear(c)
	}
	for _, u := range p.updates {
		c[u.observed.GetUID()] = now
	}
}

// healthOf looks at one child that is there and is not going. changed is when it was changed in place, zero if that is not
// known.
func healthOf(key metacontroller.Child, child *unstructured.Unstructured, s strategy, changed, now time.Time) health {
	var passed []map[string]any
	for _, check := range s.checks {
		condition, failing := findCondition(child, check)
		if failing != "" {
			return health{failing: fmt.Sprintf("child %s failed status check: %s", key, failing)}
		}
		passed = append(passed, condition)
	}
	if s.method == v1alpha1.ChildUpdateRollingInPlace && lags(child) {
		return health{failing: fmt.Sprintf("child %s with RollingInPlace update strategy hasn't observed latest spec", key)}
	}
	if s.minReady == 0 {
		return health{}
	}
	since := child.GetCreationTimestamp().Time
	if changed.After(since) {
		since = changed
	}
	for _, condition := range passed {
		if at, err := time.Parse(time.RFC3339, text(condition, "lastTransitionTime")); err == nil && at.After(since) {
			since = at
		}
	}
	// A clock that is ahead of ours makes it no longer than the whole period (kubernetes#77203).
	if left := since.Add(s.minReady).Sub(now); left > 0 {
		return health{left: min(left, s.minReady)}
	}
	return health{}
}

// findCondition returns the condition that a check asks for, or what is wrong.
func findCondition(child *unstructured.Unstructured, c v1alpha1.StatusConditionCheck) (condition map[string]any, failing string) {
	conditions, _, _ := unstructured.NestedFieldNoCopy(child.Object, "status", "conditions")
	list, _ := conditions.([]any)
	for _, item := range list {
		m, ok := item.(map[string]any)
		if !ok || text(m, "type") != c.Type {
			continue
		}
		if got := text(m, "status"); c.Status != nil && got != *c.Status {
			return nil, fmt.Sprintf("%q condition status is %q (want %q)", c.Type, got, *c.Status)
		}
		if got := text(m, "reason"); c.Reason != nil && got != *c.Reason {
			return nil, fmt.Sprintf("%q condition reason is %q (want %q)", c.Type, got, *c.Reason)
		}
		return m, ""
	}
	return nil, fmt.Sprintf("required condition type missing: %q", c.Type)
}

// lags reports whether whoever runs the child has not looked at its spec yet. Kinds that do not say are believed.
func lags(child *unstructured.Unstructured) bool {
	observed, found, err := unstructured.NestedInt64(child.Object, "status", "observedGeneration")
	return err == nil && found && observed > 0 && observed < child.GetGeneration()
}

func text(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}
