package sandbox_test

// This file holds what the tests of a running sandbox share.

import (
	"context"
	"os"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/cairn-dev/cairn/sandbox"
	"github.com/cairn-dev/cairn/sandbox/sandboxtest"
)

func TestMain(m *testing.M) {
	// No controller for DaemonSets: TestRunUpstream runs it when it wants it.
	os.Exit(sandboxtest.Main(m, sandbox.Options{Replaced: []string{sandbox.DaemonSet}, Requests: hear}))
}

// patience is how long a condition may take to become true on a busy machine.
const patience = time.Minute

// cluster is the shared sandbox as one test sees it.
type cluster struct {
	*sandbox.Sandbox
	client    kubernetes.Interface
	namespace string
}

func newCluster(t *testing.T) cluster {
	t.Helper()
	s := sandboxtest.Get(t)
	return cluster{s, clientFor(t, s.Config()), sandboxtest.Namespace(t, s)}
}

func clientFor(t *testing.T, cfg *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// eventually waits until check returns "", and fails the test with its last answer when it never does.
func eventually(t *testing.T, check func(ctx context.Context) string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		answer := check(ctx)
		if answer == "" {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("after %s: %s", patience, answer)
		}
	}
}

// pod creates a pod named name with the annotations.
func (c cluster) pod(t *testing.T, name, image string, annotations map[string]string) *corev1.Pod {
	t.Helper()
	pod, err := c.client.CoreV1().Pods(c.namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations},
		Spec:       podSpec(image),
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

// podEventually waits until check is content with the pod, and returns it.
func (c cluster) podEventually(t *testing.T, name, want string, check func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	eventually(t, func(ctx context.Context) (answer string) {
		var err error
		if pod, err = c.client.CoreV1().Pods(c.namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err.Error()
		}
		if !check(pod) {
			return "pod " + name + " is not " + want + "; status: " + pod.Status.String()
		}
		return ""
	})
	return pod
}

// annotate sets an annotation of a pod, or removes it when value is nil.
func (c cluster) annotate(t *testing.T, pod, key string, value *string) {
	t.Helper()
	quoted := "null"
	if value != nil {
		quoted = `"` + *value + `"`
	}
	c.patchPod(t, pod, `{"metadata":{"annotations":{"`+key+`":`+quoted+`}}}`)
}

func (c cluster) patchPod(t *testing.T, pod, patch string) {
	t.Helper()
	_, err := c.client.CoreV1().Pods(c.namespace).Patch(t.Context(), pod, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func podSpec(image string) corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}}
}

func isReady(pod *corev1.Pod) bool { return condition(pod, corev1.PodReady) == corev1.ConditionTrue }

func runsUnready(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning && condition(pod, corev1.PodReady) == corev1.ConditionFalse
}

func condition(pod *corev1.Pod, kind corev1.PodConditionType) corev1.ConditionStatus {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return ""
}

func deployment(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(replicas),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec("nginx")},
		},
	}
}
