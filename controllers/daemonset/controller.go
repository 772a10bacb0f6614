package daemonset

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/pass"
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

// pass is one pass over a DaemonSet that exists.
func (r *Reconciler) pass(ctx context.Context, p *pass.Pass) error {
	ds := asDaemonSet(p.Parent)
	selector, err := pass.Selector(ds.Spec.Selector)
	if err != nil {
		return err
	}
	o, err := r.gather(ctx, p, ds, selector)
	if err != nil {
		return err
	}
	return r.row(p, o).Run(ctx, p)
}

// row returns the steps that follow the reads.
func (r *Reconciler) row(p *pass.Pass, o *observed) pass.Row[*plan] {
	return pass.Row[*plan]{
		Log: r.log, Entries: o.entries, Collisions: o.ds.Status.CollisionCount, Limit: o.ds.Spec.RevisionHistoryLimit,
		Children: o.children,
		Plan: func(recorded *pass.Recorded, altered pass.Altered) (*plan, error) {
			f, err := r.facts(o, recorded)
			if err != nil {
				return nil, err
			}
			f.hold, f.altered, f.failed = recorded.Update == nil, altered, p.Failed
			plan, err := makePlan(f)
			if err != nil {
				return nil, pass.Refusef("InvalidStrategy", "%w", err)
			}
			return plan, nil
		},
		Try: func(ctx context.Context, plan *plan, suspect client.Object) (bool, error) {
			return r.try(ctx, p, plan.from, suspect)
		},
		Act: func(ctx context.Context, plan *plan) error { return r.act(ctx, p, plan) },
		Report: func(ctx context.Context, recorded *pass.Recorded, plan *plan, failed error) ([]string, bool, error) {
			stored, err := r.report(ctx, p, o, report{plan, recorded, o.pods, failed})
			return []string{plan.from.hash}, stored, err
		},
	}
}

// try asks whether admission would alter a pod of the update revision on the node of a suspect.
func (r *Reconciler) try(ctx context.Context, p *pass.Pass, f facts, suspect client.Object) (bool, error) {
	node, err := nodeOf(asPod(suspect))
	if f.hash == "" || err != nil || f.conforms(asPod(suspect)) {
		return false, nil //nolint:nilerr // a pod without a node, or one of the update revision, is not replaced
	}
	pod := podFor(f.ds, f.hash, creation{node: node})
	pod.Name = ""
	return true, r.pods.Trial(ctx, p, suspect, pod, func(made *corev1.Pod) error { return r.unaltered(p, f, node, made) })
}
