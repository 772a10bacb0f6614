package sandbox_test

// This file tests that a simulated kubelet deletes the pod that it has ended, and no successor of its name.

import (
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/cairn-dev/cairn/sandbox"
)

// kubelet is a client that deletes as KWOK does; before is called before a delete is sent.
func (c cluster) kubelet(t *testing.T, before func()) kubernetes.Interface {
	t.Helper()
	cfg := c.Config()
	wrap, err := sandbox.EndedOnly(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return wrap(roundTripper(func(req *http.Request) (*http.Response, error) {
			before()
			return next.RoundTrip(req)
		}))
	})
	return clientFor(t, cfg)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func TestAKubeletDeletesOnlyThePodThatItHasEnded(t *testing.T) {
	c := newCluster(t)
	pods := c.client.CoreV1().Pods(c.namespace)
	stuck := map[string]string{sandbox.StuckAnnotation: "true"} // or KWOK would be faster
	end := func() {
		t.Helper()
		if err := pods.Delete(t.Context(), "p", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		c.podEventually(t, "p", "terminating", func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
	}
	stays := func(made *corev1.Pod) {
		t.Helper()
		p, err := pods.Get(t.Context(), "p", metav1.GetOptions{})
		if err != nil || p.UID != made.UID || p.DeletionTimestamp != nil {
			t.Fatalf("the pod is %v, %v", p, err)
		}
	}
	remove := c.kubelet(t, func() {}).CoreV1().Pods(c.namespace)

	live := c.pod(t, "p", "nginx", stuck)
	c.podEventually(t, "p", "ready", isReady)
	if err := remove.Delete(t.Context(), "p", metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the delete of a pod that nobody has ended: %v", err)
	}
	stays(live)
	end()
	if err := remove.Delete(t.Context(), "p", metav1.DeleteOptions{}); err != nil {
		t.Errorf("the delete of a pod that was ended: %v", err)
	}
	if err := remove.Delete(t.Context(), "p", metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the second delete of a pod: %v", err)
	}

	// The name gets its next owner between the kubelet's look at the pod and its delete.
	c.pod(t, "p", "nginx", stuck)
	c.podEventually(t, "p", "ready", isReady)
	end()
	var successor *corev1.Pod
	late := c.kubelet(t, func() {
		now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
		if err := pods.Delete(t.Context(), "p", now); err != nil {
			t.Error(err)
		}
		successor = c.pod(t, "p", "nginx", nil)
	})
	if err := late.CoreV1().Pods(c.namespace).Delete(t.Context(), "p", metav1.DeleteOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("the delete of a pod whose name another one has: %v", err)
	}
	stays(successor)
}
