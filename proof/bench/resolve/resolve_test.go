// Package resolve measures what it costs to find the revision of a DaemonSet among ten that are stored, beside the
// functions that the built-in DaemonSet controller has for it, in one run:
//
//	make bench BENCH=Resolve
//
// "Steady" is what each pass does that finds nothing new, "edited" the first pass after an edit of the template, "cold"
// the first pass of a process. No request is made by either.
//
// What may not come in: a list of the revisions, which is a cache's.
package resolve

import (
	"encoding/json"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/controller/daemon"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/revision"
)

// stored is how many revisions there are.
const stored = 10

// agent is a DaemonSet with a few containers.
func agent(generation int64, image string) *appsv1.DaemonSet {
	labels := map[string]string{"app": "agent"}
	pod := corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways, DNSPolicy: corev1.DNSClusterFirst}
	for i := range 4 {
		pod.Containers = append(pod.Containers, corev1.Container{
			Name: fmt.Sprint("c", i), Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
			Env: []corev1.EnvVar{{Name: "LEVEL", Value: "info"}, {Name: "REGION", Value: "north"}},
		})
	}
	return &appsv1.DaemonSet{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "agent", UID: types.UID("agent-uid"), Generation: generation, ResourceVersion: fmt.Sprint(generation),
		},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
		},
	}
}

// revisions are those of ten edits, as the built-in controller writes them; the newest one is ds's.
func revisions(b *testing.B, ds *appsv1.DaemonSet) (out []*appsv1.ControllerRevision) {
	b.Helper()
	for n := range stored {
		of := agent(int64(n+1), fmt.Sprint("agent:", n+1))
		raw, err := json.Marshal(of.Spec.Template)
		if err != nil {
			b.Fatal(err)
		}
		var template map[string]any
		if err := json.Unmarshal(raw, &template); err != nil {
			b.Fatal(err)
		}
		template["$patch"] = "replace"
		if raw, err = json.Marshal(map[string]any{"spec": map[string]any{"template": template}}); err != nil {
			b.Fatal(err)
		}
		out = append(out, &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: ds.Namespace, Name: fmt.Sprint("agent-", n), UID: types.UID(fmt.Sprint(n)), ResourceVersion: fmt.Sprint(n + 1),
				Labels: map[string]string{"app": "agent", appsv1.DefaultDaemonSetUniqueLabelKey: fmt.Sprint(n)},
				Annotations: map[string]string{
					history.ParentUIDAnnotation: string(ds.UID), history.ParentGenerationAnnotation: fmt.Sprint(of.Generation),
				},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(ds, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))},
			},
			Data: runtime.RawExtension{Raw: raw}, Revision: int64(n + 1),
		})
	}
	return out
}

// resolve is cairn's way. It fails unless the revision is found, or none if none is wanted.
func resolve(b *testing.B, log *history.Log, ds *appsv1.DaemonSet, all []*appsv1.ControllerRevision, found bool) {
	b.Helper()
	entries := make([]revision.Revision, 0, len(all))
	for _, o := range all {
		entries = append(entries, log.Revision(o))
	}
	v, err := log.Resolve(b.Context(), ds, entries)
	if err != nil || found != (v.Change == revision.NoChange) {
		b.Fatal(v, err)
	}
}

// match is the way of the built-in controller.
func match(b *testing.B, ds *appsv1.DaemonSet, all []*appsv1.ControllerRevision, found bool) {
	b.Helper()
	matches := 0
	for _, o := range all {
		equal, err := daemon.Match(ds, o)
		if err != nil {
			b.Fatal(err)
		}
		if equal {
			matches++
		}
	}
	if found != (matches == 1) {
		b.Fatalf("%d match", matches)
	}
}

func BenchmarkResolve(b *testing.B) {
	ds, edited := agent(stored, fmt.Sprint("agent:", stored)), agent(stored+1, "agent:new")
	all := revisions(b, ds)
	nobody := fake.NewFakeClient() // no request is made
	newLog := func() *history.Log {
		return history.New(history.DaemonSet(), history.Options{Client: nobody, Cache: history.NewCache(history.DefaultCacheBytes)})
	}
	b.Run("steady/cairn", func(b *testing.B) {
		log := newLog()
		resolve(b, log, ds, all, true)
		for b.Loop() {
			resolve(b, log, ds, all, true)
		}
	})
	b.Run("edited/cairn", func(b *testing.B) {
		log := newLog()
		resolve(b, log, ds, all, true)
		for b.Loop() {
			edited.Generation++ // what is known of a parent is of one generation
			resolve(b, log, edited, all, false)
		}
	})
	b.Run("cold/cairn", func(b *testing.B) {
		for b.Loop() {
			resolve(b, newLog(), ds, all, true)
		}
	})
	b.Run("steady, edited, cold/kube-controller-manager", func(b *testing.B) {
		for b.Loop() {
			match(b, ds, all, true)
		}
	})
}
