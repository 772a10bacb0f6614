package statefulset

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

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
	p := rep.plan
	r := pass.Report{
		Recorded: rep.recorded, Plan: &p.rollout, Failed: rep.failed, Child: "pod", Children: "pods", Waits: p.waits, Note: p.note(),
		OnDelete: set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType,
		MinReady: minReady(set), Blocker: rep.blocker,
	}
	if len(p.guarded) > 0 {
		lost := slices.IndexFunc(p.waits, func(w rollout.Wait) bool { return w.Unit == p.guarded[0] })
		r.Lost = p.guarded[0] + ": " + p.waits[lost].Reason
	}
	if len(p.Deletes) > 0 {
		r.Doing = p.Deletes[0].pod.Name + ": " + p.Deletes[0].reason
	}
	if p.surplus > 0 {
		r.Surplus = fmt.Sprintf("%d surplus pods are terminating", p.surplus)
	}
	return r.Rollout(now)
}

// blocker says why a pod of the update revision is not ready.
func (rep report) blocker() string {
	return readiness.FirstBlocker(slices.DeleteFunc(slices.Clone(rep.pods), func(pod *corev1.Pod) bool {
		return revisionOf(pod) != rep.recorded.UpdateName()
	}))
}
