package sandbox_test

// These tests check that pods and nodes can be steered, as the package comment says.

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/sandbox"
)

func TestReadyAnnotation(t *testing.T) {
	c := newCluster(t)
	c.pod(t, "p", "nginx", map[string]string{sandbox.ReadyAnnotation: "false"})
	before := c.podEventually(t, "p", "running and unready", runsUnready)
	c.annotate(t, "p", sandbox.ReadyAnnotation, nil)
	c.podEventually(t, "p", "ready", isReady)
	c.annotate(t, "p", sandbox.ReadyAnnotation, new("false"))
	after := c.podEventually(t, "p", "running and unready", runsUnready)
	if after.Status.PodIP != before.Status.PodIP || after.Status.PodIP == "" {
		t.Errorf("the pod's address went from %q to %q", before.Status.PodIP, after.Status.PodIP)
	}
	if n := after.Status.ContainerStatuses[0].RestartCount; n != 0 {
		t.Errorf("the container restarted %d times", n)
	}
}

func TestReadyAfterAnnotation(t *testing.T) {
	c := newCluster(t)
	const delay = 700 * time.Millisecond
	created := time.Now()
	c.pod(t, "p", "nginx", map[string]string{sandbox.ReadyAfterAnnotation: delay.String()})
	c.podEventually(t, "p", "running and unready", runsUnready)
	c.podEventually(t, "p", "ready", isReady)
	if took := time.Since(created); took < delay {
		t.Errorf("the pod was ready after %s, want %s or more", took, delay)
	}
	// A restart takes as long.
	c.patchPod(t, "p", `{"spec":{"containers":[{"name":"main","image":"nginx:2"}]}}`)
	c.podEventually(t, "p", "running and unready", runsUnready)
	c.podEventually(t, "p", "ready", isReady)
}

func TestPhaseAnnotation(t *testing.T) {
	c := newCluster(t)
	c.pod(t, "failed", "nginx", map[string]string{sandbox.PhaseAnnotation: "Failed"})
	pod := c.podEventually(t, "failed", "failed", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed })
	if s := pod.Status.ContainerStatuses[0].State.Terminated; s == nil || s.ExitCode != 1 {
		t.Errorf("the container's state is %v, want exit code 1", s)
	}
	c.pod(t, "live", "nginx", nil)
	c.podEventually(t, "live", "ready", isReady)
	c.annotate(t, "live", sandbox.PhaseAnnotation, new("Succeeded"))
	pod = c.podEventually(t, "live", "succeeded", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodSucceeded })
	if s := pod.Status.ContainerStatuses[0].State.Terminated; s == nil || s.ExitCode != 0 || isReady(pod) {
		t.Errorf("the container's state is %v, ready %v; want exit code 0, not ready", s, isReady(pod))
	}
}

func TestBrokenImage(t *testing.T) {
	c := newCluster(t)
	broken := func(p *corev1.Pod) bool {
		return !isReady(p) && len(p.Status.ContainerStatuses) == 1 &&
			p.Status.ContainerStatuses[0].State.Waiting != nil && p.Status.ContainerStatuses[0].State.Waiting.Reason == "ErrImagePull"
	}
	c.pod(t, "p", "nginx:broken", nil)
	pod := c.podEventually(t, "p", "waiting for its image", broken)
	if pod.Status.Phase != corev1.PodPending {
		t.Errorf("the pod is %s, want Pending", pod.Status.Phase)
	}
	c.patchPod(t, "p", `{"spec":{"containers":[{"name":"main","image":"nginx:1"}]}}`)
	c.podEventually(t, "p", "ready", isReady)
	c.patchPod(t, "p", `{"spec":{"containers":[{"name":"main","image":"nginx:broken2"}]}}`)
	c.podEventually(t, "p", "waiting for its image", broken)
}

func TestNewImageRestartsTheContainer(t *testing.T) {
	c := newCluster(t)
	c.pod(t, "p", "nginx:1", nil)
	before := c.podEventually(t, "p", "ready", isReady).Status.ContainerStatuses[0]
	c.patchPod(t, "p", `{"spec":{"containers":[{"name":"main","image":"nginx:2"}]}}`)
	pod := c.podEventually(t, "p", "ready with nginx:2", func(p *corev1.Pod) bool {
		return isReady(p) && p.Status.ContainerStatuses[0].Image == "nginx:2"
	})
	after := pod.Status.ContainerStatuses[0]
	if after.RestartCount != before.RestartCount+1 || after.ImageID == before.ImageID || after.ContainerID == before.ContainerID {
		t.Errorf("before: %v\nafter: %v\nwant one more restart, another image ID and container ID", before, after)
	}
}

func TestReadinessGate(t *testing.T) {
	c := newCluster(t)
	spec := podSpec("nginx")
	spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/gate"}}
	_, err := c.client.CoreV1().Pods(c.namespace).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.podEventually(t, "p", "running and unready", runsUnready)
	_, err = c.client.CoreV1().Pods(c.namespace).Patch(t.Context(), "p", types.StrategicMergePatchType,
		[]byte(`{"status":{"conditions":[{"type":"example.com/gate","status":"True"}]}}`), metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
	c.podEventually(t, "p", "ready", isReady)
}

func TestDeletedPodGoesAtOnceOrAsItsAnnotationsSay(t *testing.T) {
	c := newCluster(t)
	const delay = 700 * time.Millisecond
	c.pod(t, "plain", "nginx", nil)
	c.pod(t, "slow", "nginx", map[string]string{sandbox.DeleteAfterAnnotation: delay.String()})
	c.pod(t, "stuck", "nginx", map[string]string{sandbox.StuckAnnotation: "true"})
	for _, name := range []string{"plain", "slow", "stuck"} {
		c.podEventually(t, name, "ready", isReady)
	}
	gone := func(name string) {
		t.Helper()
		eventually(t, func(ctx context.Context) string {
			_, err := c.client.CoreV1().Pods(c.namespace).Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return ""
			}
			return fmt.Sprintf("pod %s is still there (%v)", name, err)
		})
	}
	deleted := time.Now()
	for _, name := range []string{"stuck", "slow", "plain"} {
		if err := c.client.CoreV1().Pods(c.namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	gone("plain")
	gone("slow")
	if took := time.Since(deleted); took < delay {
		t.Errorf("the slow pod was gone after %s, want %s or more", took, delay)
	}
	c.podEventually(t, "stuck", "terminating", func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
	c.annotate(t, "stuck", sandbox.StuckAnnotation, nil)
	gone("stuck")
}

func TestScaleNodes(t *testing.T) {
	c := newCluster(t)
	count := func() int {
		nodes, err := c.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return len(nodes.Items)
	}
	scale := func(n int) {
		t.Helper()
		if err := c.ScaleNodes(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		if got := count(); got != n {
			t.Fatalf("%d nodes, want %d", got, n)
		}
	}
	scale(7)
	spec := podSpec("nginx")
	spec.NodeName = "node-6"
	if _, err := c.client.CoreV1().Pods(c.namespace).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: spec}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.podEventually(t, "p", "ready", isReady)
	scale(sandbox.DefaultNodes)
	if _, err := c.client.CoreV1().Pods(c.namespace).Get(t.Context(), "p", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the pod of a deleted node: %v, want not found", err)
	}
	// The gap is filled, and pods are alive on the new node.
	if err := c.DeleteNode(t.Context(), "node-1"); err != nil {
		t.Fatal(err)
	}
	scale(sandbox.DefaultNodes)
	if _, err := c.client.CoreV1().Nodes().Get(t.Context(), "node-1", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	spec.NodeName = "node-1"
	if _, err := c.client.CoreV1().Pods(c.namespace).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: spec}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.podEventually(t, "q", "ready", isReady)
}

func TestNodeReadyAnnotation(t *testing.T) {
	c := newCluster(t)
	set := func(value string, want bool) {
		t.Helper()
		patch := []byte(`{"metadata":{"annotations":{"` + sandbox.ReadyAnnotation + `":` + value + `}}}`)
		if _, err := c.client.CoreV1().Nodes().Patch(t.Context(), "node-0", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, func(ctx context.Context) string {
			nodes, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", "node-0").String()})
			if err != nil {
				return err.Error()
			}
			node := nodes.Items[0]
			tainted := len(node.Spec.Taints) > 0
			if nodeReady(&node) != want || tainted == want {
				return fmt.Sprintf("ready %v, taints %v; want ready %v", nodeReady(&node), node.Spec.Taints, want)
			}
			return ""
		})
	}
	set(`"false"`, false)
	set(`null`, true)
}
