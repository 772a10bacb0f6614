package replicaset

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/pass"
)

// This file holds all that differs between the two kinds. Everything else works on a ReplicaSet.

// parentKind is one of the two kinds.
type parentKind struct {
	pass.Kind

	// read returns the parent as a ReplicaSet that shares its memory. It is not to be changed.
	read func(parent client.Object) *appsv1.ReplicaSet
	// withStatus returns an object with the name, UID and version of set, and a status, for a patch.
	withStatus func(set *appsv1.ReplicaSet, status *appsv1.ReplicaSetStatus) client.Object
	// terminating says whether this kind has a field for the number of pods that are terminating.
	terminating bool
}

var replicaSets = parentKind{
	Kind: pass.Kind{
		Name:     "replicaset",
		GVK:      appsv1.SchemeGroupVersion.WithKind("ReplicaSet"),
		Resource: schema.GroupResource{Group: appsv1.GroupName, Resource: "replicasets"},
		New:      func() client.Object { return &appsv1.ReplicaSet{} },
		NewList:  func() client.ObjectList { return &appsv1.ReplicaSetList{} },
	},
	read: func(parent client.Object) *appsv1.ReplicaSet {
		return parent.(*appsv1.ReplicaSet)
	},
	withStatus: func(set *appsv1.ReplicaSet, status *appsv1.ReplicaSetStatus) client.Object {
		return &appsv1.ReplicaSet{ObjectMeta: pass.Identity(set), Status: *status}
	},
	terminating: true,
}

var replicationControllers = parentKind{
	Kind: pass.Kind{
		Name:     "replicationcontroller",
		GVK:      corev1.SchemeGroupVersion.WithKind("ReplicationController"),
		Resource: schema.GroupResource{Resource: "replicationcontrollers"},
		New:      func() client.Object { return &corev1.ReplicationController{} },
		NewList:  func() client.ObjectList { return &corev1.ReplicationControllerList{} },
	},
	read: func(parent client.Object) *appsv1.ReplicaSet {
		return asReplicaSet(parent.(*corev1.ReplicationController))
	},
	withStatus: func(set *appsv1.ReplicaSet, status *appsv1.ReplicaSetStatus) client.Object {
		return &corev1.ReplicationController{ObjectMeta: pass.Identity(set), Status: ofReplicationController(status)}
	},
}

// asReplicaSet reads a ReplicationController, whose selector may only ask for equality, as a ReplicaSet.
func asReplicaSet(rc *corev1.ReplicationController) *appsv1.ReplicaSet {
	set := &appsv1.ReplicaSet{
		ObjectMeta: rc.ObjectMeta,
		Spec: appsv1.ReplicaSetSpec{
			Replicas:        rc.Spec.Replicas,
			MinReadySeconds: rc.Spec.MinReadySeconds,
			Selector:        &metav1.LabelSelector{MatchLabels: rc.Spec.Selector},
		},
		Status: appsv1.ReplicaSetStatus{
			Replicas:             rc.Status.Replicas,
			FullyLabeledReplicas: rc.Status.FullyLabeledReplicas,
			ReadyReplicas:        rc.Status.ReadyReplicas,
			AvailableReplicas:    rc.Status.AvailableReplicas,
			ObservedGeneration:   rc.Status.ObservedGeneration,
		},
	}
	if rc.Spec.Template != nil {
		set.Spec.Template = *rc.Spec.Template
	}
	for _, c := range rc.Status.Conditions {
		set.Status.Conditions = append(set.Status.Conditions, appsv1.ReplicaSetCondition{
			Type: appsv1.ReplicaSetConditionType(c.Type), Status: c.Status, LastTransitionTime: c.LastTransitionTime,
			Reason: c.Reason, Message: c.Message,
		})
	}
	return set
}

func ofReplicationController(status *appsv1.ReplicaSetStatus) corev1.ReplicationControllerStatus {
	out := corev1.ReplicationControllerStatus{
		Replicas:             status.Replicas,
		FullyLabeledReplicas: status.FullyLabeledReplicas,
		ReadyReplicas:        status.ReadyReplicas,
		AvailableReplicas:    status.AvailableReplicas,
		ObservedGeneration:   status.ObservedGeneration,
	}
	for _, c := range status.Conditions {
		out.Conditions = append(out.Conditions, corev1.ReplicationControllerCondition{
			Type: corev1.ReplicationControllerConditionType(c.Type), Status: c.Status, LastTransitionTime: c.LastTransitionTime,
			Reason: c.Reason, Message: c.Message,
		})
	}
	return out
}
