package daemonset

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/ownership"
)

// This file wires the controller: indexes, read-your-writes, watches, and which event wakes which DaemonSet.

// Options tune the controller.
type Options struct {
	// Workers is how many DaemonSets are worked on at once. Zero means 4.
	Workers int
	// AskServer allows dry-run patches of DaemonSets to find out whether a stored snapshot is equivalent (rule R3).
	AskServer bool
	// Clock is for tests; nil means the system's.
	Clock clock.WithTicker
}

// Setup adds the DaemonSet controller to mgr. The manager's cache must hold pods and ControllerRevisions indexed by
// [ownership.ControllerIndex]; Setup registers these indexes itself, so it must be the only one to do so for a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if o.Workers == 0 {
		o.Workers = 4
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	ledger, err := newLedger(ctx, mgr)
	if err != nil {
		return err
	}
	r := &Reconciler{
		client:   mgr.GetClient(),
		live:     mgr.GetAPIReader(),
		ledger:   ledger,
		recorder: mgr.GetEventRecorder("daemonset-controller"),
		clock:    o.Clock,
		backoff:  flowcontrol.NewBackOff(shortestBackoff, longestBackoff),
	}
	r.backoff.Clock = o.Clock
	r.log = history.New(history.DaemonSet(), history.Options{
		Client:    r.client,
		Live:      r.live,
		Indexed:   true,
		AskServer: o.AskServer,
		Wrote:     func(parent types.UID, c client.Object) { ledger.Wrote(parent, revisionResource, c) },
		Deleted:   func(parent types.UID, c client.Object) { ledger.Deleted(parent, revisionResource, c) },
	})
	// Forget the back-off of nodes and DaemonSets that are long gone.
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		wait.UntilWithContext(ctx, func(context.Context) { r.backoff.GC() }, time.Minute)
		return nil
	})); err != nil {
		return err
	}
	router := r.router().Handler()
	return ctrl.NewControllerManagedBy(mgr).
		Named("daemonset").
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Workers}).
		Watches(&appsv1.DaemonSet{}, r.ownEvents()).
		Watches(&corev1.Pod{}, router).
		Watches(&appsv1.ControllerRevision{}, router).
		Watches(&corev1.Node{}, r.nodeEvents()).
		Complete(r)
}

// newLedger builds the ledger over the stores of everything this controller writes, and registers the indexes.
func newLedger(ctx context.Context, mgr ctrl.Manager) (*ownership.Ledger, error) {
	stores := map[schema.GroupResource]ownership.Store{}
	for resource, o := range map[schema.GroupResource]client.Object{
		podResource:       &corev1.Pod{},
		revisionResource:  &appsv1.ControllerRevision{},
		daemonSetResource: &appsv1.DaemonSet{},
	} {
		if resource != daemonSetResource {
			if err := mgr.GetFieldIndexer().IndexField(ctx, o, ownership.ControllerIndex, ownership.IndexController); err != nil {
				return nil, fmt.Errorf("index %s by controller: %w", resource, err)
			}
		}
		informer, err := mgr.GetCache().GetInformer(ctx, o)
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", resource, err)
		}
		shared, ok := informer.(cache.SharedIndexInformer)
		if !ok {
			return nil, fmt.Errorf("the cache of %s is a %T, which has no store to read our own writes from", resource, informer)
		}
		stores[resource] = shared.GetStore()
	}
	return ownership.NewLedger(stores), nil
}

func (r *Reconciler) router() ownership.Router {
	return ownership.Router{
		Parent: kind.GroupKind(),
		UID: func(ctx context.Context, key types.NamespacedName) (types.UID, bool) {
			var ds appsv1.DaemonSet
			if err := r.client.Get(ctx, key, &ds); err != nil {
				return "", false
			}
			return ds.UID, true
		},
		Matching: func(ctx context.Context, orphan client.Object) []types.NamespacedName {
			return r.selected(ctx, orphan.GetNamespace(), func(ds *appsv1.DaemonSet) bool {
				selector, err := metav1.LabelSelectorAsSelector(ds.Spec.Selector)
				return err == nil && !selector.Empty() && selector.Matches(labels.Set(orphan.GetLabels()))
			})
		},
	}
}

// selected lists the DaemonSets of a namespace, or of all, that pass a test.
func (r *Reconciler) selected(ctx context.Context, namespace string, test func(*appsv1.DaemonSet) bool) []types.NamespacedName {
	var list appsv1.DaemonSetList
	if err := r.client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil // the cache is not there yet; its first list wakes every DaemonSet
	}
	var out []types.NamespacedName
	for i := range list.Items {
		if test(&list.Items[i]) {
			out = append(out, client.ObjectKeyFromObject(&list.Items[i]))
		}
	}
	return out
}

// ownEvents wakes a DaemonSet for its own changes, and forgets one that is gone, so that one of the same name inherits
// nothing.
func (r *Reconciler) ownEvents() handler.EventHandler {
	forget := func(o client.Object) {
		r.ledger.Forget(o.GetUID())
		r.confirmed.Delete(o.GetUID())
	}
	own := &handler.EnqueueRequestForObject{}
	return handler.Funcs{
		CreateFunc: own.Create,
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if e.ObjectOld.GetUID() != e.ObjectNew.GetUID() {
				forget(e.ObjectOld)
			}
			own.Update(ctx, e, q)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			forget(e.Object)
		},
	}
}

// nodeEvents wakes the DaemonSets for which a change of a node makes a difference. Heartbeats make none.
func (r *Reconciler) nodeEvents() handler.EventHandler {
	wake := func(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request], before, after *corev1.Node) {
		keys := r.selected(ctx, metav1.NamespaceAll, func(ds *appsv1.DaemonSet) bool {
			place := placementFor(ds)
			return placed(place, before) != placed(place, after)
		})
		for _, key := range keys {
			q.Add(reconcile.Request{NamespacedName: key})
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, _ event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			// A pod that was left alone because its node was not known may have to go, or counts as misscheduled.
			for _, key := range r.selected(ctx, metav1.NamespaceAll, func(*appsv1.DaemonSet) bool { return true }) {
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

// placed is what a node means to a DaemonSet. No node means nothing.
func placed(p placement, node *corev1.Node) [2]bool {
	if node == nil {
		return [2]bool{}
	}
	start, stay := p.on(node)
	return [2]bool{start, stay}
}

func asNode(o client.Object) *corev1.Node {
	return o.(*corev1.Node) //nolint:forcetypeassert // the watch is for nodes
}
