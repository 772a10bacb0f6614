package composite

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cairn-dev/cairn/rollback"
)

// This file makes the parent's status from the hook's answer and the plan. It is pure.

// conditionUpdated is the type of the condition that says how far the rollout is (Metacontroller).
const conditionUpdated = "Updated"

// voteType is the beginning of the type of the condition in which one of several controllers of a parent says whether
// its children are updated. Its name follows.
const voteType = "cairn.dev/Updated."

func isVote(conditionType string) bool { return strings.HasPrefix(conditionType, voteType) }

// ownStatus returns the status that a hook wants a parent to have. The status of a built-in kind has another writer as
// well, so fields that the hook does not name stay; otherwise the hook's status replaces all (Metacontroller).
func ownStatus(parent *unstructured.Unstructured, said map[string]any, builtin bool) map[string]any {
	if !builtin {
		return said
	}
	current, _, _ := unstructured.NestedFieldNoCopy(parent.Object, "status")
	m, _ := current.(map[string]any)
	out := hookPart(m)
	if out == nil {
		out = map[string]any{}
	}
	maps.Copy(out, said)
	return out
}

// condition is what a status says of a rollout.
type condition struct {
	status, reason, message string
	// stalled says whether it has exceeded its deadline, nil for a parent without one; good which revisions are known to
	// be good, nil for none.
	stalled, good *metav1.Condition
}

// statusOf returns the status that a parent is to have: that of the hook, which may be nil, with the generation that
// was acted on, and with the conditions of a rollout, nil for parents that have no revisions. said is not changed.
//
// As in Metacontroller conditions have no times: schemas of parents need not know them, and a dropped field would be
// written again in every pass.
func statusOf(said map[string]any, generation int64, rolled *condition) map[string]any {
	out := maps.Clone(runtime.DeepCopyJSON(said))
	if out == nil {
		out = map[string]any{}
	}
	out["observedGeneration"] = generation
	if rolled == nil {
		return out
	}
	conditions, _ := out["conditions"].([]any) // a value that is not a list is the hook's error; the conditions come first
	conditions = withCondition(conditions, conditionOf(conditionUpdated, rolled.status, rolled.reason, rolled.message))
	conditions = slices.DeleteFunc(conditions, isOurs)
	theirs := slices.ContainsFunc(conditions, func(c any) bool { return typeOf(c) == rollback.Stalled })
	for _, c := range []*metav1.Condition{rolled.good, rolled.stalled} {
		if c != nil && (c.Type != rollback.Stalled || !theirs || c.Status == metav1.ConditionTrue) {
			conditions = withCondition(conditions, conditionOf(c.Type, string(c.Status), c.Reason, c.Message))
		}
	}
	out["conditions"] = conditions
	return out
}

func conditionOf(kind, status, reason, message string) map[string]any {
	return map[string]any{"type": kind, "status": status, "reason": reason, "message": message}
}

// withCondition puts a condition in the place of the one of its type, or at the end.
func withCondition(conditions []any, c map[string]any) []any {
	if i := slices.IndexFunc(conditions, func(o any) bool { return typeOf(o) == c["type"] }); i >= 0 {
		conditions[i] = c
		return conditions
	}
	return append(conditions, c)
}

func typeOf(condition any) string {
	m, _ := condition.(map[string]any)
	return stringOf(m, "type")
}

// hookPart is the part of a status that comes from a hook: without our conditions and the generation.
func hookPart(status map[string]any) map[string]any {
	out := maps.Clone(status)
	delete(out, "observedGeneration")
	conditions, ok := out["conditions"].([]any)
	if !ok {
		return out
	}
	rest := []any{}
	for _, item := range conditions {
		if t := typeOf(item); t != conditionUpdated && !isVote(t) && !isOurs(item) {
			rest = append(rest, item)
		}
	}
	if out["conditions"] = rest; len(rest) == 0 {
		delete(out, "conditions")
	}
	return out
}

// isOurs reports whether a condition is package rollback's: a hook may have one of that type.
func isOurs(item any) bool {
	c, _ := item.(map[string]any)
	return rollback.IsOurs(typeOf(c), stringOf(c, "reason"), stringOf(c, "message"))
}

// updatedIs returns the status of the condition Updated that a parent has, empty if it has none.
func updatedIs(parent *unstructured.Unstructured) string {
	status, _ := parent.Object["status"].(map[string]any)
	return isUpdated(status)
}

// isUpdated returns the status of the condition Updated in a status, empty if it has none.
func isUpdated(status map[string]any) string {
	list, _ := status["conditions"].([]any)
	for _, item := range list {
		if m, ok := item.(map[string]any); ok && m["type"] == conditionUpdated {
			return stringOf(m, "status")
		}
	}
	return ""
}

func stringOf(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}
