package readiness

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// This file says why a pod is not ready, in the words of whoever knows: the scheduler, the kubelet, or who owns a
// readiness gate.

// Blocker says in one sentence why a pod is not ready, empty if it is. The order is that in which a pod starts: a node,
// the init containers, the containers, the readiness gates.
func Blocker(pod *corev1.Pod) string {
	if Ready(pod) {
		return ""
	}
	for _, why := range []func(*corev1.Pod) string{unscheduled, failed, initializing, containers, gates, unready} {
		if text := why(pod); text != "" {
			return text
		}
	}
	if pod.Spec.NodeName == "" {
		return "it is not scheduled yet"
	}
	return "its kubelet has not reported on it yet"
}

// FirstBlocker says of the first of pods, by name, that is not ready why, as in "pod web-0: it is not scheduled".
// Terminating ones do not count. It is empty if all are ready.
func FirstBlocker(pods []*corev1.Pod) string {
	var first *corev1.Pod
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil && !Ready(pod) && (first == nil || pod.Name < first.Name) {
			first = pod
		}
	}
	if first == nil {
		return ""
	}
	return "pod " + first.Name + ": " + Blocker(first)
}

func conditionOf(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// because joins a reason and a message, either of which may be missing.
func because(what, reason, message string) string {
	return strings.Join(slices.DeleteFunc([]string{what, reason, message}, func(s string) bool { return s == "" }), ": ")
}

func unscheduled(pod *corev1.Pod) string {
	c := conditionOf(pod, corev1.PodScheduled)
	if c == nil || c.Status != corev1.ConditionFalse {
		return ""
	}
	return because("it is not scheduled", c.Reason, c.Message)
}

// failed is about pods that have ended. A pod that was evicted says so itself; else its containers do.
func failed(pod *corev1.Pod) string {
	switch {
	case pod.Status.Phase == corev1.PodFailed && pod.Status.Reason != "":
		return because("it has failed", pod.Status.Reason, pod.Status.Message)
	case pod.Status.Phase == corev1.PodSucceeded:
		return "it has ended"
	}
	return ""
}

// initializing is about the init container whose turn it is. Those that always restart run beside the containers, and
// only have to start.
func initializing(pod *corev1.Pod) string {
	for i := range pod.Status.InitContainerStatuses {
		s := &pod.Status.InitContainerStatuses[i]
		sidecar := slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
			return c.Name == s.Name && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		})
		ended := s.State.Terminated
		switch {
		case sidecar && s.Started != nil && *s.Started, !sidecar && ended != nil && ended.ExitCode == 0:
			continue
		case s.State.Running != nil:
			return "init container " + s.Name + " is running" + restarts(s)
		}
		return container("init container ", s)
	}
	return ""
}

// containers is about the container that is worst off: one that cannot run, then one that ended, then one that is not
// ready yet.
func containers(pod *corev1.Pod) string {
	worst, rank := "", 0
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		r := 0
		switch {
		case s.State.Waiting != nil && !starting(s.State.Waiting.Reason):
			r = 4
		case s.State.Terminated != nil:
			r = 3
		case s.State.Waiting != nil:
			r = 2
		case !s.Ready:
			r = 1
		}
		if r > rank {
			worst, rank = container("container ", s), r
		}
	}
	return worst
}

// starting reports whether kubelets give this reason for a container that nothing is wrong with.
func starting(reason string) bool {
	return reason == "ContainerCreating" || reason == "PodInitializing"
}

// container says what a container does instead of being ready.
func container(what string, s *corev1.ContainerStatus) string {
	what += s.Name
	switch waiting, ended := s.State.Waiting, s.State.Terminated; {
	case waiting != nil:
		out := because(what+" is waiting", waiting.Reason, waiting.Message)
		if last := s.LastTerminationState.Terminated; last != nil {
			out += "; it ended with " + exited(last)
		}
		return out + restarts(s)
	case ended != nil:
		return because(what+" ended with "+exited(ended), "", ended.Message) + restarts(s)
	default:
		return what + " is running and not ready" + restarts(s)
	}
}

func exited(t *corev1.ContainerStateTerminated) string {
	out := fmt.Sprintf("exit code %d", t.ExitCode)
	if t.Reason != "" {
		out += " (" + t.Reason + ")"
	}
	return out
}

func restarts(s *corev1.ContainerStatus) string {
	switch s.RestartCount {
	case 0:
		return ""
	case 1:
		return "; restarted once"
	}
	return fmt.Sprintf("; restarted %d times", s.RestartCount)
}

// gates is about conditions that somebody else has to set.
func gates(pod *corev1.Pod) string {
	for _, gate := range pod.Spec.ReadinessGates {
		switch c := conditionOf(pod, gate.ConditionType); {
		case c == nil:
			return fmt.Sprintf("readiness gate %s is not set", gate.ConditionType)
		case c.Status != corev1.ConditionTrue:
			return because(fmt.Sprintf("readiness gate %s is %s", gate.ConditionType, c.Status), c.Reason, c.Message)
		}
	}
	return ""
}

// unready is what the pod says where it says no more.
func unready(pod *corev1.Pod) string {
	if pod.Status.Phase == corev1.PodFailed {
		return because("it has failed", "", pod.Status.Message)
	}
	switch c := Condition(pod); {
	case c == nil || c.Reason == "" && c.Message == "" && len(pod.Status.ContainerStatuses) == 0:
		return ""
	case c.Reason == "" && c.Message == "": // the containers were ready when their kubelet reported last
		return "its containers were ready, and node " + pod.Spec.NodeName + " is not"
	default:
		return because("it is not ready", c.Reason, c.Message)
	}
}
