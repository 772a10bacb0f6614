package builder

import (
	"bytes"
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
)

// A snapshot has what the user has written, and what the user has chosen to leave empty.
func TestSnapshotsAreAsTheUserWroteThem(t *testing.T) {
	d, err := sound().describe(clientgoscheme.Scheme, mapper())
	if err != nil {
		t.Fatal(err)
	}
	rs := &appsv1.ReplicaSet{}
	rs.Spec.Template.Spec = corev1.PodSpec{
		Containers: []corev1.Container{{Name: "main", Image: "app:1"}},
		Volumes:    []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
	}
	typed, err := format{&history.Apps{Versioned: d.target}}.Snapshot(rs)
	if err != nil {
		t.Fatal(err)
	}
	written := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
		"containers": []any{map[string]any{"name": "main", "image": "app:1"}},
		"volumes":    []any{map[string]any{"name": "tmp", "emptyDir": map[string]any{}}},
	}}}}}
	untyped, err := d.target.Snapshot(written)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(typed.Data(), untyped.Data()) {
		t.Errorf("%s, want %s", typed.Data(), untyped.Data())
	}
}

// optioned notes the options of a list.
type optioned struct {
	client.Reader

	client.ListOptions
}

func (o *optioned) List(_ context.Context, _ client.ObjectList, opts ...client.ListOption) error {
	o.ApplyOptions(opts)
	return nil
}

// A pass reads what the cache holds, also where the manager's cache hands out copies.
func TestListsAreNotCopied(t *testing.T) {
	reader := &optioned{}
	if err := (uncopied{reader}).List(t.Context(), &corev1.PodList{}, client.InNamespace("shop")); err != nil {
		t.Fatal(err)
	}
	if reader.UnsafeDisableDeepCopy == nil || !*reader.UnsafeDisableDeepCopy || reader.Namespace != "shop" {
		t.Errorf("%+v", reader.ListOptions)
	}
}
