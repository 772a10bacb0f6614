package statefulset

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// pass is one pass over a StatefulSet that exists.
func (r *Reconciler) pass(ctx context.Context, p *pass.Pass) error {
	set := asStatefulSet(p.Parent)
	selector, err := pass.Selector(set.Spec.Selector)
	if err != nil {
		return err
	}
	if _, _, err := strategyOf(set); err != nil {
		return pass.Refusef("InvalidStrategy", "%w", err)
	}
	o, err := r.gather(ctx, p, set, selector)
	if err != nil {
		return err
	}
	return r.row(ctx, p, o).Run(ctx, p)
}

// row returns the steps that follow the reads.
func (r *Reconciler) row(ctx context.Context, p *pass.Pass, o *observed) pass.Row[*plan] {
	return pass.Row[*plan]{
		Log: r.log, Entries: o.entries, Collisions: o.set.Status.CollisionCount, Limit: o.set.Spec.RevisionHistoryLimit,
		Children: o.children,
		Rename: func(ctx context.Context, from, to revision.Revision) error {
			return r.rename(ctx, p, o, from.Name, to.Name)
		},
		Plan: func(recorded *pass.Recorded, altered pass.Altered) (*plan, error) {
			f, err := r.facts(o, recorded)
			if err != nil {
				return nil, err
			}
			f.hold, f.altered = recorded.Update == nil, altered
			plan, err := makePlan(f)
			if err == nil && len(plan.guarded) > 0 && plan.Writes() { // the cache may not have the current revision yet
				err = recorded.Complete(ctx, p, r.log, pass.Live(o.children, f.current.name))
			}
			return plan, err
		},
		Try: func(ctx context.Context, plan *plan, suspect client.Object) (bool, error) {
			return r.try(ctx, p, plan.from, suspect)
		},
		Act: func(ctx context.Context, plan *plan) error { return r.act(ctx, p, o.set, plan) },
		Report: func(ctx context.Context, recorded *pass.Recorded, plan *plan, failed error) ([]string, bool, error) {
			rep := report{plan: plan, recorded: recorded, current: plan.from.current.name, pods: o.pods, failed: failed}
			if plan.promote {
				rep.current, plan.counts.current = plan.from.update.name, plan.counts.updated
			}
			stored, err := r.report(ctx, p, o.set, rep)
			named := []string{rep.current, recorded.UpdateName()}
			if recorded.Update == nil { // then the status names what it named before
				named = []string{o.set.Status.CurrentRevision, o.set.Status.UpdateRevision, plan.from.current.name, plan.from.update.name}
			}
			return named, stored, err
		},
	}
}

// try asks whether admission would alter a pod of the update revision in the place of a suspect.
func (r *Reconciler) try(ctx context.Context, p *pass.Pass, f facts, suspect client.Object) (bool, error) {
	if f.update.template == nil {
		return false, nil
	}
	ordinal, _ := ordinalOf(f.set, suspect.GetName())
	pod := podFor(f.set, f.update, ordinal)
	pod.Name, pod.GenerateName = "", pod.Name+"-"
	return true, r.pods.Trial(ctx, p, suspect, pod, func(made *corev1.Pod) error { return unaltered(p, f.set, made, f.update) })
}
