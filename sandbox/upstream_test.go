package sandbox_test

// These tests check that the upstream controllers can be started and stopped one by one.

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/sandbox"
)

func TestRunUpstream(t *testing.T) {
	c := newCluster(t)
	labels := map[string]string{"app": "agent"}
	sets := c.client.AppsV1().DaemonSets(c.namespace)
	_, err := sets.Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "agent"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec("agent:0")},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		image := fmt.Sprintf("agent:%d", round)
		patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":%q}]}}}}`, image)
		ds, err := sets.Patch(t.Context(), "agent", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if ds.Status.ObservedGeneration >= ds.Generation {
			t.Fatalf("round %d: somebody serves daemon sets although no controller runs", round)
		}
		stop, err := c.RunUpstream(t.Context(), sandbox.DaemonSet)
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, func(ctx context.Context) string {
			now, err := sets.Get(ctx, "agent", metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			if s := now.Status; s.ObservedGeneration < ds.Generation || s.UpdatedNumberScheduled != sandbox.DefaultNodes || s.NumberAvailable != sandbox.DefaultNodes {
				return fmt.Sprintf("round %d: the rollout is not complete: %+v", round, s)
			}
			return ""
		})
		stop()
		stop() // is allowed
	}
	revisions, err := c.client.AppsV1().ControllerRevisions(c.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(revisions.Items) != 3 {
		t.Errorf("%d revisions, want 3", len(revisions.Items))
	}
}

func TestRunUpstreamOfAnUnknownKind(t *testing.T) {
	c := newCluster(t)
	if _, err := c.RunUpstream(t.Context(), "deployment"); err == nil {
		t.Error("no error")
	}
}

func TestStatefulSetAndReplicationControllerAreServed(t *testing.T) {
	c := newCluster(t)
	labels := map[string]string{"app": "db"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec("db")}
	_, err := c.client.AppsV1().StatefulSets(c.namespace).Create(t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db"},
		Spec:       appsv1.StatefulSetSpec{Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	template.Labels = map[string]string{"app": "old"}
	_, err = c.client.CoreV1().ReplicationControllers(c.namespace).Create(t.Context(), &corev1.ReplicationController{
		ObjectMeta: metav1.ObjectMeta{Name: "old"},
		Spec:       corev1.ReplicationControllerSpec{Replicas: new(int32(2)), Selector: template.Labels, Template: &template},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) string {
		sts, err := c.client.AppsV1().StatefulSets(c.namespace).Get(ctx, "db", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		rc, err := c.client.CoreV1().ReplicationControllers(c.namespace).Get(ctx, "old", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if sts.Status.ReadyReplicas != 2 || rc.Status.ReadyReplicas != 2 {
			return fmt.Sprintf("not ready: %+v, %+v", sts.Status, rc.Status)
		}
		return ""
	})
}
