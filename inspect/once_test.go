package inspect_test

import (
	"fmt"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/cairn-dev/cairn/inspect"
)

// TestOnceFromManyGoroutines: a tree lists its kinds at the same time. The race detector sees a map that is written by
// two of them.
func TestOnceFromManyGoroutines(t *testing.T) {
	server := fake.NewClientBuilder().WithScheme(scheme.Scheme).
		WithIndex(&corev1.Event{}, "involvedObject.uid", func(client.Object) []string { return []string{"u"} }).
		WithIndex(&corev1.Event{}, "type", func(client.Object) []string { return []string{corev1.EventTypeWarning} }).
		WithObjects(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n0", Name: "web"}}).Build()
	c := inspect.New(server).Once().Client()
	about := client.MatchingFields{"involvedObject.uid": "u", "type": corev1.EventTypeWarning}
	var all sync.WaitGroup
	for n := range 4 {
		in := client.InNamespace(fmt.Sprintf("n%d", n))
		for range 4 {
			all.Go(func() {
				for _, list := range []client.ObjectList{&corev1.PodList{}, &corev1.ConfigMapList{}, &corev1.SecretList{}} {
					if err := c.List(t.Context(), list, in); err != nil {
						t.Error(err)
					}
				}
				if err := c.List(t.Context(), &corev1.EventList{}, in, about); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	var pods corev1.PodList
	if err := c.List(t.Context(), &pods, client.InNamespace("n0")); err != nil || len(pods.Items) != 1 {
		t.Errorf("%d pods, %v", len(pods.Items), err)
	}
}
