package statefulset

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cairn-dev/cairn/pass"
)

// This file holds the update strategy Recreate: all pods of other revisions are deleted at the same time, and no pod is
// created or scaled down before the last of them has terminated. The API server accepts the strategy only with the
// feature gate StatefulSetRecreateStrategy (alpha in Kubernetes 1.37).

func (p *planner) recreates() bool {
	return p.set.Spec.UpdateStrategy.Type == appsv1.RecreateStatefulSetStrategyType
}

// recreate plans the deletion of the outdated pods. Without a recorded update revision it deletes nothing.
func (p *planner) recreate() {
	p.halted = true
	for _, pod := range p.pods {
		if !p.outdated(pod) {
			continue
		}
		p.recreating++
		ordinal, _ := ordinalOf(p.set, pod.Name)
		switch {
		case going(pod):
			p.waitf(pod.Name, "it is terminating, and pods of two revisions never run at the same time")
		case p.hold:
			p.waitf(pod.Name, "it comes from revision %s, and is not deleted before the update revision is recorded", revisionOf(pod))
		case p.isAltered(pod, p.update):
			p.waitf(pod.Name, "admission would alter its replacement")
		case !inRange(p.set, ordinal):
			p.remove(deletion{pod: pod, reason: p.outOfRange()})
		default:
			p.remove(deletion{pod: pod, reason: fmt.Sprintf("it comes from revision %s, and the strategy is Recreate", revisionOf(pod))})
		}
	}
}

// Type and reasons of the condition that Kubernetes gives a StatefulSet with the strategy Recreate.
const (
	progressing        = string(appsv1.StatefulSetProgressing)
	recreateInProgress = "RecreateInProgress"
	recreateCompleted  = "RecreateCompleted"
)

// setProgressing sets the condition Progressing as Kubernetes does: True from the first deletion until all pods are
// ready, then False. A set that never recreated its pods has none, and one that changed its strategy loses it:
// Kubernetes leaves the old condition in place.
func (rep report) setProgressing(set *appsv1.StatefulSet, conditions *[]metav1.Condition, now metav1.Time) {
	c := metav1.Condition{Type: progressing, Status: metav1.ConditionTrue, Reason: recreateInProgress, LastTransitionTime: now}
	was := meta.FindStatusCondition(*conditions, progressing)
	switch {
	case set.Spec.UpdateStrategy.Type != appsv1.RecreateStatefulSetStrategyType:
		if was != nil && (was.Reason == recreateInProgress || was.Reason == recreateCompleted) {
			meta.RemoveStatusCondition(conditions, progressing)
		}
		return
	case rep.recorded.Update == nil:
		return
	case rep.plan.recreating > 0:
		c.Message = "deleting the pods of other revisions"
	case rep.current != rep.recorded.Update.Name, !rep.plan.promote && was != nil && was.Status == metav1.ConditionTrue:
		c.Message = "waiting for the pods of revision " + rep.recorded.Update.Name
	case was == nil:
		return
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, recreateCompleted, "all pods come from revision "+rep.recorded.Update.Name
	}
	pass.SetCondition(conditions, c)
}
