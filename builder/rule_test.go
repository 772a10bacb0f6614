package builder

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// What a pod waits for is what a person would look for: the container that cannot start, before the condition that
// follows from it.
func TestWhyAPodIsNotReady(t *testing.T) {
	waits := func(name, reason string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}
	}
	runs := corev1.ContainerStatus{Name: "sidecar", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	unready := []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	says := []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, Message: "containers with unready status: [web]"}}
	for name, c := range map[string]struct {
		status corev1.PodStatus
		want   string
	}{
		"nothing is known":    {corev1.PodStatus{}, "it has not started yet"},
		"ready":               {corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}, ""},
		"not ready":           {corev1.PodStatus{Conditions: unready}, "it is not ready"},
		"the kubelet says so": {corev1.PodStatus{Conditions: says, ContainerStatuses: []corev1.ContainerStatus{runs}}, "containers with unready status: [web]"},
		"no image": {
			corev1.PodStatus{Conditions: says, ContainerStatuses: []corev1.ContainerStatus{runs, waits("web", "ErrImagePull")}},
			"container web: ErrImagePull",
		},
		"an init container": {
			corev1.PodStatus{
				Conditions: says, InitContainerStatuses: []corev1.ContainerStatus{waits("init", "CrashLoopBackOff")},
				ContainerStatuses: []corev1.ContainerStatus{waits("web", "PodInitializing")},
			},
			"container init: CrashLoopBackOff",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, why := podReady(&corev1.Pod{Status: c.status}); why != c.want {
				t.Errorf("%q, want %q", why, c.want)
			}
		})
	}
}
