package daemonset

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

// This file wires the controller: indexes, consistency store, watches, and which event enqueues which DaemonSet.

// Options tune the controller.
type Options struct {
	// Workers is how many DaemonSets are reconciled at once. Zero means 4.
	Workers int
	// AskServer allows dry-run patches of DaemonSets to find out whether a stored snapshot is equivalent (rule E3).
	AskServer bool
	// ProgressDeadline is after how long without progress a rollout has failed where the annotation
	// [pass.ProgressDeadlineAnnotation] does not say so. Zero means never.
	ProgressDeadline time.Duration
	// Undo undoes rollouts that have exceeded it, where a parent asks for that. Optional.
	Undo pass.Undo
	// Clock is for tests; nil means the system's.
	Clock clock.WithTicker
}

// Setup adds the DaemonSet controller to mgr.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if o.Workers == 0 {
		o.Workers = 4
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	consistency, err := wire(ctx, mgr)
	if err != nil {
		return err
	}
	r := newReconciler(mgr.GetClient(), mgr.GetAPIReader(), consistency, mgr.GetEventRecorder("daemonset-controller"), o)
	children := r.ChildEvents(r.parents().Router())
	return ctrl.NewControllerManagedBy(mgr).
		Named("daemonset").
		WithOptions(r.Options(o.Workers)).
		Watches(&appsv1.DaemonSet{}, r.ParentEvents()).
		Watches(&corev1.Pod{}, children).
		Watches(&appsv1.ControllerRevision{}, children).
		Watches(&corev1.Node{}, r.nodeEvents()).
		Complete(r)
}

// newReconciler returns a Reconciler that reads from c and, past its cache, from live.
func newReconciler(
	c client.Client, live client.Reader, consistency *ownership.ConsistencyStore, recorder events.EventRecorder, o Options,
) *Reconciler {
	r := &Reconciler{}
	r.Controller = pass.New(pass.Config{
		Kind: kind, Resource: daemonSetResource, New: func() client.Object { return &appsv1.DaemonSet{} },
		Client: c, Live: live, Consistency: consistency, Recorder: recorder, Clock: o.Clock, Run: r.pass, Refused: r.refuse,
		ProgressDeadline: o.ProgressDeadline, Undo: o.Undo,
	})
	r.OnForget(r.predecessors.forget)
	r.log = pass.NewLog(r.Controller, history.DaemonSet(), o.AskServer)
	r.pods = pass.NewChildren[*corev1.Pod](r.Controller, podKind, podResource, func() client.ObjectList { return &corev1.PodList{} })
	r.pods.Label = appsv1.DefaultDaemonSetUniqueLabelKey
	r.pods.Seen = func(ds client.Object, pods []*corev1.Pod) { r.predecessors.note(ds, pods) }
	return r
}

// wire builds the consistency store over the stores of everything this controller writes, and registers the indexes.
func wire(ctx context.Context, mgr ctrl.Manager) (*ownership.ConsistencyStore, error) {
	return ownership.NewConsistencyStoreFor(ctx, mgr, map[schema.GroupResource]client.Object{
		podResource:          &corev1.Pod{},
		history.AppsResource: &appsv1.ControllerRevision{},
	}, map[schema.GroupResource]client.Object{
		daemonSetResource: &appsv1.DaemonSet{},
		nodeResource:      &corev1.Node{},
	})
}

// parents finds DaemonSets in the cache.
func (r *Reconciler) parents() ownership.Parents {
	return ownership.Parents{
		Reader:  r.Client,
		Kind:    kind.GroupKind(),
		New:     func() client.Object { return &appsv1.DaemonSet{} },
		NewList: func() client.ObjectList { return &appsv1.DaemonSetList{} },
		Selector: func(parent client.Object) (labels.Selector, error) {
			return metav1.LabelSelectorAsSelector(asDaemonSet(parent).Spec.Selector)
		},
	}
}

// nodeEvents enqueues the DaemonSets to which a change of a node makes a difference. Heartbeats make none.
func (r *Reconciler) nodeEvents() handler.EventHandler {
	wake := func(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request], before, after *corev1.Node) {
		keys := r.parents().Select(ctx, metav1.NamespaceAll, func(ds client.Object) bool {
			place := placementFor(asDaemonSet(ds))
			return placed(place, before) != placed(place, after)
		})
		for _, key := range keys {
			q.Add(reconcile.Request{NamespacedName: key})
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, _ event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			// A pod that was left alone because its node was unknown may have to be deleted, or count as misscheduled.
			for _, key := range r.parents().Select(ctx, metav1.NamespaceAll, func(client.Object) bool { return true }) {
				q.Add(reconcile.Request{NamespacedName: key})
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			before, after := asNode(e.ObjectOld), asNode(e.ObjectNew)
			if apiequality.Semantic.DeepEqual(before.Labels, after.Labels) && apiequality.Semantic.DeepEqual(before.Spec.Taints, after.Spec.Taints) {
				return
			}
			wake(ctx, q, before, after)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wake(ctx, q, asNode(e.Object), nil)
		},
	}
}

// placed says whether a node should run a pod, and whether it may keep one. No node gives false twice.
func placed(p placement, node *corev1.Node) [2]bool {
	if node == nil {
		return [2]bool{}
	}
	start, stay := p.on(node)
	return [2]bool{start, stay}
}

func asNode(o client.Object) *corev1.Node {
	return o.(*corev1.Node)
}

func asDaemonSet(o client.Object) *appsv1.DaemonSet {
	return o.(*appsv1.DaemonSet)
}
