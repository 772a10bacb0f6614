package readiness_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/cairn-dev/cairn/internal/readiness"
)

// TestBlocker: whoever keeps a pod from being ready is quoted.
func TestBlocker(t *testing.T) {
	waiting := func(name, reason, message string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message},
		}}
	}
	ended := func(name string, code int32, reason string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason},
		}}
	}
	running := corev1.ContainerStatus{Name: "slow", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	crashing := waiting("main", "CrashLoopBackOff", "back-off 40s restarting failed container")
	crashing.LastTerminationState = ended("", 137, "OOMKilled").State
	crashing.RestartCount = 5
	starting := waiting("main", "PodInitializing", "")
	condition := func(kind corev1.PodConditionType, status corev1.ConditionStatus, reason, message string) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: status, Reason: reason, Message: message}
	}
	unready := condition(corev1.PodReady, corev1.ConditionFalse, "ContainersNotReady", "containers with unready status: [main]")
	sidecar := running
	sidecar.Name, sidecar.Started = "proxy", new(true)
	for want, pod := range map[string]corev1.Pod{
		"": {Status: corev1.PodStatus{Conditions: []corev1.PodCondition{condition(corev1.PodReady, corev1.ConditionTrue, "", "")}}},
		"it is not scheduled: Unschedulable: 0/5 nodes are available": {Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			condition(corev1.PodScheduled, corev1.ConditionFalse, "Unschedulable", "0/5 nodes are available"),
		}}},
		"it is not scheduled yet":                {},
		"its kubelet has not reported on it yet": {Spec: corev1.PodSpec{NodeName: "n1"}},
		"it has failed: Evicted: the node was low on memory": {Status: corev1.PodStatus{
			Phase: corev1.PodFailed, Reason: "Evicted", Message: "the node was low on memory",
		}},
		"it has ended": {Status: corev1.PodStatus{Phase: corev1.PodSucceeded}},
		"container main is waiting: ImagePullBackOff: no such image": {Status: corev1.PodStatus{
			Conditions: []corev1.PodCondition{unready}, ContainerStatuses: []corev1.ContainerStatus{running, waiting("main", "ImagePullBackOff", "no such image")},
		}},
		"container main is waiting: CreateContainerConfigError: secret \"key\" not found": {Status: corev1.PodStatus{
			ContainerStatuses: []corev1.ContainerStatus{waiting("main", "CreateContainerConfigError", "secret \"key\" not found"), ended("done", 0, "Completed")},
		}},
		"container main is waiting: CrashLoopBackOff: back-off 40s restarting failed container; it ended with exit code 137 (OOMKilled); restarted 5 times": {
			Status: corev1.PodStatus{Conditions: []corev1.PodCondition{unready}, ContainerStatuses: []corev1.ContainerStatus{crashing}},
		},
		"container main ended with exit code 2 (Error)": {Status: corev1.PodStatus{
			Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{ended("main", 2, "Error")},
		}},
		"container main is waiting: ContainerCreating": {Status: corev1.PodStatus{
			ContainerStatuses: []corev1.ContainerStatus{running, waiting("main", "ContainerCreating", "")},
		}},
		"container slow is running and not ready": {Status: corev1.PodStatus{
			Conditions: []corev1.PodCondition{unready}, ContainerStatuses: []corev1.ContainerStatus{running},
		}},
		"init container setup ended with exit code 1 (Error)": {Status: corev1.PodStatus{
			InitContainerStatuses: []corev1.ContainerStatus{ended("first", 0, "Completed"), ended("setup", 1, "Error")},
			ContainerStatuses:     []corev1.ContainerStatus{starting},
		}},
		"init container slow is running": {Status: corev1.PodStatus{
			InitContainerStatuses: []corev1.ContainerStatus{running}, ContainerStatuses: []corev1.ContainerStatus{starting},
		}},
		"container main is waiting: PodInitializing": {
			Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "proxy", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}},
			Status: corev1.PodStatus{
				InitContainerStatuses: []corev1.ContainerStatus{sidecar}, ContainerStatuses: []corev1.ContainerStatus{starting},
			},
		},
		"readiness gate example.com/lb is not set": {
			Spec: corev1.PodSpec{ReadinessGates: []corev1.PodReadinessGate{{ConditionType: "example.com/lb"}}},
			Status: corev1.PodStatus{
				Conditions:        []corev1.PodCondition{condition(corev1.PodReady, corev1.ConditionFalse, "ReadinessGatesNotReady", "no gate")},
				ContainerStatuses: []corev1.ContainerStatus{{Name: "main", Ready: true, State: running.State}},
			},
		},
		"readiness gate example.com/dns is False: NoRecord: web has no address": {
			Spec:   corev1.PodSpec{ReadinessGates: []corev1.PodReadinessGate{{ConditionType: "example.com/dns"}}},
			Status: corev1.PodStatus{Conditions: []corev1.PodCondition{condition("example.com/dns", corev1.ConditionFalse, "NoRecord", "web has no address")}},
		},
		"its containers were ready, and node n1 is not": {
			Spec: corev1.PodSpec{NodeName: "n1"},
			Status: corev1.PodStatus{
				Conditions:        []corev1.PodCondition{condition(corev1.PodReady, corev1.ConditionFalse, "", "")},
				ContainerStatuses: []corev1.ContainerStatus{{Name: "main", Ready: true, State: running.State}},
			},
		},
		"it is not ready: ContainersNotReady: containers with unready status: [main]": {
			Status: corev1.PodStatus{Conditions: []corev1.PodCondition{unready}},
		},
	} {
		if got := readiness.Blocker(&pod); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
