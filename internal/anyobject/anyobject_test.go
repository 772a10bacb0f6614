package anyobject_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/anyobject"
)

func TestDescribe(t *testing.T) {
	for want, o := range map[string]client.Object{
		"Pod team/web-0": &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web-0"}},
		"Node n1":        &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}},
		"CatSet team/nap": &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "CatSet", "metadata": map[string]any{"namespace": "team", "name": "nap"},
		}},
		"StatefulSet team/web": &appsv1.StatefulSet{
			TypeMeta: metav1.TypeMeta{Kind: "StatefulSet"}, ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web"},
		},
	} {
		if got := anyobject.Describe(o); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
