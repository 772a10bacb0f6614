package calibrate_test

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/proof/check/parents"
	"github.com/cairn-dev/cairn/sandbox"
)

// This file is what two upstream ReplicaSet controllers get wrong.

func replicaSets(t *testing.T) *room {
	t.Helper()
	return newRoom(t, sandbox.ReplicaSet, parents.ReplicaSet())
}

// replicaSet creates one named web.
func (r *room) replicaSet(replicas int32) {
	r.Helper()
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       appsv1.ReplicaSetSpec{Replicas: new(replicas), Selector: selector(), Template: template("app:1")},
	}
	if _, err := r.User.AppsV1().ReplicaSets(r.Namespace).Create(r.Context(), rs, metav1.CreateOptions{}); err != nil {
		r.Fatal(err)
	}
}

// replicas waits until the ReplicaSet says that it has so many, all of them available, and none is going.
func (r *room) replicas(n int32) {
	r.Helper()
	r.Eventually("wait for the replicas", func(ctx context.Context) error {
		rs, err := r.User.AppsV1().ReplicaSets(r.Namespace).Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		s := rs.Status
		if s.ObservedGeneration < rs.Generation || s.Replicas != n || s.AvailableReplicas != n || s.TerminatingReplicas == nil || *s.TerminatingReplicas > 0 {
			return fmt.Errorf("generation %d, status %v", rs.Generation, s.String())
		}
		return nil
	})
}

// Number 54. What a manager expects is in its own memory, and the names of pods are random: nothing tells two of them
// apart from one. Both hear of pods late, so that each makes all of them whatever the load of the machine is.
func TestTwoManagersMakeTooManyPods(t *testing.T) {
	const asked = 5
	r := replicaSets(t)
	late := schema.GroupResource{Resource: "pods"}
	hear := []func(){r.manager().faults.Hold(late), r.manager().faults.Hold(late)}
	r.replicaSet(asked)
	r.Eventually("both make their pods", func(ctx context.Context) error {
		pods, err := r.User.CoreV1().Pods(r.Namespace).List(ctx, metav1.ListOptions{})
		if err == nil && len(pods.Items) < 2*asked {
			err = fmt.Errorf("there are %d pods", len(pods.Items))
		}
		return err
	})
	for _, release := range hear {
		release()
	}
	r.replicas(asked)

	found := r.ever()
	surplus := 0
	for _, v := range found {
		if v.Invariant == "P2" {
			surplus++
		}
	}
	if surplus < asked {
		t.Errorf("%d pods too many were found, want at least %d", surplus, asked)
	}
}
