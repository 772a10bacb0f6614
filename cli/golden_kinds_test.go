package cli_test

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file is the world with objects of other kinds than DaemonSets: what has a history, and what has none.

var shortNames = map[string]client.Object{
	"ds": &appsv1.DaemonSet{}, "sts": &appsv1.StatefulSet{}, "deploy": &appsv1.Deployment{}, "rs": &appsv1.ReplicaSet{},
	"rc": &corev1.ReplicationController{}, "pod": &corev1.Pod{},
}

// kinds returns a StatefulSet in the middle of a rollout, and a Deployment with what it made.
func kinds() []client.Object {
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "77aa", Generation: 2},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(3)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Template: template("db:2"),
		},
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "api", UID: "88bb"}}
	controlled := func(name string, by client.Object, kind string) metav1.ObjectMeta {
		ref := metav1.NewControllerRef(by, appsv1.SchemeGroupVersion.WithKind(kind))
		return metav1.ObjectMeta{Namespace: "shop", Name: name, OwnerReferences: []metav1.OwnerReference{*ref}, Labels: map[string]string{"app": "web"}}
	}
	out := []client.Object{
		set, deployment,
		&appsv1.ReplicaSet{ObjectMeta: controlled("api-5d8f", deployment, "Deployment")},
		&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "alone"}},
		&corev1.ReplicationController{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "old"}},
	}
	for number, hash := range []string{"6fbc8", "77d5c"} {
		// The content of a revision does not say which kind it is of.
		r := stored(daemonSet(""), int64(number+1), hash, template(fmt.Sprintf("db:%d", number+1)))
		created := r.CreationTimestamp
		r.ObjectMeta = controlled("db-"+hash, set, "StatefulSet")
		r.CreationTimestamp, r.UID, r.Labels["controller.kubernetes.io/hash"] = created, types.UID("db-"+hash), hash
		out = append(out, r)
	}
	for name, revision := range map[string]string{"db-0": "db-6fbc8", "db-1": "db-6fbc8", "db-2": "db-77d5c"} {
		pod := &corev1.Pod{ObjectMeta: controlled(name, set, "StatefulSet")}
		pod.Labels[appsv1.StatefulSetRevisionLabel] = revision
		out = append(out, pod)
	}
	return out
}
