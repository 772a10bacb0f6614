package statefulset

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// This file decides about scaling down: which of the pods that are not asked for is deleted now. It is pure.

// scaleDown plans the deletion of the pods that are not asked for.
//
// With Parallel they are all deleted at once. Under OrderedReady it is one at a time, the highest ordinal first, and
// only while every pod that is asked for is available. Of those that are not, an available one goes, and so does the
// only one that is not available; with two of them the higher one waits for the lower one. That is the built-in
// controller's order, and what the conformance test "halt if any stateful pod is unhealthy" asks for, which takes a set
// from three unready pods to none.
func (p *planner) scaleDown() {
	p.halted = p.ordered && p.blocked != ""
	next := p.nextCondemned()
	for _, pod := range p.condemned {
		switch {
		case going(pod):
		case p.ordered && pod != next:
			p.waitf(pod.Name, "%s; %s", p.outOfRange(), p.blocked)
		default:
			p.remove(deletion{pod: pod, reason: p.outOfRange()})
		}
	}
}

// outOfRange says why a condemned pod goes.
func (p *planner) outOfRange() string {
	start, count := ordinals(p.set)
	if start > 0 {
		return fmt.Sprintf("surplus (spec.replicas is %d, from ordinal %d on)", count, start)
	}
	return fmt.Sprintf("surplus (spec.replicas is %d)", count)
}

// nextCondemned returns the pod to delete next under OrderedReady, nil if none may be deleted now, and then blocks
// everything else with the reason.
func (p *planner) nextCondemned() *corev1.Pod {
	next, weakest := p.highestCondemned()
	if next == nil || !p.ordered {
		return nil
	}
	switch {
	case weakest == nil || weakest == next || p.available(next) || ended(next):
	case going(weakest):
		p.blockf("%s is terminating", weakest.Name)
	default:
		p.blockf("%s, which is surplus as well, is not available; delete it to go on without it", weakest.Name)
	}
	if p.blocked != "" {
		return nil
	}
	p.blockf("waiting for %s to be deleted", next.Name)
	return next
}

// highestCondemned returns the condemned pod to delete next, and the lowest one that is not healthy. A pod that ended
// comes before all others, because nothing runs there any more, and because it will never be healthy again: to wait for
// that would halt the set for good.
func (p *planner) highestCondemned() (next, weakest *corev1.Pod) {
	for _, pod := range p.condemned {
		if going(pod) {
			if next == nil { // one that is lower is in the way of what is not healthy
				p.blockf("%s is terminating", pod.Name)
			}
			weakest = pod
			continue
		}
		if next == nil || ended(pod) && !ended(next) {
			next = pod
		}
		if !p.available(pod) {
			weakest = pod // they are sorted, the highest first
		}
	}
	return next, weakest
}

func (p *planner) available(pod *corev1.Pod) bool {
	available, _ := availability(pod, minReady(p.set), p.now)
	return available
}

// own plans who owns the claims of every pod from now on. The claims of a pod that is deleted are changed before it is:
// the claims of a surplus pod may have to go with it, and those of a pod that is asked for must not. Such a pod may
// have been surplus a moment ago, so that it owns its claims. Whatever removes the pod then, alive, ended or
// terminating, would remove the claims too.
func (p *planner) own() {
	keep := p.halted && retention(p.set).WhenScaled == appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	deleted := make(map[*corev1.Pod]int, len(p.Deletes))
	for i, d := range p.Deletes {
		deleted[d.pod] = i
	}
	for _, pod := range p.pods {
		ordinal, ok := ordinalOf(p.set, pod.Name)
		i, goes := deleted[pod]
		switch {
		case !ok:
		case goes:
			p.Deletes[i].owners = p.claimOwners(pod)
		case inRange(p.set, ordinal) || !keep:
			p.owners = append(p.owners, p.claimOwners(pod)...)
		}
	}
}

// claimOwners plans who owns the claims of a pod from now on.
func (p *planner) claimOwners(pod *corev1.Pod) []ownerChange {
	var out []ownerChange
	ordinal, _ := ordinalOf(p.set, pod.Name)
	for _, name := range claimNames(p.set, ordinal) {
		claim, ok := p.facts.claims[name]
		if !ok || claim.DeletionTimestamp != nil {
			continue
		}
		owners, differ, foreign := ownersOf(p.set, pod, claim)
		if foreign {
			p.foreign = append(p.foreign, name)
		}
		if differ {
			out = append(out, ownerChange{claim, owners})
		}
	}
	return out
}
