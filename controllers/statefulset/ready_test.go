package statefulset

// The state of one pod: ready, available, and whether it ever was.

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/cairn-dev/cairn/internal/readiness"
)

func TestNeverReady(t *testing.T) {
	started := now.Add(-time.Hour)
	condition := func(status corev1.ConditionStatus, since time.Time) podOption {
		return func(p *corev1.Pod) { condition(p, status, since) }
	}
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"it waits for a node":                       {pod(0, "a", pending), true},
		"no kubelet has said anything":              {pod(0, "a", func(p *corev1.Pod) { p.Status.Conditions = nil }), true},
		"not ready since it started":                {pod(0, "a", condition(corev1.ConditionFalse, started)), true},
		"the stamps are a second apart":             {pod(0, "a", condition(corev1.ConditionFalse, started.Add(time.Second))), true},
		"it is ready":                               {pod(0, "a"), false},
		"it was ready":                              {pod(0, "a", unready), false},
		"it was ready for two seconds":              {pod(0, "a", condition(corev1.ConditionFalse, started.Add(2*time.Second))), false},
		"by a clock that is behind":                 {pod(0, "a", condition(corev1.ConditionFalse, started.Add(-10*time.Minute))), false},
		"nobody knows when it started":              {pod(0, "a", stuck, func(p *corev1.Pod) { p.Status.StartTime = nil }), false},
		"unknown, because its node is":              {pod(0, "a", condition(corev1.ConditionUnknown, now)), false},
		"it crashed before it was ready, as it did": {pod(0, "a", stuck, restarted), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := readiness.NeverReady(c.pod); got != c.want {
				t.Errorf("%v", got)
			}
		})
	}
}

func restarted(p *corev1.Pod) {
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", RestartCount: 7}}
}

func TestFailing(t *testing.T) {
	container := func(state corev1.ContainerState) podOption {
		return func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "sidecar", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}, {Name: "web", State: state}}
		}
	}
	exit := func(code int32) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}
	}
	inits := func(c corev1.ContainerStatus) podOption {
		return func(p *corev1.Pod) { p.Status.InitContainerStatuses = []corev1.ContainerStatus{c} }
	}
	scheduled := func(reason string) podOption {
		return func(p *corev1.Pod) {
			unschedulable(p)
			p.Status.Conditions[0].Reason = reason
		}
	}
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"nothing is known":              {pod(0, "a", pending), false},
		"it runs and is not ready":      {pod(0, "a", stuck), false},
		"it restarted, and runs":        {pod(0, "a", stuck, restarted), false},
		"it is being made":              {pod(0, "a", stuck, waits("ContainerCreating")), false},
		"its init containers run":       {pod(0, "a", stuck, waits("PodInitializing")), false},
		"a reason that nobody knows":    {pod(0, "a", stuck, waits("Meditating")), false},
		"it crashes":                    {pod(0, "a", crashing), true},
		"its image is refused":          {pod(0, "a", stuck, waits("InvalidImageName")), true},
		"its image is not there":        {pod(0, "a", stuck, waits("ErrImagePull")), true},
		"its image is not there, again": {pod(0, "a", stuck, waits("ImagePullBackOff")), true},
		"its image may not be pulled":   {pod(0, "a", stuck, waits("ErrImageNeverPull")), true},
		"a secret is not there":         {pod(0, "a", stuck, waits("CreateContainerConfigError")), true},
		"its command is not there":      {pod(0, "a", stuck, waits("RunContainerError")), true},
		"it ended with an error":        {pod(0, "a", stuck, container(exit(1))), true},
		"it ended well":                 {pod(0, "a", stuck, container(exit(0))), false},
		"an init container crashes":     {pod(0, "a", stuck, waits("PodInitializing"), inits(waitingFor("CrashLoopBackOff"))), true},
		"an init container ended well":  {pod(0, "a", stuck, inits(corev1.ContainerStatus{State: exit(0)})), false},
		"no node will take it":          {pod(0, "a", unschedulable), true},
		"its scheduling is gated":       {pod(0, "a", scheduled(corev1.PodReasonSchedulingGated)), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := failing(c.pod); got != c.want {
				t.Errorf("%v", got)
			}
		})
	}
}

func TestAvailability(t *testing.T) {
	for name, c := range map[string]struct {
		pod       *corev1.Pod
		available bool
		left      time.Duration
	}{
		"long ago":         {pod(0, "a"), true, 0},
		"just now":         {pod(0, "a", ready(0)), false, 10 * time.Second},
		"not ready":        {pod(0, "a", unready), false, 0},
		"not running":      {pod(0, "a", func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }), false, 0},
		"nothing is known": {pod(0, "a", func(p *corev1.Pod) { p.Status = corev1.PodStatus{} }), false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			available, left := availability(c.pod, 10*time.Second, now)
			if available != c.available || left != c.left {
				t.Errorf("%v, %s left", available, left)
			}
		})
	}
}

// TestCounts shows each counter by itself. Whatever was there, none is ever below zero or above the replicas (41).
func TestCounts(t *testing.T) {
	set := web(minReadyFor(10))
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want counts
	}{
		"available":         {pod(0, "b"), counts{1, 1, 1, 0, 1}},
		"current":           {pod(0, "a"), counts{1, 1, 1, 1, 0}},
		"of another one":    {pod(0, "z"), counts{1, 1, 1, 0, 0}},
		"of none":           {pod(0, "", func(p *corev1.Pod) { p.Labels = nil }), counts{1, 1, 1, 0, 0}},
		"for too short":     {pod(0, "b", ready(time.Second)), counts{1, 1, 0, 0, 1}},
		"not ready":         {pod(0, "b", unready), counts{1, 0, 0, 0, 1}},
		"going":             {pod(0, "b", terminating), counts{1, 1, 1, 0, 0}},
		"condemned":         {pod(9, "b"), counts{1, 1, 1, 0, 1}},
		"not there yet":     {pod(0, "b", func(p *corev1.Pod) { p.Status = corev1.PodStatus{} }), counts{}},
		"of another's name": {called(pod(0, "b"), "web-00"), counts{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := countsOf(set, []*corev1.Pod{c.pod}, "web-a", "web-b", now); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}
