package e2e

import (
	"os"
	"reflect"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery"

	"github.com/cairn-dev/cairn/internal/manager/skew"
	"github.com/cairn-dev/cairn/sandbox/sandboxtest"
)

// TestNoFieldIsLost: an API server of the same version, or an earlier one, knows no field that the types do not, so
// that nothing is said. Types that lack most fields show that the API server's own schema is understood.
func TestNoFieldIsLost(t *testing.T) {
	e := newEnv(t)
	client, err := discovery.NewDiscoveryClientForConfig(e.sandbox.Config())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := skew.Of(t.Context(), client.RESTClient()); err != nil || got.Newer() > 0 || os.Getenv(sandboxtest.BinariesVariable) == "" && got.Newer() != 0 {
		t.Errorf("the API server is of 1.%d, the types of 1.%d (%v)", got.Server, got.Types, err)
	}
	kinds := []skew.Kind{
		{GroupVersion: appsv1.SchemeGroupVersion, Kind: "DaemonSet", Type: reflect.TypeFor[appsv1.DaemonSet]()},
		{GroupVersion: appsv1.SchemeGroupVersion, Kind: "ReplicaSet", Type: reflect.TypeFor[appsv1.ReplicaSet]()},
		{GroupVersion: appsv1.SchemeGroupVersion, Kind: "StatefulSet", Type: reflect.TypeFor[appsv1.StatefulSet]()},
		{GroupVersion: corev1.SchemeGroupVersion, Kind: "ReplicationController", Type: reflect.TypeFor[corev1.ReplicationController]()},
	}
	lost, err := skew.Lost(t.Context(), client.RESTClient(), kinds...)
	lost = slices.DeleteFunc(lost, func(field string) bool { return field == "spec.template.spec.workloadRef" }) // alpha, in 1.35 only
	if err != nil || len(lost) > 0 {
		t.Errorf("lost: %v (%v)", lost, err)
	}
	type container struct {
		Name string `json:"name"`
	}
	type podSpec struct {
		Containers []container `json:"containers"`
	}
	type old struct {
		Spec struct {
			Template struct {
				Spec podSpec `json:"spec"`
			} `json:"template"`
		} `json:"spec"`
	}
	kinds[0].Type = reflect.TypeFor[old]()
	if lost, err = skew.Lost(t.Context(), client.RESTClient(), kinds[0]); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, field := range lost {
		found[field] = true
	}
	for _, want := range []string{"spec.updateStrategy", "spec.template.metadata", "spec.template.spec.hostNetwork", "spec.template.spec.containers[].image"} {
		if !found[want] {
			t.Errorf("%s is not found to be lost: %v", want, lost)
		}
	}
}
