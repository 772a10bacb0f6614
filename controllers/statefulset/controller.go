package statefulset

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/pass"
	"github.com/cairn-dev/cairn/revision"
)

// This file is one pass, from the parent to the report. setup.go wires it to a manager; package pass begins and ends
// it.

var (
	kind        = appsv1.SchemeGroupVersion.WithKind("StatefulSet")
	podKind     = corev1.SchemeGroupVersion.WithKind("Pod")
	claimKind   = corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim")
	podResource = schema.GroupResource{Resource: "pods"}
	// Claims have no ControllerRef as long as the retention policy keeps them.
	claimResource       = schema.GroupResource{Resource: "persistentvolumeclaims"}
	statefulSetResource = schema.GroupResource{Group: appsv1.GroupName, Resource: "statefulsets"}
)

// Reconciler runs passes over StatefulSets. [Setup] makes one.
type Reconciler struct {
	*pass.Controller

	log    *history.Log
	pods   *pass.Children[*corev1.Pod]
	claims *pass.Children[*corev1.PersistentVolumeClaim]

	refusals refusals
}

// pass is one pass over a StatefulSet that exists: gather, record, plan, act, report, truncate.
func (r *Reconciler) pass(ctx context.Context, p *pass.Pass) error {
	set := asStatefulSet(p.Parent)
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil || selector.Empty() {
		return r.refuse(ctx, p, set, "SelectingAll",
			"spec.selector is empty and selects all pods, or is not valid; a valid selector that is not empty is required")
	}
	if _, _, err := strategyOf(set); err != nil {
		return r.refuse(ctx, p, set, "InvalidStrategy", err.Error())
	}
	o, err := r.gather(ctx, p, set, selector)
	if err != nil {
		return err
	}
	recorded, err := pass.Record(ctx, p, r.log, o.entries, set.Status.CollisionCount, r.relabel(p, o))
	if err != nil {
		return err
	}
	o.entries = recorded.Entries
	f, err := r.facts(o, recorded)
	if err != nil {
		return err
	}
	rep := report{recorded: recorded}
	rep.pods = o.pods
	if rep.plan, err = makePlan(f); err != nil {
		return fmt.Errorf("plan StatefulSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	altered := r.trial(ctx, p, o, f, &rep)
	rep.current = f.current.name
	if rep.plan.promote {
		rep.current, rep.plan.counts.current = f.update.name, rep.plan.counts.updated
	}
	p.RequeueAfter(rep.plan.again)
	if err := r.confirm(ctx, p, o, rep); err != nil {
		return err
	}
	rep.failed = r.act(ctx, p, set, rep.plan)
	p.NoteUnknownOutcome(rep.failed)
	if pass.IsStale(rep.failed) {
		return rep.failed
	}
	rep.failed = errors.Join(altered, rep.failed)
	written, reported := r.report(ctx, p, set, rep)
	err = pass.Finished(errors.Join(rep.failed, recorded.Retry()), reported)
	if pass.IsStale(err) {
		return err // there are pods that this pass has not seen, and their revisions are live, too (H3)
	}
	named := []string{set.Status.CurrentRevision, set.Status.UpdateRevision, f.current.name, f.update.name} // or pods were made from
	if written && recorded.Update != nil {
		named = []string{rep.current, recorded.Update.Name}
	}
	confirm := func(ctx context.Context) error { return r.pods.Confirm(ctx, p, selector, o.pods) }
	return errors.Join(err, recorded.Truncate(ctx, p, r.log, o.live(named...), set.Spec.RevisionHistoryLimit, confirm))
}

// trial asks, before pods are created or replaced, whether admission lets new ones be: of a pod whose label names no
// revision it is not known whether it was made anew a moment ago. If it does not, the plan replaces nothing; the error
// says why.
func (r *Reconciler) trial(ctx context.Context, p *pass.Pass, o *observed, f facts, rep *report) error {
	if !rep.plan.risky() || f.update.template == nil {
		return nil
	}
	strange := slices.ContainsFunc(f.pods, func(pod *corev1.Pod) bool {
		return alive(pod) && !slices.ContainsFunc(o.entries, func(e revision.Revision) bool { return e.Name == revisionOf(pod) })
	})
	start, _ := ordinals(f.set)
	pod := podFor(f.set, f.update, start)
	pod.Name, pod.GenerateName = "", pod.Name+"-"
	err := r.pods.Trial(ctx, p, strange, pod, func(made *corev1.Pod) error { return unaltered(f.set, made, f.update) })
	if err == nil {
		return nil
	}
	f.hold = true
	held, planErr := makePlan(f)
	if planErr != nil {
		return planErr
	}
	if pass.Lost(err) {
		held.creates = nil
	}
	rep.plan = held
	return err
}

// confirm compares what the plan rests on with the API server: the pods, and the revisions of the pods that it deletes.
func (r *Reconciler) confirm(ctx context.Context, p *pass.Pass, o *observed, rep report) error {
	if rep.plan.risky() {
		if err := r.pods.Confirm(ctx, p, o.selector, o.pods); err != nil {
			return err
		}
	}
	if len(rep.plan.deletes) == 0 {
		return nil
	}
	return rep.recorded.Complete(ctx, p, r.log, o.live())
}
