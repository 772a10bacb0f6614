package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/scenario"
	"github.com/cairn-dev/cairn/sandbox"
)

// This file tells the simulated kubelet what to do with a pod.

// Pod implements [scenario.Stage].
func (s *Stage) Pod(ctx context.Context, name string, state scenario.PodState) error {
	patch := map[scenario.PodState]string{
		scenario.Ready:     `"` + sandbox.ReadyAnnotation + `":null`,
		scenario.Unready:   `"` + sandbox.ReadyAnnotation + `":"false"`,
		scenario.Failed:    `"` + sandbox.PhaseAnnotation + `":"Failed"`,
		scenario.Succeeded: `"` + sandbox.PhaseAnnotation + `":"Succeeded"`,
		scenario.Stuck:     `"` + sandbox.StuckAnnotation + `":"true"`,
		scenario.Gone:      `"` + sandbox.StuckAnnotation + `":null`,
	}[state]
	pods := s.host.user.CoreV1().Pods(s.namespace)
	pod, err := pods.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"annotations":{`+patch+`}}}`), metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("tell the kubelet about pod %s: %w", name, err)
	}
	return s.Until(ctx, fmt.Sprintf("pod %s to be %s", name, state), func(ctx context.Context) error {
		now, err := pods.Get(ctx, name, metav1.GetOptions{})
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err != nil || now.UID != pod.UID || reached(now, state) {
			return nil //nolint:nilerr // it is gone, in whatever state it was
		}
		return fmt.Errorf("its phase is %s", now.Status.Phase)
	})
}

// reached reports whether a pod that is there is in a state.
func reached(pod *corev1.Pod, state scenario.PodState) bool {
	switch state {
	case scenario.Ready, scenario.Unready:
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady {
				return (c.Status == corev1.ConditionTrue) == (state == scenario.Ready)
			}
		}
		return false
	case scenario.Failed:
		return pod.Status.Phase == corev1.PodFailed
	case scenario.Succeeded:
		return pod.Status.Phase == corev1.PodSucceeded
	case scenario.Stuck:
		return true
	case scenario.Gone:
	}
	return false // who is there is not gone
}
