package composite

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// This file makes the parent's status of what the hook said and what the plan found out. It is pure.

// conditionUpdated is the type of the condition that says how far the rollout is (Metacontroller).
const conditionUpdated = "Updated"

// ownStatus returns the status that a hook wants a parent to have. That of a parent whose kind is built in has another
// author as well, so that what the hook does not name stays; otherwise the hook's word is all there is (Metacontroller).
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

// statusOf returns the status that a parent is to have: that of the hook, which may be nil, with the generation that was
// acted on, and with the condition Updated for parents that have revisions. said is not changed.
//
// As in Metacontroller the condition has no times: schemas of parents need not know them, and what a schema drops would
// be written again in every pass.
func statusOf(said map[string]any, generation int64, rolled bool, status, reason, message string) map[string]any {
	out := maps.Clone(runtime.DeepCopyJSON(said))
	if out == nil {
		out = map[string]any{}
	}
	out["observedGeneration"] = generation
	if !rolled {
		return out
	}
	updated := map[string]any{"type": conditionUpdated, "status": status, "reason": reason, "message": message}
	conditions, _ := out["conditions"].([]any) // what is no list the hook has to mend; the condition comes first
	for i, item := range conditions {
		if m, ok := item.(map[string]any); ok && m["type"] == conditionUpdated {
			conditions[i] = updated
			out["conditions"] = conditions
			return out
		}
	}
	out["conditions"] = append(conditions, updated)
	return out
}

// sharing says with whom a controller shares a parent, and with it the status.
type sharing struct {
	name   string
	others []string
}

// own returns the status that a hook wants where other hooks have their say as well: what it does not name stays, and so do
// conditions of types that it does not name.
func (s sharing) own(parent *unstructured.Unstructured, said map[string]any) map[string]any {
	out := ownStatus(parent, said, true)
	theirs, _, _ := unstructured.NestedSlice(parent.Object, "status", "conditions")
	ours, ok := said["conditions"].([]any)
	if _, given := said["conditions"]; given && !ok {
		return out // the hook has to mend it
	}
	merged := slices.Clone(theirs) // in their order: what we write, they write
	for _, c := range ours {
		if i := slices.IndexFunc(merged, func(o any) bool { return typeOf(o) == typeOf(c) }); i >= 0 {
			merged[i] = c
		} else {
			merged = append(merged, c)
		}
	}
	if out["conditions"] = merged; len(merged) == 0 {
		delete(out, "conditions")
	}
	return out
}

func typeOf(condition any) string {
	m, _ := condition.(map[string]any)
	return text(m, "type")
}

// updated returns what the condition Updated of a parent is to say, of which each controller has its own opinion. That one
// is not updated counts more than that another one is; of two that are not, the first one by name speaks. So one of them
// writes, and the others leave it.
func (s sharing) updated(parent *unstructured.Unstructured, status, reason, message string) (newStatus, newReason, newMessage string) {
	if status == "False" {
		message = s.name + ": " + message
	}
	conditions, _, _ := unstructured.NestedSlice(parent.Object, "status", "conditions")
	for _, c := range conditions {
		m, _ := c.(map[string]any)
		if typeOf(c) != conditionUpdated || m["status"] != "False" {
			continue
		}
		for _, other := range s.others {
			if strings.HasPrefix(text(m, "message"), other+": ") && (status == "True" || other < s.name) {
				return "False", text(m, "reason"), text(m, "message")
			}
		}
	}
	return status, reason, message
}

// hookPart is the part of a status that a hook gave: without the condition and the generation that are ours.
func hookPart(status map[string]any) map[string]any {
	out := maps.Clone(status)
	delete(out, "observedGeneration")
	conditions, ok := out["conditions"].([]any)
	if !ok {
		return out
	}
	rest := []any{}
	for _, item := range conditions {
		if m, ok := item.(map[string]any); !ok || m["type"] != conditionUpdated {
			rest = append(rest, item)
		}
	}
	if out["conditions"] = rest; len(rest) == 0 {
		delete(out, "conditions")
	}
	return out
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
			return text(m, "status")
		}
	}
	return ""
}
