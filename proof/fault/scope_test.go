package fault_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/cairn-dev/cairn/proof/fault"
)

// This file checks what a manager's requests become before they reach the API server.

func TestAManagerSeesOneNamespaceAndWritesNoEvents(t *testing.T) {
	for encoding, mediaType := range eachMedia {
		t.Run(encoding, func(t *testing.T) {
			s := newServer(t)
			cfg := &rest.Config{Host: s.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: mediaType, AcceptContentTypes: mediaType}}
			cfg.Wrap(fault.Within("mine", "configmaps"))
			cfg.Wrap(fault.WithoutEvents)
			c := kubernetes.NewForConfigOrDie(cfg)
			meta := metav1.ObjectMeta{Namespace: "mine", Name: "e"}
			old, err := c.CoreV1().Events("mine").Create(t.Context(), &corev1.Event{ObjectMeta: meta, Reason: "why"}, metav1.CreateOptions{})
			if err != nil || old.Reason != "why" {
				t.Errorf("an event of the core group: %v, %v", old, err)
			}
			event, err := c.EventsV1().Events("mine").Create(t.Context(), &eventsv1.Event{ObjectMeta: meta, Reason: "why"}, metav1.CreateOptions{})
			if err != nil || event.Reason != "why" {
				t.Errorf("an event: %v, %v", event, err)
			}
			_, _ = c.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{})
			_, _ = c.CoreV1().ConfigMaps("").Get(t.Context(), "one", metav1.GetOptions{})
			_, _ = c.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
			_, _ = c.CoreV1().ConfigMaps("other").Create(t.Context(), configMap("made"), metav1.CreateOptions{})
			want := []string{
				"GET /api/v1/namespaces/mine/configmaps", "GET /api/v1/configmaps/one", "GET /api/v1/nodes",
				"POST /api/v1/namespaces/other/configmaps",
			}
			if got := s.requests(); !slices.Equal(got, want) {
				t.Errorf("the server got %q, want %q", got, want)
			}
		})
	}
}
