package daemonset

import (
	"context"

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
	"github.com/cairn-dev/cairn/pass"
)

// This file adds the controller to a manager, and enqueues DaemonSets for events of nodes.

// Setup adds the DaemonSet controller to mgr.
func Setup(ctx context.Context, mgr ctrl.Manager, o pass.Options) error {
	config, err := daemonSets.In(ctx, mgr, o)
	if err != nil {
		return err
	}
	r := newReconciler(config, o.AskServer)
	return r.Watch(mgr, o.Workers).Watches(&corev1.Node{}, r.nodeEvents()).Complete(r)
}

var daemonSets = pass.Kind{
	Name: "daemonset", GVK: kind, Resource: daemonSetResource,
	New:     func() client.Object { return &appsv1.DaemonSet{} },
	NewList: func() client.ObjectList { return &appsv1.DaemonSetList{} },
	Selector: func(parent client.Object) (labels.Selector, error) {
		return metav1.LabelSelectorAsSelector(asDaemonSet(parent).Spec.Selector)
	},
	Owned: map[schema.GroupResource]client.Object{podResource: &corev1.Pod{}, history.AppsResource: &appsv1.ControllerRevision{}},
	Read:  map[schema.GroupResource]client.Object{nodeResource: &corev1.Node{}},
}

// newReconciler returns a Reconciler. See [pass.Options] for askServer.
func newReconciler(config pass.Config, askServer bool) *Reconciler {
	r := &Reconciler{}
	config.Run, config.Refused = r.pass, r.refuse
	r.Controller = pass.New(config)
	r.OnForget(r.predecessors.forget)
	r.log = pass.NewLog(r.Controller, history.DaemonSet(), askServer)
	r.pods = pass.NewChildren[*corev1.Pod](r.Controller, podKind, podResource, func() client.ObjectList { return &corev1.PodList{} })
	r.pods.Label = appsv1.DefaultDaemonSetUniqueLabelKey
	r.pods.Ready = readiness.Ready
	r.pods.Known = func(ds client.Object, pod *corev1.Pod) bool { return history.HasTemplateGeneration(ds, pod) }
	r.pods.Seen = func(ds client.Object, pods []*corev1.Pod) { r.predecessors.note(ds, pods) }
	return r
}

// nodeEvents enqueues the DaemonSets to which a change of a node makes a difference. Heartbeats make none.
func (r *Reconciler) nodeEvents() handler.EventHandler {
	wake := func(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request], before, after *corev1.Node) {
		keys := r.Parents().Select(ctx, metav1.NamespaceAll, func(ds client.Object) bool {
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
			for _, key := range r.Parents().Select(ctx, metav1.NamespaceAll, func(client.Object) bool { return true }) {
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
