package check_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cairn-dev/cairn/sandbox/check"
)

// This file is C1 and P1 at rest: the spec is reached, or something stands in the way.

func TestTheSpecIsReachedAtRest(t *testing.T) {
	lost := func(w *world, node string) {
		w.as("user", func() { w.remove(&corev1.Pod{}, "web-"+node+"-h1") })
		w.ds(func(ds *appsv1.DaemonSet) {
			ds.Status.CurrentNumberScheduled, ds.Status.NumberReady, ds.Status.NumberAvailable = 2, 2, 2
			ds.Status.UpdatedNumberScheduled, ds.Status.NumberUnavailable = 2, 1
		})
	}
	conditions := func(w *world, status corev1.ConditionStatus, message string) {
		w.ds(func(ds *appsv1.DaemonSet) {
			ds.Status.Conditions = []appsv1.DaemonSetCondition{{Type: "Updated", Status: status, Reason: "Because", Message: message}}
		})
	}
	onDelete := func(w *world) {
		w.as("user", func() {
			w.ds(func(ds *appsv1.DaemonSet) { ds.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType })
		})
	}
	for _, test := range []struct {
		name string
		want []string
		do   func(w *world)
	}{
		{"nothing to do", nil, func(*world) {}},
		{"a place is empty", []string{"C1"}, func(w *world) { lost(w, "n1") }},
		{"a place is empty, and another pod does not serve", []string{"C1"}, func(w *world) {
			// Only the kind could say whether the one waits for the other; that no condition says so is wrong in any case.
			lost(w, "n1")
			w.breaks("web-n2-h1")
			w.ds(func(ds *appsv1.DaemonSet) {
				ds.Status.NumberReady, ds.Status.NumberAvailable, ds.Status.NumberUnavailable = 1, 1, 2
			})
			conditions(w, corev1.ConditionTrue, "all is well")
		}},
		{"the rollout has stopped", []string{"C1"}, func(w *world) { second(w); w.report(0, 3) }},
		{"the rollout waits for a pod that does not serve", nil, func(w *world) {
			second(w)
			w.breaks("web-n1-h1")
			w.report(0, 2)
		}},
		{"the rollout waits for a user", nil, func(w *world) {
			onDelete(w)
			second(w)
			w.report(0, 3)
		}},
		{"the rollout waits for a user, and says so", nil, func(w *world) {
			onDelete(w)
			second(w)
			w.report(0, 3)
			conditions(w, corev1.ConditionFalse, "waiting for somebody to delete the pods")
		}},
		{"the rollout waits for a user, and says that it is over", []string{"C1"}, func(w *world) {
			onDelete(w)
			second(w)
			w.report(0, 3)
			conditions(w, corev1.ConditionTrue, "all pods are updated")
		}},
		{"one place holds two", []string{"P1"}, func(w *world) {
			p := pod("web", "web-uid", "n1", "h1", "app:1")
			p.Name += "-again"
			w.as("user", func() { w.put(p) })
		}},
		{"a pod is where none may be", []string{"P1"}, func(w *world) {
			w.as("user", func() {
				w.put(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "n1"}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoExecute}}}})
			})
			w.ds(func(ds *appsv1.DaemonSet) {
				ds.Status = status(1, 2, 2)
				ds.Status.DesiredNumberScheduled, ds.Status.CurrentNumberScheduled, ds.Status.NumberUnavailable, ds.Status.NumberMisscheduled = 2, 2, 0, 1
			})
		}},
		{"a revision holds what another one holds, after an error", []string{"H1"}, func(w *world) {
			w.put(revision("web", "web-uid", 2, "h2", "app:1"))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			test.do(w)
			got := check.Rest(w.history(), w.rv, check.DaemonSet())
			if len(got) != len(test.want) || len(got) == 1 && got[0].Invariant != test.want[0] {
				t.Errorf("want %v, got %d:\n%s", test.want, len(got), story(got))
			}
		})
	}
}

// Truncation may fail on the way, and non-live revisions pile up; only at rest the limit holds.
func TestTheLimitHoldsAtRestOnly(t *testing.T) {
	w := newWorld(t)
	for i, image := range []string{"app:2", "app:3", "app:4", "app:1"} {
		w.edit(image)
		if hash := "h" + image[4:]; hash != "h1" {
			w.put(revision("web", "web-uid", int64(i+2), hash, image))
		}
	}
	w.revision("web-h1", func(r *appsv1.ControllerRevision) { r.Revision = 9 })
	w.report(3, 3)
	if got := check.Check(w.history(), check.DaemonSet()); len(got) != 0 {
		t.Errorf("on the way: %s", story(got))
	}
	got := check.Rest(w.history(), w.rv, check.DaemonSet())
	if len(got) != 1 || got[0].Invariant != "H9" {
		t.Errorf("want one violation of H9, got:\n%s", story(got))
	}
	w.remove(&appsv1.ControllerRevision{}, "web-h2")
	if got := check.Rest(w.history(), w.rv, check.DaemonSet()); len(got) != 0 {
		t.Errorf("within the limit: %s", story(got))
	}
}
