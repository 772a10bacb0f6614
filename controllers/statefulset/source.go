package statefulset

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/cairn-dev/cairn/internal/readiness"
)

// This file says which revision a pod comes from. It is pure, and looks at the existing pods and the partition: the
// counters of status may be outdated (kubernetes#119685).

// source is a revision as pods are made from it.
type source struct {
	// name is the name of the revision, which pods carry.
	name string
	// template is the pod template restored from it. It is nil if the revision is lost; lost says why, in one clause.
	template *corev1.PodTemplateSpec
	lost     string
}

// sourceOf says from which revision the pod of a slot would be created now. The answer does not depend on the existing
// pod, so that a replaced pod is recreated from the revision that it was replaced for.
//
//   - Below the partition: the current revision.
//   - With OnDelete: the update revision, because deleting a pod is how a user asks for it.
//   - With Recreate: the update revision, because no pod of another revision is left when one is created.
//   - If the current revision is lost: the update revision, as upstream.
//   - Where the rollout is: the update revision.
//   - Before the rollout gets there: the current revision. A lost pod is recreated as it was.
//   - Unless this is the pod that the rollout waits for: then the update revision. To recreate it from the current one
//     would hold up the very change that is meant to repair it, for good.
//   - Unless its pod could not start from the current revision (barred).
func (p *planner) sourceOf(i int) source {
	switch {
	case p.current.name == p.update.name, p.onDelete(), p.recreates():
		return p.update
	case i < p.partition:
		return p.current
	case p.current.template == nil && p.update.template != nil:
		return p.update
	case p.reached(i), p.holdsUp(i), p.barred[refused{p.slots[i].ordinal, p.current.name}]:
		return p.update
	default:
		return p.current
	}
}

// isVacant reports whether the place of a slot stays empty for now, see [slot].
func (p *planner) isVacant(i int) bool {
	return i < p.partition && p.slots[i].pod == nil && p.update.template != nil && p.sourceOf(i).template == nil
}

// around is what the rules need to know of the other slots, summed up once for all: a rule that walks over the set for
// every slot makes a plan quadratic in the number of pods.
type around struct {
	// above describes the slots above each one. No field counts vacant slots.
	above []above
	// conforming is how many slots hold a pod that conforms, unproven how many of those do not show that their revision
	// works (see [slot.unproven]), and unavailable how many slots hold no pod that is available.
	conforming, unproven, unavailable int
	// serving says that some old pod is available, proven that some pod that conforms is.
	serving, proven bool
	// down is the lowest slot that holds no available pod, and up the lowest one above it that holds one. Each is the
	// number of slots if there is none.
	down, up int
}

// above is what is above one slot.
type above struct {
	// old says that a pod above is alive and does not conform, oldDown that one of those is not available.
	old, oldDown bool
	// down counts the slots that the rolling update has taken and that are down, see [planner.reached].
	down int
	// gap is true if a slot above has no live pod, missing if one has no pod at all.
	gap, missing bool
}

// sumUp walks over the slots once, from the top.
func sumUp(slots []slot, ordered bool, now time.Time) around {
	out := around{above: make([]above, len(slots)), down: len(slots), up: len(slots)}
	someOld := slices.ContainsFunc(slots, func(s slot) bool { return s.alive && !s.conforms })
	careful := !ordered && someOld
	var so above
	lowest := len(slots) // that is available
	filled := false      // whether a place further up was filled before
	for i, s := range slices.Backward(slots) {
		if out.above[i] = so; s.vacant {
			continue
		}
		taken := careful && s.pod != nil && going(s.pod)
		filled = filled || s.alive || taken
		so.gap = so.gap || !s.alive
		so.missing = so.missing || s.pod == nil
		if s.available {
			lowest = i
		} else {
			out.unavailable++
			out.down, out.up = i, lowest
		}
		if !s.available && filled {
			so.down++
		}
		if s.conforms {
			out.conforming++
			out.proven = out.proven || s.available
			if s.unproven(now) {
				out.unproven++
			}
		}
		if s.alive && !s.conforms {
			so.old = true
			so.oldDown = so.oldDown || !s.available
			out.serving = out.serving || s.available
		}
	}
	return out
}

// reached reports whether the rolling update is done with everything above a slot: no old pod is alive there, and fewer
// of the slots that it updated so far are down than may be.
//
// Slots above the highest pod do not count: they were never filled, and under OrderedReady they wait for this one. A
// terminating pod up there was most likely deleted by the rollout, and counts as down as long as there are old pods to
// be careful about; under OrderedReady this slot is filled first anyway, so that its pod would only be created twice.
func (p *planner) reached(i int) bool {
	above := p.around.above[i]
	return !above.old && above.down < p.budget
}

// holdsUp reports whether the rollout waits for just this slot.
//
// Under OrderedReady that is so before it begins: no other pod is updated, and all those that come before this one
// exist. Without an order, pods that are down use the budget up, at any time. The highest old one is taken first, and
// the next one when an updated pod is available, or none fails or only starts. All are taken at the same time if no old
// pod is available.
func (p *planner) holdsUp(i int) bool {
	s, others, above := p.slots[i], p.around, p.around.above[i]
	if s.conforms {
		others.conforming--
	}
	if !s.available {
		others.unavailable--
		if s.conforms && s.unproven(p.now) {
			others.unproven--
		}
	}
	if p.ordered {
		return others.conforming == 0 && !above.gap
	}
	next := !above.missing && !above.oldDown && (others.proven || others.unproven == 0)
	return (next || !others.serving) && others.unavailable+1 >= p.budget
}

// unproven reports whether the pod of a slot does not show that its revision works: it fails, or it has just started
// and was never ready. A pod that starts for long may wait for others, of a quorum for example.
func (s slot) unproven(now time.Time) bool {
	starts := readiness.NeverReady(s.pod) && now.Sub(s.pod.CreationTimestamp.Time) < lasting
	return !s.available && (starts || failing(s.pod))
}

// conformed reports whether the update revision is what the whole set runs: every ordinal has a pod, each of them
// conforms and is ready, and there is no other pod. It holds whatever the strategy is (kubernetes#73492).
//
// A set of 0 replicas without pods conforms: otherwise tools that compare the two revisions would wait for ever. Not so
// with a partition: pods below it are created from the current revision when the set is scaled up again
// (kubernetes#121534).
func (p *planner) conformed() bool {
	for _, s := range p.slots {
		if !s.conforms || !isReady(s.pod) {
			return false
		}
	}
	return len(p.condemned) == 0 && (len(p.slots) > 0 || p.partition == 0)
}

func (p *planner) onDelete() bool {
	return p.set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType
}

// revisionOf returns the name of the revision that a pod was made from, empty if it does not say.
func revisionOf(pod *corev1.Pod) string { return pod.Labels[appsv1.StatefulSetRevisionLabel] }
