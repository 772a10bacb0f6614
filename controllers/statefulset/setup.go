package statefulset

import (
	"context"
	"strings"
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

// This file wires the controller: indexes, consistency store, watches, and which event enqueues which StatefulSet.

// Options tune the controller.
type Options struct {
	// Workers is how many StatefulSets are reconciled at once. Zero means 4.
	Workers int
	// AskServer allows dry-run patches of StatefulSets to find out whether a stored snapshot is equivalent (rule E3).
	AskServer bool
	// ProgressDeadline is after how long without progress a rollout has failed where the annotation
	// [pass.ProgressDeadlineAnnotation] does not say so. Zero means never.
	ProgressDeadline time.Duration
	// Undo undoes rollouts that have exceeded it, where a parent asks for that. Optional.
	Undo pass.Undo
	// Clock is for tests; nil means the system's.
	Clock clock.PassiveClock
}

// Setup adds the StatefulSet controller to mgr.
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
	r := newReconciler(mgr.GetClient(), mgr.GetAPIReader(), consistency, mgr.GetEventRecorder("statefulset-controller"), o)
	children := r.ChildEvents(r.parents().Router())
	return ctrl.NewControllerManagedBy(mgr).
		Named("statefulset").
		WithOptions(r.Options(o.Workers)).
		Watches(&appsv1.StatefulSet{}, r.ParentEvents()).
		Watches(&corev1.Pod{}, podEvents{children, r.Client}).
		Watches(&appsv1.ControllerRevision{}, children).
		Watches(&corev1.PersistentVolumeClaim{}, r.claimEvents()).
		Complete(r)
}

// newReconciler returns a Reconciler that reads from c and, past its cache, from live.
func newReconciler(
	c client.Client, live client.Reader, consistency *ownership.ConsistencyStore, recorder events.EventRecorder, o Options,
) *Reconciler {
	r := &Reconciler{}
	r.Controller = pass.New(pass.Config{
		Kind: kind, Resource: statefulSetResource, New: func() client.Object { return &appsv1.StatefulSet{} },
		Client: c, Live: live, Consistency: consistency, Recorder: recorder, Clock: o.Clock, Run: r.pass, Refused: r.refuse,
		ProgressDeadline: o.ProgressDeadline, Undo: o.Undo,
	})
	r.log = pass.NewLog(r.Controller, history.StatefulSet(), o.AskServer)
	r.pods = pass.NewChildren[*corev1.Pod](r.Controller, podKind, podResource, func() client.ObjectList { return &corev1.PodList{} })
	r.pods.Label, r.pods.ByName = appsv1.StatefulSetRevisionLabel, true
	r.pods.Adoptable = func(set client.Object, pod *corev1.Pod) error { return adoptable(asStatefulSet(set), pod.Name) }
	r.claims = pass.NewChildren[*corev1.PersistentVolumeClaim](r.Controller, claimKind, claimResource,
		func() client.ObjectList { return &corev1.PersistentVolumeClaimList{} })
	r.OnForget(r.refusals.forget)
	return r
}

// wire builds the consistency store over the stores of everything this controller writes, and registers the indexes.
// Claims need none: they are found by their names.
func wire(ctx context.Context, mgr ctrl.Manager) (*ownership.ConsistencyStore, error) {
	return ownership.NewConsistencyStoreFor(ctx, mgr, map[schema.GroupResource]client.Object{
		podResource:          &corev1.Pod{},
		history.AppsResource: &appsv1.ControllerRevision{},
	}, map[schema.GroupResource]client.Object{
		claimResource:       &corev1.PersistentVolumeClaim{},
		statefulSetResource: &appsv1.StatefulSet{},
	})
}

// parents finds StatefulSets in the cache.
func (r *Reconciler) parents() ownership.Parents {
	return ownership.Parents{
		Reader:  r.Client,
		Kind:    kind.GroupKind(),
		New:     func() client.Object { return &appsv1.StatefulSet{} },
		NewList: func() client.ObjectList { return &appsv1.StatefulSetList{} },
		Selector: func(parent client.Object) (labels.Selector, error) {
			return metav1.LabelSelectorAsSelector(asStatefulSet(parent).Spec.Selector)
		},
	}
}

// claimEvents enqueues the StatefulSets that a claim belongs to by its name: a deleted claim may have to be recreated,
// and one that is created, is terminating, or changes its owners makes a difference to the next pass.
func (r *Reconciler) claimEvents() handler.EventHandler {
	wake := func(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request], claim client.Object) {
		keys := r.parents().Select(ctx, claim.GetNamespace(), func(parent client.Object) bool {
			return hasClaim(asStatefulSet(parent), claim.GetName())
		})
		for _, key := range keys {
			q.Add(reconcile.Request{NamespacedName: key})
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wake(ctx, q, e.Object)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			owners := apiequality.Semantic.DeepEqual(e.ObjectOld.GetOwnerReferences(), e.ObjectNew.GetOwnerReferences())
			if same := e.ObjectOld.GetUID() == e.ObjectNew.GetUID(); !same || !owners ||
				(e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil) {
				wake(ctx, q, e.ObjectNew)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wake(ctx, q, e.Object)
		},
	}
}

// podEvents are those of children, and of a deleted pod that was not the set's own but had a name of it: what waits for
// the name would otherwise be created at the next retry, minutes later after many of them.
type podEvents struct {
	handler.EventHandler

	reader client.Reader
}

// Delete implements [handler.EventHandler].
func (h podEvents) Delete(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	h.EventHandler.Delete(ctx, e, q)
	pod, set := e.Object, &appsv1.StatefulSet{}
	key := client.ObjectKey{Namespace: pod.GetNamespace(), Name: pod.GetName()[:max(0, strings.LastIndexByte(pod.GetName(), '-'))]}
	if key.Name == "" || h.reader.Get(ctx, key, set) != nil || metav1.IsControlledBy(pod, set) {
		return // no set of that name, or the events of its children have told it
	}
	if ordinal, ok := ordinalOf(set, pod.GetName()); ok && inRange(set, ordinal) {
		q.Add(reconcile.Request{NamespacedName: key})
	}
}

// hasClaim reports whether a claim of that name would belong to a pod of set.
func hasClaim(set *appsv1.StatefulSet, name string) bool {
	for i := range set.Spec.VolumeClaimTemplates {
		pod, ok := strings.CutPrefix(name, set.Spec.VolumeClaimTemplates[i].Name+"-")
		if _, ours := ordinalOf(set, pod); ok && ours {
			return true
		}
	}
	return false
}

func asStatefulSet(o client.Object) *appsv1.StatefulSet {
	return o.(*appsv1.StatefulSet)
}
