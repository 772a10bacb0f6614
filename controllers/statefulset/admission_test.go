package statefulset

// What admission makes of pods: whatever it takes away, no pod that serves is replaced again and again.

import (
	"context"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/cairn-dev/cairn/internal/fakeserver"
	"github.com/cairn-dev/cairn/ownership"
)

func TestAdmissionThatChangesPods(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		// pods are there in the end; so many are created and deleted, at most, until somebody mends admission.
		pods, creates, deletes int
		says                   string
	}{
		"the revision label":   {func(p *corev1.Pod) { delete(p.Labels, appsv1.StatefulSetRevisionLabel) }, 3, 3, 0, "label controller-revision-hash is"},
		"the selector's label": {func(p *corev1.Pod) { delete(p.Labels, "app") }, 0, 1, 1, "the selector does not match"},
		"its owner":            {func(p *corev1.Pod) { p.OwnerReferences[0].UID = "another" }, 0, 1, 1, "it has another owner"},
		"that it has one":      {func(p *corev1.Pod) { p.OwnerReferences = nil }, 3, 3, 0, "latest ControllerRevision"},
		"one revision label": {func(p *corev1.Pod) {
			if p.Name == "web-2" {
				delete(p.Labels, appsv1.StatefulSetRevisionLabel)
			}
		}, 3, 8, 5, "label controller-revision-hash is"}, // a dry run has no name, and tells nothing
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, web())
			clock := testingclock.NewFakeClock(now)
			process := func() { // remembers nothing
				config := w.r.Config
				config.Consistency, config.Clock = ownership.NewConsistencyStore(nil), clock
				w.r = newReconciler(config, false)
			}
			w.Before = func(call fakeserver.Call) error {
				if pod, ok := call.Object.(*corev1.Pod); ok && strings.Contains(call.Verb, "create") {
					c.change(pod)
				}
				return nil
			}
			passes := func(n int) {
				for range n {
					_, _ = w.r.Reconcile(context.Background(), request)
					w.settle()
					clock.Step(20 * time.Second)
				}
			}
			process()
			passes(20)
			process()
			passes(20)
			creates, deletes, trials := w.Count("create", "Pod"), w.Count("delete", "Pod"), w.Count(fakeserver.TryCreate, "Pod")
			if creates > c.creates+1 || deletes > c.deletes+1 || len(w.pods()) != c.pods || trials > 40 || (trials == 0) != (name == "that it has one") {
				t.Errorf("%d creates, %d deletes and %d dry runs, and %d pods", creates, deletes, trials, len(w.pods()))
			}
			if got := w.condition(appsv1.StatefulSetConditionType("Updated")); !strings.Contains(got, c.says) {
				t.Errorf("the condition is %s, want %q", got, c.says)
			}
			if strings.Contains(c.says, "label controller") { // upstream replaces web-2 without end, and no other pod
				w.edit(image("web:2"))
				passes(20)
				if made := w.Count("create", "Pod") - creates; made > 3 || !strings.HasSuffix(w.images(), "web:2") {
					t.Errorf("an edit made %d pods: %s", made, w.images())
				}
			}
			w.Before = nil
			passes(40)
			for _, pod := range w.pods() {
				if pod.Labels[appsv1.StatefulSetRevisionLabel] != w.set().Status.UpdateRevision {
					t.Errorf("in the end pod %s has labels %v", pod.Name, pod.Labels)
				}
			}
			if len(w.pods()) != 3 {
				t.Errorf("in the end there are %d pods", len(w.pods()))
			}
		})
	}
}
