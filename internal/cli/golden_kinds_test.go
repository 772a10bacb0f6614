package cli_test

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file is the world with objects of other kinds than DaemonSets: what has a history, and what has none.

var shortNames = map[string]client.Object{
	"ds": &appsv1.DaemonSet{}, "sts": &appsv1.StatefulSet{}, "deploy": &appsv1.Deployment{}, "rs": &appsv1.ReplicaSet{},
	"rc": &corev1.ReplicationController{}, "pod": &corev1.Pod{}, "cm": &corev1.ConfigMap{}, "job": &batchv1.Job{},
	"catset": parentOf("CatSet", ""), "dog": parentOf("Dog", ""), "zoo": parentOf("Zoo", ""), "bird": parentOf("Bird", ""),
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
	for number, hash := range []string{"5c6b6cf45c", "558649887b"} { // of what they hold
		// The content of a revision does not say which kind it is of.
		r := stored(daemonSet(""), int64(number+1), hash, template(fmt.Sprintf("db:%d", number+1)))
		created := r.CreationTimestamp
		r.ObjectMeta = controlled("db-"+hash, set, "StatefulSet")
		r.CreationTimestamp, r.UID, r.Labels["controller.kubernetes.io/hash"] = created, types.UID("db-"+hash), hash
		out = append(out, r)
	}
	for name, revision := range map[string]string{"db-0": "db-5c6b6cf45c", "db-1": "db-5c6b6cf45c", "db-2": "db-558649887b"} {
		pod := &corev1.Pod{ObjectMeta: controlled(name, set, "StatefulSet")}
		pod.UID, pod.Labels[appsv1.StatefulSetRevisionLabel] = types.UID(name), revision
		out = append(out, pod)
	}
	return out
}

// rollout returns a DaemonSet in the middle of a rollout, whose controller has not seen the last edit, and a
// StatefulSet that is done.
func rollout() []client.Object {
	ds := daemonSet("web:3")
	ds.Generation, ds.Status.ObservedGeneration = 4, 3
	ds.Spec.MinReadySeconds = 60
	ds.Status.Conditions = []appsv1.DaemonSetCondition{{
		Type: "Updated", Status: corev1.ConditionFalse, Reason: "RolloutWaiting", Message: "1 of 4 pods updated; waiting for node-b: it is not ready",
	}, {
		Type: "HistoryHealthy", Status: corev1.ConditionFalse, Reason: "RevisionUnreadable", Message: "revision web-5c8dd cannot be read",
	}}
	out := []client.Object{
		ds, stored(ds, 1, "6fbc8", template("web:1")), stored(ds, 2, "77d5c", template("web:2")), stored(ds, 3, "9b6f4", template("web:3")),
	}
	for name, hash := range map[string]string{"a": "77d5c", "b": "9b6f4", "c": "77d5c", "d": "gone"} {
		p := pod(name, hash)
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		switch name {
		case "a":
			p.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now.Add(-20 * time.Second))
		case "b":
			p.Status.Conditions[0].Status, p.Status.Conditions[0].Reason = corev1.ConditionFalse, "ContainersNotReady"
			p.Status.Conditions[0].Message = "containers with unready status: [server]"
		case "c":
			p.Status.Conditions = nil
		}
		out = append(out, p)
	}
	for _, o := range kinds() {
		switch o := o.(type) {
		case *appsv1.StatefulSet:
			o.Status.ObservedGeneration = 2
			o.Status.Conditions = []appsv1.StatefulSetCondition{{
				Type: "Updated", Status: corev1.ConditionTrue, Reason: "OnLatestRevision", Message: "latest ControllerRevision: db-558649887b",
			}}
			out = append(out, o)
		case *appsv1.ControllerRevision:
			out = append(out, o)
		case *corev1.Pod:
			o.Labels[appsv1.StatefulSetRevisionLabel] = "db-558649887b"
			o.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			out = append(out, o)
		}
	}
	return out
}
