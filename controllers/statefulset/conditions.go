package statefulset

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cairn-dev/cairn/internal/readiness"
	"github.com/cairn-dev/cairn/pass"
	"github.com/cairn-dev/cairn/rollout"
)

// This file says in words what a pass found out.

// Condition types of a StatefulSet that cairn runs: see package pass.
const (
	ConditionUpdated        appsv1.StatefulSetConditionType = pass.Updated
	ConditionHistoryHealthy appsv1.StatefulSetConditionType = pass.HistoryHealthy
)

// report is the result of a pass.
type report struct {
	plan     *plan
	recorded *pass.Recorded
	// current is the name of the revision of the pods that are not updated yet.
	current string
	pods    []*corev1.Pod
	// failed is what went wrong with pods and claims.
	failed error
}

// rollout is how far the rollout is.
func (rep report) rollout(set *appsv1.StatefulSet, now time.Time) pass.Rollout {
	return pass.Rollout{
		Plan: &rep.plan.rollout, Revision: rep.recorded.UpdateName(), Updated: rep.updated(set, metav1.NewTime(now)),
		Stopped:  set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType,
		MinReady: minReady(set), Blocker: rep.blocker,
	}
}

// blocker says why a pod of the update revision is not ready.
func (rep report) blocker() string {
	return readiness.FirstBlocker(slices.DeleteFunc(slices.Clone(rep.pods), func(pod *corev1.Pod) bool {
		return revisionOf(pod) != rep.recorded.UpdateName()
	}))
}

// updated says how far the rollout is.
func (rep report) updated(set *appsv1.StatefulSet, now metav1.Time) metav1.Condition {
	c := metav1.Condition{Type: pass.Updated, Status: metav1.ConditionFalse, LastTransitionTime: now}
	if rep.recorded.Update == nil {
		c.Reason, c.Message = "RevisionNotRecorded", "no pod is replaced before the revision that the spec asks for is recorded"
		return c
	}
	p := rep.plan.rollout
	progress := fmt.Sprintf("%d of %d pods updated", p.Updated, p.Total)
	switch {
	case rep.failed != nil:
		c.Reason, c.Message = "RolloutFailing", progress+"; "+pass.FirstLine(rep.failed)
	case len(rep.plan.guarded) > 0:
		lost := slices.IndexFunc(rep.plan.waits, func(w rollout.Wait) bool { return w.Unit == rep.plan.guarded[0] })
		c.Reason, c.Message = "CurrentRevisionLost", fmt.Sprintf("%s; %s: %s", progress, rep.plan.waits[lost].Unit, rep.plan.waits[lost].Reason)
	case p.Complete() && rep.plan.surplus == 0:
		c.Status, c.Reason = metav1.ConditionTrue, "OnLatestRevision"
		c.Message = rep.plan.onLatest(rep.recorded.Update.Name)
	default:
		var why string
		c.Reason, why = rep.plan.underWay(set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType)
		c.Message = progress + "; " + why
	}
	return c
}

// underWay says what a plan that is not complete does, or waits for.
func (p *plan) underWay(onDelete bool) (reason, why string) {
	complete := p.rollout.Complete()
	switch waits := slices.Concat(p.rollout.Waiting, p.waits); {
	case len(p.deletes) > 0:
		return pass.RolloutProgressing, fmt.Sprintf("%s: %s", p.deletes[0].pod.Name, p.deletes[0].reason)
	case complete && len(waits) == 0:
		return pass.RolloutProgressing, fmt.Sprintf("%d surplus pods are terminating", p.surplus)
	case !complete && onDelete && len(p.creates) == 0:
		return pass.RolloutWaiting, "the strategy is OnDelete, so the others are updated when they are deleted"
	case len(waits) > 0:
		return pass.RolloutWaiting, fmt.Sprintf("%s: %s", waits[0].Unit, waits[0].Reason)
	case len(p.creates) == 0 && p.rollout.Unavailable == 0:
		return pass.RolloutWaiting, "the others are below the partition"
	default:
		return pass.RolloutProgressing, "waiting for new pods to start"
	}
}
