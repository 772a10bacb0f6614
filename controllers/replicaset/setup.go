package replicaset

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

// This file wires the controller: indexes, consistency store, watches, and which event enqueues which parent.

// Options tune the controller.
type Options struct {
	// Workers is how many parents are reconciled at once. Zero means 5.
	Workers int
	// Clock is for tests; nil means the system's.
	Clock clock.PassiveClock
}

// Setup adds the controller of ReplicaSets to mgr.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	return setup(ctx, mgr, replicaSets, o)
}

// SetupReplicationControllers adds the controller of ReplicationControllers to mgr.
func SetupReplicationControllers(ctx context.Context, mgr ctrl.Manager, o Options) error {
	return setup(ctx, mgr, replicationControllers, o)
}

func setup(ctx context.Context, mgr ctrl.Manager, f parentKind, o Options) error {
	if o.Workers == 0 {
		o.Workers = 5
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	// Parents are children too: ReplicaSets of a Deployment are found by its UID.
	children := map[schema.GroupResource]client.Object{podResource: &corev1.Pod{}, f.resource: f.new()}
	consistency, err := ownership.NewConsistencyStoreFor(ctx, mgr, children, nil)
	if err != nil {
		return err
	}
	r := newReconciler(f, mgr.GetClient(), mgr.GetAPIReader(), consistency, mgr.GetEventRecorder(f.name+"-controller"), o)
	return ctrl.NewControllerManagedBy(mgr).
		Named(f.name).
		WithOptions(r.Options(o.Workers)).
		Watches(f.new(), r.ParentEvents()).
		Watches(&corev1.Pod{}, r.ChildEvents(r.parents().Router())).
		Complete(r)
}

// newReconciler returns a Reconciler that reads from c and, past its cache, from live.
func newReconciler(
	f parentKind, c client.Client, live client.Reader, consistency *ownership.ConsistencyStore, recorder events.EventRecorder, o Options,
) *Reconciler {
	r := &Reconciler{kind: f}
	r.Controller = pass.New(pass.Config{
		Kind: f.gvk, Resource: f.resource, New: f.new,
		Client: c, Live: live, Consistency: consistency, Recorder: recorder, Clock: o.Clock, Run: r.pass, Refused: r.refuse,
	})
	r.pods = pass.NewChildren[*corev1.Pod](r.Controller, podKind, podResource, func() client.ObjectList { return &corev1.PodList{} })
	r.pods.Adoptable = adoptable
	r.OnForget(func(uid types.UID) {
		r.generations.Delete(uid)
		r.unanswered.forget(uid)
		r.gone.forget(uid)
	})
	return r
}

// parents finds the parents of this kind in the cache.
func (r *Reconciler) parents() ownership.Parents {
	return ownership.Parents{
		Reader:  r.Client,
		Kind:    r.kind.gvk.GroupKind(),
		New:     r.kind.new,
		NewList: r.kind.newList,
		Selector: func(parent client.Object) (labels.Selector, error) {
			return metav1.LabelSelectorAsSelector(r.kind.read(parent).Spec.Selector)
		},
	}
}
