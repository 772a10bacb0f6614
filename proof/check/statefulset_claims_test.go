package check_test

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// This file is about the claims of a StatefulSet's pods.

var (
	podKind = corev1.SchemeGroupVersion.WithKind("Pod")
	setKind = appsv1.SchemeGroupVersion.WithKind("StatefulSet")
)

// adopted is a pod that was made without its claim, before its set was.
func (w stateful) adopted(name string) {
	w.as("user", func() {
		w.pod(name, func(p *corev1.Pod) { p.Spec.Volumes, p.CreationTimestamp = nil, metav1.NewTime(start.Add(-time.Hour)) })
	})
}

// mutated is a pod from which admission took its claim.
func (w stateful) mutated(name string) {
	w.as("user", func() { w.pod(name, func(p *corev1.Pod) { p.Spec.Volumes = nil }) })
}

// claimsGo makes it the policy that claims go with the pods that are not asked for any more.
func (w stateful) claimsGo() {
	w.spec(func(spec *appsv1.StatefulSetSpec) {
		spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
			WhenScaled: appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
		}
	})
	w.report("db-r1", "db-r1")
}

func claim(name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name)}}
}

// owned is a claim that goes with a pod.
func owned(w stateful, claim *corev1.PersistentVolumeClaim, pod string) *corev1.PersistentVolumeClaim {
	claim.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(get(w.world, &corev1.Pod{}, pod), podKind)}
	return claim
}

// storage are promises, like the others.
var storage = []promise{
	{"C1", "a claim that goes with its pod", func(w stateful) {
		w.claimsGo()
		w.put(claim("data-db-2"))
		w.scale(2)
		w.report("db-r1", "db-r1")
		w.mark("db-2")
	}, func(w stateful) {
		w.claimsGo()
		w.put(claim("data-db-2"))
		w.scale(2)
		w.report("db-r1", "db-r1")
		told := claim("data-db-2")
		told.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(get(w.world, &corev1.Pod{}, "db-2"), podKind)}
		w.put(told)
		w.mark("db-2")
	}},
	{"C1", "a claim that is the set's until its pod goes", func(w stateful) {
		w.claimsGo()
		own := claim("data-db-2")
		own.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(get(w.world, &appsv1.StatefulSet{}, "db"), setKind)}
		w.put(own)
		w.scale(2)
		w.report("db-r1", "db-r1")
		w.mark("db-2")
	}, func(w stateful) {
		w.claimsGo()
		foreign := claim("data-db-2")
		foreign.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(get(w.world, &appsv1.StatefulSet{}, "db"), setKind)}
		foreign.OwnerReferences[0].Name = "other"
		w.as("user", func() { w.put(foreign) })
		w.scale(2)
		w.report("db-r1", "db-r1")
		w.mark("db-2")
	}},
	{"C1", "a claim of a pod that is asked for again", func(w stateful) {
		w.claimsGo()
		w.second()
		w.put(owned(w, claim("data-db-2"), "db-2"))
		w.mark("db-2")
	}, func(w stateful) {
		w.claimsGo()
		w.second()
		w.put(owned(w, claim("data-db-2"), "db-2"))
		w.scale(2)
		w.report("db-r1", "db-r2")
		w.mark("db-2")
	}},
	{"O4", "a claim of the set", func(w stateful) { w.put(claim("data-other-0")) }, func(w stateful) { w.put(claim("data-db-0")) }},
	{"O4", "a claim of an ordinal", func(w stateful) { w.put(claim("data-db-x")) }, func(w stateful) {
		w.as("user", func() { w.put(claim("data-db-x")) })
	}},
}
