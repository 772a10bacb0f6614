package model_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/proof/sim/model"
)

var pods = corev1.SchemeGroupVersion.WithResource("pods")

func aPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "default", Labels: map[string]string{"app": "web", "controller-revision-hash": "abc"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "web", UID: "1", Controller: new(true), BlockOwnerDeletion: new(true)}},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
	}
}

func BenchmarkCreatePod(b *testing.B) {
	s := model.New(model.Options{})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r := s.Do(model.Request{Verb: "create", Resource: pods, Namespace: "default", Object: aPod(fmt.Sprint("web-", i))})
		if r.Err != nil {
			b.Fatal(r.Err)
		}
		if i%1000 == 999 {
			s = model.New(model.Options{})
		}
	}
}

func BenchmarkPatchPodStatus(b *testing.B) {
	s := model.New(model.Options{})
	if r := s.Do(model.Request{Verb: "create", Resource: pods, Namespace: "default", Object: aPod("web")}); r.Err != nil {
		b.Fatal(r.Err)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		patch := fmt.Sprintf(`{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}],"podIP":"10.0.%d.%d"}}`, i>>8&0xff, i&0xff)
		r := s.Do(model.Request{
			Verb: "patch", Resource: pods, Subresource: "status", Namespace: "default", Name: "web",
			PatchType: types.StrategicMergePatchType, Patch: []byte(patch),
		})
		if r.Err != nil {
			b.Fatal(r.Err)
		}
	}
}

func BenchmarkListPods(b *testing.B) {
	s := model.New(model.Options{})
	for i := range 20 {
		if r := s.Do(model.Request{Verb: "create", Resource: pods, Namespace: "default", Object: aPod(fmt.Sprint("web-", i))}); r.Err != nil {
			b.Fatal(r.Err)
		}
	}
	selector := labels.SelectorFromSet(labels.Set{"app": "web"})
	b.ReportAllocs()
	for b.Loop() {
		if r := s.Do(model.Request{Verb: "list", Resource: pods, Namespace: "default", LabelSelector: selector}); len(r.Items) != 20 {
			b.Fatal(r)
		}
	}
}
