package statefulset

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/cairn-dev/cairn/internal/readiness"
	"github.com/cairn-dev/cairn/rollout"
)

// This file decides about the rolling update: highest ordinal first, within maxUnavailable over the whole set. It is
// pure.

// ReplaceNeverReadyAnnotation on a StatefulSet says which pods of a wrong revision are replaced although they were
// never ready, before the rollout reaches them, or while it waits for them.
//
//   - Without it, or with any other value than these: those that fail. A container waits in CrashLoopBackOff, cannot be
//     pulled or made, or ended with an error; or no node can take the pod.
//   - "true" or "always": all of them, those that are only starting included. A first start that takes long is
//     interrupted.
//   - "false": none, as with the built-in controller under OrderedReady. A rollout, or the way back, then waits until
//     somebody deletes such a pod.
//
// In a Parallel set it matters only for pods that would come from the current revision.
const ReplaceNeverReadyAnnotation = "cairn.dev/replace-never-ready"

// strategyOf returns the number of ordinals that are held back, and how many pods may be unavailable. maxUnavailable
// needs a feature gate of the API server (MaxUnavailableStatefulSet, on by default since 1.37): without the gate the
// field is absent, and one pod at a time is replaced.
func strategyOf(set *appsv1.StatefulSet) (partition, unavailable int, err error) {
	update := set.Spec.UpdateStrategy.RollingUpdate
	if update == nil {
		return 0, 1, nil
	}
	if update.Partition != nil {
		partition = int(*update.Partition)
	}
	_, replicas := ordinals(set)
	value := intstr.ValueOrDefault(update.MaxUnavailable, intstr.FromInt32(1))
	unavailable, err = intstr.GetScaledValueFromIntOrPercent(value, int(replicas), false)
	if err != nil {
		return 0, 0, fmt.Errorf("spec.updateStrategy.rollingUpdate.maxUnavailable: %w", err)
	}
	return partition, max(1, unavailable), nil
}

// roll plans the next steps of the rolling update.
func (p *planner) roll() {
	units := make([]rollout.Unit, 0, len(p.slots))
	for i := range slices.Backward(p.slots) {
		units = append(units, p.unit(i))
	}
	p.rollout = rollout.New(units, rollout.Strategy{MaxUnavailable: p.budget, Ordered: true})
	slots := make(map[string]slot, len(p.slots))
	for _, s := range p.slots {
		slots[s.name] = s
	}
	for i, step := range p.rollout.Steps {
		s := slots[step.Unit]
		if !s.available && readiness.NeverReady(s.pod) {
			p.rollout.Steps[i].Reason += ", and never was"
		}
		p.remove(deletion{pod: s.pod, reason: p.rollout.Steps[i].Reason})
	}
}

// unit describes one slot to the rollout. A pod that is being replaced for other reasons is not in it.
func (p *planner) unit(i int) rollout.Unit {
	s := p.slots[i]
	u := rollout.Unit{Key: s.name, Held: p.hold || p.onDelete() || i < p.partition, Vacant: s.vacant}
	if !s.alive {
		u.Keeps = i < p.partition && p.sourceOf(i).name != p.update.name
		return u
	}
	instance := &rollout.Instance{
		Name:      s.name,
		Revision:  cmp.Or(revisionOf(s.pod), "unknown"),
		Ready:     isReady(s.pod),
		Available: s.available,
	}
	switch {
	case s.conforms:
		u.New = instance
	case p.isAltered(s.pod, p.sourceOf(i)):
		u.Old, u.Stays = instance, "admission would alter its replacement"
	case p.recreates():
		u.Old, u.Stays = instance, "all pods of other revisions are deleted at the same time"
	case p.unstartable(i):
		patience := p.patience(s.pod)
		if left := s.pod.CreationTimestamp.Add(patience).Sub(p.now); left > 0 {
			u.Old, u.Stays = instance, fmt.Sprintf("it has not become ready from revision %s; if that lasts for %s, revision %s takes its place",
				instance.Revision, patience, p.update.name)
			p.LookAgain(left)
			break
		}
		p.remove(deletion{
			pod: s.pod, bars: refused{s.ordinal, instance.Revision},
			reason: fmt.Sprintf("it comes from revision %s and was never ready; revision %s takes its place",
				instance.Revision, p.update.name),
		})
	case p.misguided(i):
		p.remove(deletion{pod: s.pod, reason: fmt.Sprintf("it comes from revision %s, was never ready, and would come from %s now",
			instance.Revision, p.sourceOf(i).name)})
	default:
		u.Old = instance
		u.Stays = p.stays(i)
	}
	return u
}

// unstartable reports whether the old pod of a slot was never ready, and may never be. Examples are a node pool or an
// image that was deleted. The rollout waits for this pod, and may never reach it. Under OrderedReady the pod may also
// crash, or only take long.
func (p *planner) unstartable(i int) bool {
	s := p.slots[i]
	return !p.hold && !p.onDelete() && i >= p.partition && p.policy() != replaceNone &&
		revisionOf(s.pod) == p.current.name && p.sourceOf(i).name == p.current.name &&
		readiness.NeverReady(s.pod) && (unstarted(s.pod) || p.ordered) && (!p.ordered || p.around.down >= i)
}

// slow is how long a pod that nothing is wrong with may take to become ready while the rollout waits for it.
const slow = 10 * time.Minute

// patience is how long an unstartable pod stays.
func (p *planner) patience(pod *corev1.Pod) time.Duration {
	switch {
	case p.around.proven && (unstarted(pod) || p.policy() == replaceAll):
		return 0
	case failing(pod):
		return lasting
	default:
		return slow
	}
}

// misguided reports whether an old pod that was never ready would be created from another revision now, and the rolling
// update will not replace it: it is below the partition, or would come from the current revision.
func (p *planner) misguided(i int) bool {
	s := p.slots[i]
	from := p.sourceOf(i)
	if i < p.partition && p.lost[revisionOf(s.pod)] {
		return false // it is held, and its revision is lost: it stays as it is
	}
	if p.ordered && p.around.down < i {
		return false // it could not be created again
	}
	return !p.hold && !p.onDelete() && from.template != nil && from.name != revisionOf(s.pod) &&
		(i < p.partition || from.name != p.update.name) && p.replaceable(s.pod)
}

// stays says why the old pod of a slot must not be replaced now, whatever the budget is; an empty string means that it
// may.
func (p *planner) stays(i int) string {
	s := p.slots[i]
	switch {
	case s.available:
		if p.blocked != "" {
			return "scaling comes first: " + p.blocked
		}
		return ""
	case p.sourceOf(i).name != p.update.name:
		return "it is not available, and the rollout has not reached it"
	case !p.ordered:
		return "" // it uses up no budget
	case p.around.up < i:
		return "scaling comes first: " + p.blocked // it could not be created again
	case p.policy() == replaceNone:
		return fmt.Sprintf("it is not available, and the annotation %s keeps it; delete it to go on", ReplaceNeverReadyAnnotation)
	case p.replaceable(s.pod):
		return ""
	case readiness.NeverReady(s.pod):
		return starting(s.pod)
	case p.reached(i):
		return ""
	default:
		return "it was ready before and may be so again; it waits for its turn, and the rollout for it"
	}
}

// starting says of a pod that was never ready and does not fail why it stays.
func starting(pod *corev1.Pod) string {
	is := "it is starting"
	if len(pod.Spec.SchedulingGates) > 0 {
		is = fmt.Sprintf("its scheduling gate %s keeps it from starting", pod.Spec.SchedulingGates[0].Name)
	}
	return fmt.Sprintf("%s, and is replaced once it is ready or fails; "+
		"delete it, or set the annotation %s to \"true\", to go on at once",
		is, ReplaceNeverReadyAnnotation)
}

// policy is what [ReplaceNeverReadyAnnotation] says.
type policy int

const (
	replaceFailing policy = iota
	replaceAll
	replaceNone
)

func (p *planner) policy() policy {
	switch p.set.Annotations[ReplaceNeverReadyAnnotation] {
	case "true", "always":
		return replaceAll
	case "false":
		return replaceNone
	default:
		return replaceFailing
	}
}

// replaceable reports whether a pod of a wrong revision may be replaced although it was never ready. If it is only
// starting, a replacement would interrupt what may be the first start of a database.
func (p *planner) replaceable(pod *corev1.Pod) bool {
	switch p.policy() {
	case replaceNone:
		return false
	case replaceAll:
		return readiness.NeverReady(pod)
	default:
		return readiness.NeverReady(pod) && failing(pod)
	}
}
