package replicaset

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

// This file is one pass, from the parent to the report. setup.go wires it to a manager; package pass begins and ends
// it.

var (
	podKind     = corev1.SchemeGroupVersion.WithKind("Pod")
	podResource = schema.GroupResource{Resource: "pods"}
)

// Reconciler runs passes over the parents of one kind. [Setup] makes one.
type Reconciler struct {
	*pass.Controller

	kind parentKind
	pods *pass.Children[*corev1.Pod]
	// generations are those of the parents that passes have looked at last, by UID, once the API server has confirmed one.
	generations sync.Map
	// unanswered are the names of pods whose create got no response.
	unanswered unanswered
	// gone are the names of pods that were there before.
	gone gone
	// unserved is set once the API server has dropped status.terminatingReplicas.
	unserved atomic.Bool
}

// pass is one pass over a parent that exists: gather, plan, act, report.
func (r *Reconciler) pass(ctx context.Context, p *pass.Pass) error {
	set := r.kind.read(p.Parent)
	selector, err := selectorOf(set)
	if err != nil {
		return err
	}
	o, err := r.gather(ctx, p, set, selector)
	if err != nil {
		return err
	}
	f, err := r.facts(ctx, o)
	if err != nil {
		return err
	}
	plan := makePlan(f)
	if o.late != "" { // to skip its name would create one pod too many
		return fmt.Errorf("%w: it did not show pod %s when the pods were listed", ownership.ErrStale, o.late)
	}
	p.RequeueAfter(plan.Again)
	if plan.Writes() {
		if err := r.confirm(ctx, p, o); err != nil {
			return err
		}
	}
	if _, known := r.generations.Load(set.UID); known || plan.Writes() {
		r.generations.Store(set.UID, set.Generation)
	}
	failed := r.act(ctx, p, o, plan)
	p.NoteUnknownOutcome(failed)
	if pass.Unreported(failed) {
		return failed
	}
	return pass.Finished(failed, r.report(ctx, p, o, plan, failed))
}

// selectorOf returns the selector of set. The error is a [pass.RefusedError]; the API server accepts no such set.
func selectorOf(set *appsv1.ReplicaSet) (labels.Selector, error) {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	switch {
	case err != nil:
		return nil, pass.Refusef("InvalidSelector", "spec.selector cannot be read: %w", err)
	case set.Spec.Selector == nil, selector.Empty():
		return nil, pass.Refusef("SelectingAll", "spec.selector is empty, which selects all pods; one that is not is required")
	case !selector.Matches(labels.Set(set.Spec.Template.Labels)):
		return nil, pass.Refusef("InvalidSelector",
			"spec.selector does not match the labels of spec.template, so that pods would be made for ever")
	}
	return selector, nil
}

func (r *Reconciler) describe(set *appsv1.ReplicaSet) string {
	return fmt.Sprintf("%s %s/%s", r.kind.GVK.Kind, set.Namespace, set.Name)
}
