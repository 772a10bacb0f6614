package sandbox_test

// These tests check that the control plane is whole: what is created comes to life, what is deleted goes.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/cairn-dev/cairn/sandbox"
	"github.com/cairn-dev/cairn/sandbox/sandboxtest"
)

func TestReportsTheVersionItWasBuiltFrom(t *testing.T) {
	info, err := clientFor(t, sandboxtest.Get(t).Config()).Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if info.GitVersion != sandbox.KubernetesVersion || info.Major+"."+info.Minor != "1.37" {
		t.Errorf("the API server says %s (%s.%s), want %s", info.GitVersion, info.Major, info.Minor, sandbox.KubernetesVersion)
	}
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if want := "k8s.io/kubernetes " + sandbox.KubernetesVersion + "\n"; !strings.Contains(string(mod), want) {
		t.Errorf("go.mod selects another release than %q", want)
	}
}

func TestStartsWithReadyNodes(t *testing.T) {
	c := newCluster(t)
	nodes, err := c.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(nodes.Items) != sandbox.DefaultNodes {
		t.Errorf("%d nodes, want %d", len(nodes.Items), sandbox.DefaultNodes)
	}
	for _, node := range nodes.Items {
		if !nodeReady(&node) || len(node.Spec.Taints) > 0 {
			t.Errorf("node %s is not ready or has taints: %v", node.Name, node.Spec.Taints)
		}
	}
}

func TestOneSandboxPerProcess(t *testing.T) {
	sandboxtest.Get(t)
	if _, err := sandbox.Start(t.Context(), sandbox.Options{}); !errors.Is(err, sandbox.ErrAlreadyRunning) {
		t.Errorf("a second Start returned %v, want ErrAlreadyRunning", err)
	}
}

func TestDeploymentGetsReadyPodsAndIsCollected(t *testing.T) {
	c := newCluster(t)
	apps := c.client.AppsV1()
	if _, err := apps.Deployments(c.namespace).Create(t.Context(), deployment("web", 7), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) string {
		d, err := apps.Deployments(c.namespace).Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if d.Status.ReadyReplicas != 7 || d.Status.AvailableReplicas != 7 {
			return fmt.Sprintf("the deployment is not available: %+v", d.Status)
		}
		return ""
	})
	pods, err := c.client.CoreV1().Pods(c.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	addresses := map[string]bool{}
	for _, pod := range pods.Items {
		addresses[pod.Status.PodIP] = true
	}
	if len(addresses) != 7 || addresses[""] {
		t.Errorf("seven pods have the addresses %v", addresses)
	}

	err = apps.Deployments(c.namespace).Delete(t.Context(), "web", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) string {
		if _, err := apps.Deployments(c.namespace).Get(ctx, "web", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("the deployment is still there (%v)", err)
		}
		return c.leftPods(ctx)
	})
}

func (c cluster) leftPods(ctx context.Context) string {
	pods, err := c.client.CoreV1().Pods(c.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	if n := len(pods.Items); n > 0 {
		return fmt.Sprintf("%d pods are still there", n)
	}
	return ""
}

func TestNamespaceIsEmptiedAndDeleted(t *testing.T) {
	c := newCluster(t)
	if _, err := c.client.AppsV1().Deployments(c.namespace).Create(t.Context(), deployment("web", 2), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.client.CoreV1().Namespaces().Delete(t.Context(), c.namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) string {
		ns, err := c.client.CoreV1().Namespaces().Get(ctx, c.namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprintf("namespace %s is still there (%v): %+v", c.namespace, err, ns.Status)
	})
}

func TestJobCompletes(t *testing.T) {
	c := newCluster(t)
	spec := podSpec("busybox")
	spec.RestartPolicy = corev1.RestartPolicyNever
	_, err := c.client.BatchV1().Jobs(c.namespace).Create(t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "once"},
		Spec:       batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: spec}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) string {
		job, err := c.client.BatchV1().Jobs(c.namespace).Get(ctx, "once", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if job.Status.Succeeded != 1 || job.Status.CompletionTime == nil {
			return fmt.Sprintf("the job is not complete: %+v", job.Status)
		}
		return ""
	})
}

func TestServiceGetsEndpoints(t *testing.T) {
	c := newCluster(t)
	if _, err := c.client.AppsV1().Deployments(c.namespace).Create(t.Context(), deployment("web", 2), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := c.client.CoreV1().Services(c.namespace).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "web"},
			Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) string {
		slices, err := c.client.DiscoveryV1().EndpointSlices(c.namespace).List(ctx, metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=web"})
		if err != nil {
			return err.Error()
		}
		ready := 0
		for _, slice := range slices.Items {
			for _, e := range slice.Endpoints {
				if ptr.Deref(e.Conditions.Ready, false) {
					ready++
				}
			}
		}
		if ready != 2 {
			return fmt.Sprintf("%d ready endpoints, want 2", ready)
		}
		return ""
	})
}

func nodeReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
