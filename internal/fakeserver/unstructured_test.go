package fakeserver_test

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/fakeserver"
	"github.com/cairn-dev/cairn/ownership"
)

var catSets = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "CatSet"}

// TestUnstructured shows that kinds nobody has a Go type for are served like any other: with an index, a status of
// their own, preconditions, finalizers, and a list of requests that names them.
func TestUnstructured(t *testing.T) {
	ctx := context.Background()
	parent := fakeserver.Of(catSets)
	parent.SetNamespace("default")
	parent.SetName("nap")
	parent.SetUID("uid-of-nap")
	parent.SetFinalizers([]string{"example.com/stay"})
	s := fakeserver.NewWith(t, fakeserver.Kinds{
		Status:  []client.Object{fakeserver.Of(catSets)},
		Indexed: []client.Object{fakeserver.Of(corev1.SchemeGroupVersion.WithKind("Pod"))},
	}, parent)

	pod := fakeserver.Of(corev1.SchemeGroupVersion.WithKind("Pod"))
	pod.SetNamespace("default")
	pod.SetName("nap-0")
	pod.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(parent, catSets)})
	must(t, s.Create(ctx, pod))
	pods := &unstructured.UnstructuredList{}
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	must(t, s.List(ctx, pods, client.InNamespace("default"), client.MatchingFields{ownership.ControllerIndex: ownership.OwnerOf(parent, catSets.GroupKind()).Value()}))
	if len(pods.Items) != 1 || pods.Items[0].GetUID() != pod.GetUID() {
		t.Errorf("the index has %d pods", len(pods.Items))
	}

	merge := func(o *unstructured.Unstructured, body string) error {
		return s.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(body)))
	}
	err := merge(parent.DeepCopy(), `{"metadata":{"uid":"another","labels":{"a":null}}}`)
	if !apierrors.IsConflict(err) {
		t.Errorf("a patch of another UID: %v", err)
	}
	must(t, merge(parent.DeepCopy(), `{"status":{"naps":1}}`))
	must(t, s.Status().Patch(ctx, parent.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"status":{"sleeps":1}}`))))
	stored := fakeserver.Of(catSets)
	must(t, s.Raw.Get(ctx, client.ObjectKeyFromObject(parent), stored))
	if status := stored.Object["status"]; len(status.(map[string]any)) != 1 {
		t.Errorf("the status is %v: a patch of the object must not reach it", status)
	}

	must(t, s.Delete(ctx, parent.DeepCopy()))
	must(t, merge(parent.DeepCopy(), `{"metadata":{"finalizers":null}}`))
	if err := s.Raw.Get(ctx, client.ObjectKeyFromObject(parent), stored); !apierrors.IsNotFound(err) {
		t.Errorf("without its finalizer it is still there: %v", err)
	}
	want := []string{"create Pod nap-0", "list PodList ", "patch CatSet nap", "patch CatSet nap", "patch status CatSet nap", "delete CatSet nap", "patch CatSet nap"}
	var got []string
	for _, c := range s.Calls() {
		got = append(got, c.String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("requests %q, want %q", got, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
