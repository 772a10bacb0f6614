package statefulset

import (
	"context"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/internal/readiness"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

// This file adds the controller to a manager, and enqueues StatefulSets for events of claims and of pods of others.

// Setup adds the StatefulSet controller to mgr.
func Setup(ctx context.Context, mgr ctrl.Manager, o pass.Options) error {
	config, err := statefulSets.In(ctx, mgr, o)
	if err != nil {
		return err
	}
	r := newReconciler(config, o.AskServer)
	return r.Watch(mgr, o.Workers).
		Watches(&corev1.Pod{}, podEvents{r.ChildEvents(r.Parents().Router()), r.Client}).
		Watches(&corev1.PersistentVolumeClaim{}, r.claimEvents()).
		Complete(r)
}

var statefulSets = pass.Kind{
	Name: "statefulset", GVK: kind, Resource: statefulSetResource,
	New:     func() client.Object { return &appsv1.StatefulSet{} },
	NewList: func() client.ObjectList { return &appsv1.StatefulSetList{} },
	Selector: func(parent client.Object) (labels.Selector, error) {
		return metav1.LabelSelectorAsSelector(asStatefulSet(parent).Spec.Selector)
	},
	Owned:   map[schema.GroupResource]client.Object{history.AppsResource: &appsv1.ControllerRevision{}},
	Indexed: map[schema.GroupResource]client.Object{podResource: &corev1.Pod{}},
	// Claims need no index: they are found by their names.
	Read: map[schema.GroupResource]client.Object{claimResource: &corev1.PersistentVolumeClaim{}},
}

// newReconciler returns a Reconciler. See [pass.Options] for askServer.
func newReconciler(config pass.Config, askServer bool) *Reconciler {
	r := &Reconciler{}
	config.Run, config.Refused = r.pass, r.refuse
	r.Controller = pass.New(config)
	r.log = pass.NewLog(r.Controller, history.StatefulSet(), askServer)
	r.pods = pass.NewChildren[*corev1.Pod](r.Controller, podKind, podResource, func() client.ObjectList { return &corev1.PodList{} })
	r.pods.Ready = readiness.Ready
	r.pods.Label, r.pods.ByName = appsv1.StatefulSetRevisionLabel, true
	r.pods.Member = func(set client.Object, pod *corev1.Pod) bool {
		_, ok := ordinalOf(asStatefulSet(set), pod.Name)
		return ok
	}
	r.claims = pass.NewChildren[*corev1.PersistentVolumeClaim](r.Controller, claimKind, claimResource,
		func() client.ObjectList { return &corev1.PersistentVolumeClaimList{} })
	r.OnForget(r.refusals.forget)
	return r
}

// claimEvents enqueues the StatefulSets that a claim belongs to by its name: a deleted claim may have to be recreated,
// and one that is created, is terminating, or changes its owners makes a difference to the next pass.
func (r *Reconciler) claimEvents() handler.EventHandler {
	wake := func(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request], claim client.Object) {
		keys := r.Parents().Select(ctx, claim.GetNamespace(), func(parent client.Object) bool {
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

// podEvents handles the events of children. It also enqueues a StatefulSet when a pod of somebody else was deleted that
// had the name of one of its pods. Without that event the set creates its pod at the next retry, up to a minute later.
type podEvents struct {
	handler.EventHandler

	reader client.Reader
}

// Delete implements [handler.EventHandler].
func (h podEvents) Delete(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	h.EventHandler.Delete(ctx, e, q)
	pod, set := e.Object, &appsv1.StatefulSet{}
	key := client.ObjectKey{Namespace: pod.GetNamespace(), Name: pod.GetName()[:max(0, strings.LastIndexByte(pod.GetName(), '-'))]}
	if key.Name == "" || h.reader.Get(ctx, key, set) != nil || ownership.OwnerOf(set, kind.GroupKind()).Controls(pod) {
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
