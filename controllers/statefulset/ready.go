package statefulset

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/cairn-dev/cairn/internal/readiness"
)

// This file reads the state of one pod. It is pure.

// alive reports whether a pod holds its place: it has not ended and is not terminating.
func alive(pod *corev1.Pod) bool { return pod != nil && !going(pod) && !ended(pod) }

func going(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil }

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// isReady reports whether a pod runs and is ready, as kubectl users know it.
func isReady(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning && readiness.Ready(pod)
}

// availability reports whether a pod has been ready for long enough at a given time and, if it is ready but has not,
// how long that takes.
func availability(pod *corev1.Pod, minReady time.Duration, now time.Time) (available bool, left time.Duration) {
	if !isReady(pod) {
		return false, 0
	}
	return readiness.Available(pod, minReady, now)
}

// failing reports whether a pod will not become ready as it is, by what its kubelet and the scheduler say now: a
// container of it, an init container included, cannot be started or ended with an error, or no node can take the pod. A
// pod that is only slow is not failing, however long it takes.
func failing(pod *corev1.Pod) bool { return fails(pod, containerFails) }

// unstarted reports whether a pod fails before it runs: no node can take it, or a container of it waits and has never
// run. A crash does not count, because the container may start later.
func unstarted(pod *corev1.Pod) bool {
	return fails(pod, func(c corev1.ContainerStatus) bool {
		waits := c.State.Waiting
		return waits != nil && waits.Reason != "CrashLoopBackOff" && c.RestartCount == 0 && containerFails(c)
	})
}

func fails(pod *corev1.Pod, container func(corev1.ContainerStatus) bool) bool {
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return true
		}
	}
	return slices.ContainsFunc(pod.Status.InitContainerStatuses, container) || slices.ContainsFunc(pod.Status.ContainerStatuses, container)
}

// failures are the reasons for which kubelets report that a container waits and cannot be started. Any other reason
// (ContainerCreating, PodInitializing, a new one) says nothing against the pod: it is not deleted on a guess.
var failures = []string{
	"CrashLoopBackOff", "RunContainerError", "CreateContainerError", "CreateContainerConfigError", "ContainerCannotRun", "StartError",
	"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "ImageInspectError", "InvalidImageName", "RegistryUnavailable",
	"SignatureValidationFailed", "PreCreateHookError", "PreStartHookError", "PostStartHookError", "RunInitContainerError",
	"CreatePodSandboxError", "ConfigPodSandboxError",
}

func containerFails(c corev1.ContainerStatus) bool {
	switch {
	case c.State.Waiting != nil:
		return slices.Contains(failures, c.State.Waiting.Reason)
	case c.State.Terminated != nil:
		return c.State.Terminated.ExitCode != 0
	default:
		return false
	}
}
