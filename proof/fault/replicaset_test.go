package fault_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/cairn-dev/cairn/proof/check/parents"
	"github.com/cairn-dev/cairn/proof/fault"
)

// This file is the sweep's subjects ReplicaSet and ReplicationController: pods that only have a number. Every run is
// judged at every write by P2: no manager makes a pod beyond the number that is asked for. Two managers at once have a
// bound of their own, which package check states (rules_number.go): what one of them could not know excuses it only as
// far as orphans were adopted, or names became free, since it looked. At rest there are never too many.

const replicatedName = "swept"

var replicaSetResource = schema.GroupResource{Group: "apps", Resource: "replicasets"}

func replicaSets() subject {
	return builtIn(parents.ReplicaSet(), subject{
		scenarios: []fault.Scenario{scaledUpAndDown(), lostAndAdopted(), twoManagersOfReplicas()},
		aimed: []fault.Fault{
			{Mode: fault.Unseen, At: 1, Resource: podResource, Verb: "create", Times: 3},
			{Mode: fault.KillStale, At: 2, Resource: podResource, Verb: "create", Times: 2},
			{Mode: fault.KillStale, At: 1, Resource: podResource, Verb: "delete", Times: 2},
		},
		refusals: []fault.Refusal{
			{Resource: podResource, Verb: "create", Status: http.StatusForbidden, After: 1, Times: 4},
			{Resource: podResource, Verb: "delete", Status: http.StatusForbidden, Times: 3},
			{Resource: replicaSetResource, Subresource: "status", Status: http.StatusInternalServerError, Times: 3},
		},
	})
}

func replicationControllers() subject {
	return builtIn(parents.ReplicationController(), subject{
		scenarios: []fault.Scenario{scaledController()},
	})
}

// scaledUpAndDown asks for three pods, for five and for two.
func scaledUpAndDown() fault.Scenario {
	return fault.Scenario{
		Name:   "replicaset scaled up and down",
		Points: fault.Every(3),
		Drive: steps(
			createReplicaSet(3),
			scaleReplicaSet(5),
			until("five pods", replicasEnded(5)),
			scaleReplicaSet(2),
		),
		Ended: replicasEnded(2),
	}
}

// lostAndAdopted begins with an orphan, which counts, and loses the pod that was made beside it. A pod that belongs to
// nobody in the end is one too many.
func lostAndAdopted() fault.Scenario {
	const orphan = replicatedName + "-orphan"
	return fault.Scenario{
		Name:   "replicaset adopts a pod and loses one",
		Points: fault.Every(4),
		Drive: func(ctx context.Context, e *fault.Env) error {
			template, pods := replicatedTemplate(), e.Client.CoreV1().Pods(e.Namespace)
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: orphan, Labels: template.Labels}, Spec: template.Spec}
			if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
				return err
			}
			if err := createReplicaSet(2)(ctx, e); err != nil {
				return err
			}
			list, err := pods.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name!=" + orphan})
			if err != nil {
				return err
			}
			if len(list.Items) == 0 {
				return errors.New("there is no pod beside the orphan")
			}
			return losePod(list.Items[0].Name)(ctx, e)
		},
		Ended: replicasEnded(2),
	}
}

// twoManagersOfReplicas is the scaling with two managers that both believe to be the leader.
func twoManagersOfReplicas() fault.Scenario {
	s := scaledUpAndDown()
	s.Name, s.Managers, s.Points = "replicaset scaled up and down by two managers", 2, fault.Every(9)
	if !full {
		s.Once = true
	}
	return s
}

// scaledController asks a ReplicationController for two pods and for one.
func scaledController() fault.Scenario {
	return fault.Scenario{
		Name:   "replicationcontroller scaled down",
		Points: fault.Every(4),
		Drive:  steps(createController, until("the first pods", controllerEnded(2)), scaleController),
		Ended:  controllerEnded(1),
	}
}

func createController(ctx context.Context, e *fault.Env) error {
	template := replicatedTemplate()
	rc := &corev1.ReplicationController{
		ObjectMeta: metav1.ObjectMeta{Name: replicatedName},
		Spec:       corev1.ReplicationControllerSpec{Replicas: new(int32(2)), Selector: template.Labels, Template: &template},
	}
	_, err := e.Client.CoreV1().ReplicationControllers(e.Namespace).Create(ctx, rc, metav1.CreateOptions{})
	return err
}

func scaleController(ctx context.Context, e *fault.Env) error {
	rcs, patch := e.Client.CoreV1().ReplicationControllers(e.Namespace), []byte(`{"spec":{"replicas":1}}`)
	_, err := rcs.Patch(ctx, replicatedName, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// controllerEnded checks that the ReplicationController reports n pods, and that they are there.
func controllerEnded(n int32) step {
	return func(ctx context.Context, e *fault.Env) error {
		rc, err := e.Client.CoreV1().ReplicationControllers(e.Namespace).Get(ctx, replicatedName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if s := rc.Status; s.ObservedGeneration != rc.Generation || s.Replicas != n || s.AvailableReplicas != n {
			return fmt.Errorf("generation %d, status %+v", rc.Generation, s)
		}
		return podsReady(int(n))(ctx, e)
	}
}

func replicatedTemplate() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": replicatedName}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "app:1"}}},
	}
}

// createReplicaSet makes a ReplicaSet, and waits until its pods are there.
func createReplicaSet(n int32) step {
	return func(ctx context.Context, e *fault.Env) error {
		template := replicatedTemplate()
		set := &appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{Name: replicatedName},
			Spec:       appsv1.ReplicaSetSpec{Replicas: &n, Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template},
		}
		if _, err := e.Client.AppsV1().ReplicaSets(e.Namespace).Create(ctx, set, metav1.CreateOptions{}); err != nil {
			return err
		}
		return until("the first pods", replicasEnded(n))(ctx, e)
	}
}

func scaleReplicaSet(n int32) step {
	return func(ctx context.Context, e *fault.Env) error {
		sets := e.Client.AppsV1().ReplicaSets(e.Namespace)
		_, err := sets.Patch(ctx, replicatedName, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n), metav1.PatchOptions{})
		return err
	}
}

// replicasEnded returns nil if there are so many pods, all of them ready, and the ReplicaSet says so.
func replicasEnded(n int32) step {
	return func(ctx context.Context, e *fault.Env) error {
		set, err := e.Client.AppsV1().ReplicaSets(e.Namespace).Get(ctx, replicatedName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		s := set.Status
		if s.ObservedGeneration != set.Generation || s.Replicas != n || s.AvailableReplicas != n || len(s.Conditions) > 0 ||
			s.TerminatingReplicas != nil && *s.TerminatingReplicas != 0 {
			return fmt.Errorf("generation %d, status %+v", set.Generation, s)
		}
		return podsReady(int(n))(ctx, e)
	}
}

// podsReady returns nil if there are so many pods, none of them going, and all are ready.
func podsReady(n int) step {
	return func(ctx context.Context, e *fault.Env) error {
		pods, err := e.Client.CoreV1().Pods(e.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(pods.Items) != n {
			return fmt.Errorf("there are %d pods, want %d", len(pods.Items), n)
		}
		for i := range pods.Items {
			if pod := &pods.Items[i]; pod.DeletionTimestamp != nil || !podutil.IsPodReady(pod) {
				return fmt.Errorf("pod %s is going, or not ready", pod.Name)
			}
		}
		return nil
	}
}
