package e2e

import (
	"context"
	"maps"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file hands the ReplicaSets of a Deployment over between the upstream controller and cairn, while upstream's
// Deployment controller goes on.

// TestDeploymentHandover: at rest no pod is written. In the middle of a rollout, and of the rollback after it, who
// takes over makes just the pods that are missing, inside the budget, and takes away none that is to stay.
func TestDeploymentHandover(t *testing.T) {
	for name, c := range map[string]struct{ first, second func(*env) func() }{
		"upstream to cairn": {(*env).replicaUpstream, (*env).replicaCairn},
		"cairn to upstream": {(*env).replicaCairn, (*env).replicaUpstream},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			made := e.made("web")
			stop := c.first(e)
			d := e.deployment("web", "app:1", 6)
			d.Spec.Template.Annotations = map[string]string{"sandbox.cairn.dev/ready-after": "200ms"} // a rollout takes its time
			e.create(d)
			e.deployed(d)
			stop()

			idle := e.appPods("web")
			stop = c.second(e)
			for _, seconds := range []int32{1, 0} {
				e.lookedAt(d, seconds)
			}
			e.sameVersions("at rest", idle, e.appPods("web"))

			// A quarter of six may be unavailable, rounded down. The Deployment controller counts its surge in what it asked
			// for, so that while nobody runs ReplicaSets there can be more.
			e.budgetOf(d.Name, d.Namespace, d.Spec.Selector, 6, 5, 12)
			half := e.halfway(d, "app:2")
			stop()
			stop = c.first(e)
			e.goesOn(d, half)
			half = e.halfway(d, "app:1")
			stop()
			c.second(e)
			e.goesOn(d, half)
			if got, want := made(), map[string]int{"app:1": 12, "app:2": 6}; !maps.Equal(got, want) {
				t.Errorf("pods were made of %v, want %v", got, want)
			}
		})
	}
}

// editDeployment changes a Deployment, whatever happened to it meanwhile.
func (e *env) editDeployment(d *appsv1.Deployment, change func(*appsv1.DeploymentSpec)) {
	e.Helper()
	e.eventually("edit the Deployment", func() error {
		fresh := &appsv1.Deployment{}
		if err := e.Get(e.Context(), client.ObjectKeyFromObject(d), fresh); err != nil {
			return err
		}
		change(&fresh.Spec)
		*d = *fresh
		return e.Update(e.Context(), d)
	})
}

// lookedAt makes the controller of ReplicaSets look at that of d once more: the Deployment controller passes a change
// of minReadySeconds on.
func (e *env) lookedAt(d *appsv1.Deployment, minReadySeconds int32) {
	e.Helper()
	e.editDeployment(d, func(spec *appsv1.DeploymentSpec) { spec.MinReadySeconds = minReadySeconds })
	e.eventually("wait until the ReplicaSet was looked at", func() error {
		var list appsv1.ReplicaSetList
		if err := e.List(e.Context(), &list, client.InNamespace(e.namespace)); err != nil {
			return err
		}
		for _, set := range list.Items {
			if set.Spec.MinReadySeconds != minReadySeconds || set.Status.ObservedGeneration != set.Generation {
				return errorf("minReadySeconds %d, observed %d of %d", set.Spec.MinReadySeconds, set.Status.ObservedGeneration, set.Generation)
			}
		}
		return nil
	})
	e.deployed(d)
}

// halfway changes the image, and returns the pods there are when some are made from it, and some are left that are not.
func (e *env) halfway(d *appsv1.Deployment, image string) map[string]corev1.Pod {
	e.Helper()
	e.editDeployment(d, func(spec *appsv1.DeploymentSpec) { spec.Template.Spec.Containers[0].Image = image })
	var pods map[string]corev1.Pod
	e.eventually("wait until the rollout is half-way", func() error {
		pods = e.appPods(d.Name)
		updated := 0
		for _, pod := range pods {
			if pod.Spec.Containers[0].Image == image {
				updated++
			}
		}
		if updated == len(pods) {
			e.Fatal("the rollout was over before the handover")
		}
		if updated < 3 {
			return errorf("%d of %d are updated", updated, len(pods))
		}
		return nil
	})
	return pods
}

// goesOn waits for the end of the rollout, and fails the test if a pod of half that was to stay did not.
func (e *env) goesOn(d *appsv1.Deployment, half map[string]corev1.Pod) {
	e.Helper()
	e.deployed(d)
	image := d.Spec.Template.Spec.Containers[0].Image
	after := e.appPods(d.Name)
	for name, pod := range half {
		if pod.Spec.Containers[0].Image == image && after[name].UID != pod.UID {
			e.Errorf("pod %s conformed already and was replaced", name)
		}
	}
	for name, pod := range after {
		if pod.Spec.Containers[0].Image != image {
			e.Errorf("pod %s runs %s", name, pod.Spec.Containers[0].Image)
		}
	}
}

// made counts the pods of app=<name> that are made from now on until the returned function is called, by image.
func (e *env) made(name string) func() map[string]int {
	e.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(e.Context()))
	w, err := e.Watch(ctx, &corev1.PodList{}, client.InNamespace(e.namespace), client.MatchingLabels{"app": name})
	if err != nil {
		e.Fatal(err)
	}
	count := map[string]int{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range w.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok && event.Type == watch.Added {
				count[pod.Spec.Containers[0].Image]++
			}
		}
	}()
	return func() map[string]int {
		cancel()
		w.Stop()
		<-done
		return count
	}
}
