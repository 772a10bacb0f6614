package daemonset

import (
	"context"
	"errors"
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
	kind              = appsv1.SchemeGroupVersion.WithKind("DaemonSet")
	podKind           = corev1.SchemeGroupVersion.WithKind("Pod")
	podResource       = schema.GroupResource{Resource: "pods"}
	nodeResource      = schema.GroupResource{Resource: "nodes"}
	daemonSetResource = schema.GroupResource{Group: appsv1.GroupName, Resource: "daemonsets"}
)

// Reconciler runs passes over DaemonSets. [Setup] makes one.
type Reconciler struct {
	*pass.Controller

	log  *history.Log
	pods *pass.Children[*corev1.Pod]
	// predecessors are the pods whose names new pods must not have.
	predecessors predecessors
}

// pass is one pass over a DaemonSet that exists: gather, record, plan, act, report, truncate.
func (r *Reconciler) pass(ctx context.Context, p *pass.Pass) error {
	ds := asDaemonSet(p.Parent)
	selector, err := metav1.LabelSelectorAsSelector(ds.Spec.Selector)
	if err != nil || selector.Empty() {
		return r.refuse(ctx, p, ds, "SelectingAll",
			"spec.selector is empty and selects all pods, or is not valid; a valid selector that is not empty is required")
	}
	o, err := r.gather(ctx, p, ds, selector)
	if err != nil {
		return err
	}
	relabel := r.pods.Relabel(p, selector, o.pods, appsv1.DefaultDaemonSetUniqueLabelKey, func(r revision.Revision) string { return r.Hash })
	recorded, err := pass.Record(ctx, p, r.log, o.entries, ds.Status.CollisionCount, relabel)
	if err != nil {
		return err
	}
	rep := report{recorded: recorded}
	rep.pods = o.pods
	f, err := r.facts(o, recorded)
	if err != nil {
		return err
	}
	if rep.plan, err = makePlan(f); err != nil {
		return r.refuse(ctx, p, ds, "InvalidStrategy", err.Error())
	}
	altered := r.trial(ctx, p, o, &f, &rep)
	p.RequeueAfter(rep.plan.again)
	if err := r.confirm(ctx, p, o, rep); err != nil {
		return err
	}
	rep.failed = r.act(ctx, p, f, rep.plan)
	p.NoteUnknownOutcome(rep.failed)
	if pass.IsStale(rep.failed) {
		return rep.failed
	}
	rep.failed = errors.Join(altered, rep.failed)
	err = pass.Finished(errors.Join(rep.failed, recorded.Retry()), r.report(ctx, p, ds, rep))
	if pass.IsStale(err) {
		return err // the live revisions come from the same stale read
	}
	confirm := func(ctx context.Context) error { return r.pods.Confirm(ctx, p, selector, o.pods) }
	return errors.Join(err, recorded.Truncate(ctx, p, r.log, o.live(f.hash), ds.Spec.RevisionHistoryLimit, confirm))
}

// trial asks, before pods are created or replaced, whether admission lets new ones be: of a pod whose label names no
// revision it is not known whether it was made anew a moment ago. If it does not, the plan replaces nothing; the error
// says why.
func (r *Reconciler) trial(ctx context.Context, p *pass.Pass, o *observed, f *facts, rep *report) error {
	if !rep.plan.risky() || f.hash == "" {
		return nil
	}
	known := map[string]bool{f.hash: true}
	for _, e := range o.entries {
		known[e.Hash] = true
	}
	strange := slices.ContainsFunc(o.pods, func(pod *corev1.Pod) bool {
		return pod.DeletionTimestamp == nil && !known[pod.Labels[appsv1.DefaultDaemonSetUniqueLabelKey]]
	})
	node := "trial"
	if len(f.nodes) > 0 {
		node = f.nodes[0].Name
	}
	pod := podFor(f.ds, f.hash, creation{node: node})
	pod.Name, pod.GenerateName = "", f.ds.Name+"-"
	err := r.pods.Trial(ctx, p, strange, pod, func(made *corev1.Pod) error { return r.unaltered(p, *f, node, made) })
	if err == nil {
		return nil
	}
	f.hold = true
	held, planErr := makePlan(*f)
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
