package replicaset

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cairn-dev/cairn/ownership"
)

// This file is one pass, from the request to the report. setup.go wires it to a manager.

var (
	podKind     = corev1.SchemeGroupVersion.WithKind("Pod")
	podResource = schema.GroupResource{Resource: "pods"}
)

// errStale says that a pass rested on an old read. It is dropped and made again soon.
var errStale = errors.New("the cache is behind")

// Reconciler runs passes over the parents of one kind. [Setup] makes one.
type Reconciler struct {
	flavor   flavor
	client   client.Client
	live     client.Reader
	ledger   *ownership.Ledger
	recorder events.EventRecorder
	clock    clock.PassiveClock
	// pods writes pods; fresh confirms the cached ones.
	pods  ownership.Writer
	fresh *ownership.Confirmer
	// generations are those of the parents that passes have looked at last, by UID, once the API server has confirmed one.
	generations sync.Map
	// unserved is set once the API server has dropped status.terminatingReplicas.
	unserved atomic.Bool
}

// Reconcile runs one pass over one parent: gather, plan, act, report. A returned error is retried with a growing delay.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	parent := r.flavor.new()
	unseen, err := r.ledger.Read(ctx, r.client, req.NamespacedName, parent)
	if err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	// What a parent that is being deleted owned may be orphaned or deleted at any moment, by the garbage collector.
	if parent.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, nil
	}
	if unseen != "" {
		return ownership.Unseen(ctx, unseen), nil
	}
	result, err := r.pass(ctx, parent)
	if again, dropped := ownership.Dropped(ctx, err, errStale); dropped {
		return again, nil
	}
	return result, err
}

// pass is one pass over a parent that is there.
func (r *Reconciler) pass(ctx context.Context, parent client.Object) (reconcile.Result, error) {
	set := r.flavor.read(parent)
	selector, reason, message := selectorOf(set)
	if message != "" {
		return reconcile.Result{}, r.refuse(ctx, parent, reason, message)
	}
	o, err := r.gather(ctx, parent, selector)
	if err != nil {
		return reconcile.Result{}, err
	}
	f, err := r.facts(ctx, o)
	if err != nil {
		return reconcile.Result{}, err
	}
	p := makePlan(f)
	if p.writes() {
		if err := r.confirm(ctx, o); err != nil {
			return reconcile.Result{}, err
		}
	}
	if _, known := r.generations.Load(o.set.UID); known || p.writes() {
		r.generations.Store(o.set.UID, o.set.Generation)
	}
	actErr := r.act(ctx, o, p)
	if ownership.OutcomeUnknown(actErr) {
		r.fresh.Forget(o.set.UID) // nobody told us what was written, so that the ledger cannot wait for it
	}
	if errors.Is(actErr, errStale) || ownership.Superseded(actErr) {
		return reconcile.Result{}, actErr
	}
	statusErr := r.report(ctx, o, p, actErr)
	if actErr != nil && errors.Is(statusErr, errStale) {
		statusErr = nil // a lost race must not turn a failure into a quick retry
	}
	return reconcile.Result{RequeueAfter: p.again}, errors.Join(actErr, statusErr)
}

// selectorOf returns the selector of set, or why nothing can be done with it. The API server lets none of these in.
func selectorOf(set *appsv1.ReplicaSet) (selector labels.Selector, reason, message string) {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	switch {
	case err != nil:
		return nil, "InvalidSelector", fmt.Sprintf("spec.selector cannot be read: %v", err)
	case set.Spec.Selector == nil, selector.Empty():
		return nil, "SelectingAll", "spec.selector is empty, which selects all pods; one that is not is required"
	case !selector.Matches(labels.Set(set.Spec.Template.Labels)):
		return nil, "InvalidSelector", "spec.selector does not match the labels of spec.template, so that pods would be made for ever"
	}
	return selector, "", ""
}

func (r *Reconciler) describe(set *appsv1.ReplicaSet) string {
	return fmt.Sprintf("%s %s/%s", r.flavor.kind.Kind, set.Namespace, set.Name)
}
