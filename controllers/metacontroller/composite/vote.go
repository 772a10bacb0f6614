package composite

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/cairn-dev/cairn/internal/metacontroller/apply"
	"github.com/cairn-dev/cairn/pass"
)

// This file makes the status of a parent that several controllers share. Each of them reports the progress of its
// children in a condition of its own, and the condition Updated follows from all of those. It is pure.

// sharer is a controller of a parent that has several.
type sharer struct {
	name string
	// rolls says that it rolls children out.
	rolls bool
	// clashes says that it cannot share the parent with us, so that one of the two does nothing, and need not report.
	clashes bool
}

// sharing is the controllers of a parent: this one, and others.
type sharing struct {
	self   sharer
	others []sharer
	// acted says that this generation of the parent was acted on, and not only observed.
	acted bool
}

// rolls reports whether one of them rolls its children out, so that the parent has a condition Updated.
func (s sharing) rolls() bool {
	return s.self.rolls || slices.ContainsFunc(s.others, func(o sharer) bool { return o.rolls && !o.clashes })
}

// own returns the status that a hook wants if the parent has other hooks as well: fields and conditions that it does
// not name stay. The conditions of controllers that no longer have the parent are removed.
func (s sharing) own(parent *unstructured.Unstructured, said map[string]any) map[string]any {
	out := ownStatus(parent, said, true)
	theirs, _, _ := unstructured.NestedSlice(parent.Object, "status", "conditions")
	ours, ok := said["conditions"].([]any)
	if _, given := said["conditions"]; given && !ok {
		return out // the hook's error
	}
	// In their order: otherwise both would write it again for ever.
	merged := slices.DeleteFunc(theirs, func(c any) bool { return isVote(typeOf(c)) && !s.votes(typeOf(c)) })
	for _, c := range ours {
		if m, ok := c.(map[string]any); ok && !isVote(typeOf(c)) { // a hook may repeat what it was sent
			merged = withCondition(merged, m)
		}
	}
	if out["conditions"] = merged; len(merged) == 0 {
		delete(out, "conditions")
	}
	return out
}

// votes reports whether a type of conditions is that of one of the controllers.
func (s sharing) votes(conditionType string) bool {
	name := strings.TrimPrefix(conditionType, voteType)
	return name == s.self.name || slices.ContainsFunc(s.others, func(o sharer) bool { return o.name == name })
}

// statusOf returns the status that a parent is to have: see there.
func (s sharing) statusOf(
	parent *unstructured.Unstructured, said map[string]any, generation int64, rolled *condition,
) map[string]any {
	if rolled == nil {
		return statusOf(s.withoutRollout(s.own(parent, said)), generation, nil)
	}
	vote := conditionOf(voteType+s.self.name, rolled.status, rolled.reason, rolled.message)
	if at, ok := s.observed(parent); ok {
		vote["observedGeneration"] = at
	}
	var all condition // whose rollout is stalled is in the votes
	all.status, all.reason, all.message = s.updated(parent, vote)
	out := statusOf(s.own(parent, said), generation, &all)
	if conditions, ok := out["conditions"].([]any); ok {
		out["conditions"] = withCondition(conditions, vote)
	}
	return out
}

// observed returns the generation of the parent that the controller has acted on last, whatever others have.
func (s sharing) observed(parent *unstructured.Unstructured) (generation int64, ok bool) {
	if s.acted {
		return parent.GetGeneration(), true
	}
	current, _ := parent.Object["status"].(map[string]any)
	before, _ := votesIn(current)[voteType+s.self.name].(map[string]any)
	generation, ok, _ = unstructured.NestedInt64(before, "observedGeneration")
	return generation, ok
}

// withoutRollout removes conditions that are out of date: children of a terminating parent are not rolled out any more,
// and if no controller rolls children out, only a controller that failed has a condition.
func (s sharing) withoutRollout(status map[string]any) map[string]any {
	conditions, ok := status["conditions"].([]any)
	if !ok {
		return status
	}
	status["conditions"] = slices.DeleteFunc(slices.Clone(conditions), func(c any) bool {
		m, _ := c.(map[string]any)
		ours := strings.HasPrefix(stringOf(m, "message"), s.self.name+": ")
		return typeOf(c) == conditionUpdated && (s.rolls() || ours) || typeOf(c) == voteType+s.self.name && !s.rolls()
	})
	return status
}

// updated returns the condition Updated of a parent: False if one of the controllers says so of its children, or has
// not reported on this generation; of several, the first one by name counts, and those that have not reported come
// after all others. All of them come to the same result, so that none overwrites another.
func (s sharing) updated(parent *unstructured.Unstructured, vote map[string]any) (status, reason, message string) {
	said, rolls := map[string]map[string]any{s.self.name: vote}, map[string]bool{s.self.name: s.self.rolls}
	var silent []string
	for _, other := range s.others {
		if v := other.vote(parent); v != nil {
			said[other.name], rolls[other.name] = v, other.rolls
		} else if !other.clashes && s.rolls() {
			silent = append(silent, other.name)
		}
	}
	names := slices.Sorted(maps.Keys(said))
	if i := slices.IndexFunc(names, func(name string) bool { return said[name]["status"] != "True" }); i >= 0 {
		v := said[names[i]]
		return "False", stringOf(v, "reason"), names[i] + ": " + stringOf(v, "message")
	}
	if len(silent) > 0 {
		return "False", "RolloutWaiting", slices.Min(silent) + ": this CompositeController has not said yet whether its children are updated"
	}
	i := max(0, slices.IndexFunc(names, func(name string) bool { return rolls[name] }))
	return "True", stringOf(said[names[i]], "reason"), stringOf(said[names[i]], "message")
}

// vote returns what another controller reports of its children, nil if it has not reported yet. A report on an earlier
// generation does not count. If the schema drops the generation of a condition, it cannot be checked.
func (s sharer) vote(parent *unstructured.Unstructured) map[string]any {
	status, _ := parent.Object["status"].(map[string]any)
	m, _ := votesIn(status)[voteType+s.name].(map[string]any)
	if at, has, _ := unstructured.NestedInt64(m, "observedGeneration"); m["status"] == "True" && has && at != parent.GetGeneration() {
		return nil
	}
	return m
}

// othersVoted reports whether an update of a parent is nothing but another controller's report on its own children, and
// the condition Updated that follows. It enqueues nothing: two controllers that fail, each with another text every
// time, would enqueue each other's parent for ever.
func othersVoted(name string, e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*unstructured.Unstructured)
	after, isObject := e.ObjectNew.(*unstructured.Unstructured)
	if !ok || !isObject || !pass.StatusOnly(e) || !slices.Equal(before.GetFinalizers(), after.GetFinalizers()) {
		return false
	}
	was, _ := before.Object["status"].(map[string]any)
	is, _ := after.Object["status"].(map[string]any)
	if was == nil || is == nil || !apply.Equal(hookPart(was), hookPart(is)) {
		return false
	}
	old, now, own := votesIn(was), votesIn(is), voteType+name
	if apply.Equal(old, now) {
		return false
	}
	ours := func(votes map[string]any) map[string]any { return map[string]any{own: votes[own]} }
	return apply.Equal(ours(old), ours(now))
}

// votesIn are the conditions of the controllers in a status, by their types.
func votesIn(status map[string]any) map[string]any {
	out := map[string]any{}
	list, _ := status["conditions"].([]any)
	for _, c := range list {
		if isVote(typeOf(c)) {
			out[typeOf(c)] = c
		}
	}
	return out
}
