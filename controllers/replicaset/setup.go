package replicaset

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/pass"
)

// This file adds the controllers of both kinds to a manager.

// Setup adds the controller of ReplicaSets to mgr.
func Setup(ctx context.Context, mgr ctrl.Manager, o pass.Options) error {
	return replicaSets.setup(ctx, mgr, o)
}

// SetupReplicationControllers adds the controller of ReplicationControllers to mgr.
func SetupReplicationControllers(ctx context.Context, mgr ctrl.Manager, o pass.Options) error {
	return replicationControllers.setup(ctx, mgr, o)
}

func (k parentKind) setup(ctx context.Context, mgr ctrl.Manager, o pass.Options) error {
	config, err := k.watched().In(ctx, mgr, o)
	if err != nil {
		return err
	}
	r := newReconciler(k, config)
	return r.Watch(mgr, o.Workers).Complete(r)
}

// watched returns the kind with the kinds of its children.
func (k parentKind) watched() pass.Kind {
	out := k.Kind
	out.Selector = func(parent client.Object) (labels.Selector, error) {
		return metav1.LabelSelectorAsSelector(k.read(parent).Spec.Selector)
	}
	out.Owned = map[schema.GroupResource]client.Object{podResource: &corev1.Pod{}}
	out.Indexed = map[schema.GroupResource]client.Object{k.Resource: k.New()} // the ReplicaSets of a Deployment are found by its UID
	return out
}

// newReconciler returns a Reconciler.
func newReconciler(k parentKind, config pass.Config) *Reconciler {
	r := &Reconciler{kind: k}
	config.Run, config.Refused = r.pass, r.refuse
	r.Controller = pass.New(config)
	r.pods = pass.NewChildren[*corev1.Pod](r.Controller, podKind, podResource, func() client.ObjectList { return &corev1.PodList{} })
	r.pods.Adoptable = adoptable
	r.OnForget(func(uid types.UID) {
		r.generations.Delete(uid)
		r.unanswered.forget(uid)
		r.gone.forget(uid)
	})
	return r
}
