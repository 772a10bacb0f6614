package check_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/check/parents"
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
		{"one place holds two of one revision, and another pod does not serve", []string{"P1"}, func(w *world) {
			p := pod("web", "web-uid", "n1", "h1", "app:1")
			p.Name += "-again"
			w.as("user", func() { w.put(p) })
			w.breaks("web-n2-h1")
			w.ds(func(ds *appsv1.DaemonSet) {
				ds.Status.NumberReady, ds.Status.NumberAvailable, ds.Status.NumberUnavailable = 2, 2, 1
			})
		}},
		{"one place holds two revisions, and the new one does not serve", nil, func(w *world) {
			w.ds(surging(1))
			second(w)
			w.put(pod("web", "web-uid", "n1", "h2", "app:2"))
			w.breaks("web-n1-h2")
			w.report(0, 3)
		}},
		{"pods count by what they are", nil, func(w *world) { w.updated(3) }},
		{"pods that are as asked count as updated", []string{"S1"}, func(w *world) { w.updated(0) }},
		{"pods of another revision that happen to be as asked", nil, func(w *world) {
			w.revision("web-h1", func(r *appsv1.ControllerRevision) { r.Data = revision("web", "web-uid", 1, "h1", "app:0").Data })
			w.put(revision("web", "web-uid", 2, "h2", "app:1"))
			w.updated(0)
		}},
		{"two managers gave the same number", []string{"H2"}, func(w *world) {
			w.put(revision("web", "web-uid", 2, "h2", "app:2"))
			w.put(revision("web", "web-uid", 2, "h3", "app:3"))
		}},
		{"one of two that were renumbered", []string{"H2"}, func(w *world) {
			w.as("user", func() { w.put(revision("web", "web-uid", 2, "h2", "app:2")) })
			w.put(revision("web", "web-uid", 3, "h3", "app:3"))
			w.revision("web-h2", func(r *appsv1.ControllerRevision) { r.Revision = 3 })
		}},
		{"an orphan brought its number", nil, func(w *world) {
			orphan := revision("web", "web-uid", 2, "h2", "app:2")
			refs := orphan.OwnerReferences
			orphan.OwnerReferences = nil
			w.put(orphan)
			w.put(revision("web", "web-uid", 2, "h3", "app:3"))
			w.revision("web-h2", func(r *appsv1.ControllerRevision) { r.OwnerReferences = refs })
		}},
		{"two passes gave the same number at the same moment", nil, func(w *world) { tie(w, true, false) }},
		{"two passes gave the same number, and one had not looked", []string{"H2"}, func(w *world) { tie(w, false, false) }},
		{"two passes gave the same number, and one looked again", []string{"H2"}, func(w *world) { tie(w, true, true) }},
		{"two passes gave what is asked for the same number", []string{"H2"}, func(w *world) {
			w.as("user", func() { w.ds(func(ds *appsv1.DaemonSet) { ds.Spec.Template = template("app:3") }) })
			tie(w, true, false)
			w.as("user", func() {
				for _, name := range []string{"web-n1-h1", "web-n2-h1", "web-n3-h1"} {
					w.pod(name, func(p *corev1.Pod) { p.Spec.Containers[0].Image = "app:3" })
				}
			})
		}},
		{"somebody else gave a number that was taken", nil, func(w *world) {
			w.put(revision("web", "web-uid", 2, "h2", "app:2"))
			w.as("user", func() { w.put(revision("web", "web-uid", 2, "h3", "app:3")) })
		}},
		{"somebody else brought the number of what is asked for", []string{"H2"}, func(w *world) {
			w.as("user", func() { w.put(revision("web", "web-uid", 1, "h2", "app:2")) })
		}},
		{"three of one number, and one was brought", []string{"H2"}, func(w *world) {
			w.as("user", func() { w.ds(func(ds *appsv1.DaemonSet) { ds.Spec.RevisionHistoryLimit = new(int32(3)) }) })
			w.as("user", func() { w.put(revision("web", "web-uid", 2, "h2", "app:2")) })
			w.put(revision("web", "web-uid", 2, "h3", "app:3"))
			w.put(revision("web", "web-uid", 2, "h4", "app:4"))
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
			got := check.Rest(w.history(), w.rv, parents.DaemonSet())
			if len(got) != len(test.want) || len(got) == 1 && got[0].Invariant != test.want[0] {
				t.Errorf("want %v, got %d:\n%s", test.want, len(got), story(got))
			}
		})
	}
}

// tie lets two passes make a revision with number 2 each. The second one has listed the revisions before the first one
// made its own, or not, and perhaps once more after it.
func tie(w *world, looked, again bool) {
	second := seeing("2", w.rv)
	list := func() { w.in(second, func() { w.read("", w.rv) }) }
	if looked {
		list()
	}
	w.in(pass("b", "1"), func() { w.put(revision("web", "web-uid", 2, "h2", "app:2")) })
	if again {
		list()
	}
	w.in(second, func() { w.put(revision("web", "web-uid", 2, "h3", "app:3")) })
}

// updated writes how many pods the status says are up to date.
func (w *world) updated(n int32) {
	w.ds(func(ds *appsv1.DaemonSet) { ds.Status.UpdatedNumberScheduled = n })
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
	if got := check.Check(w.history(), parents.DaemonSet()); len(got) != 0 {
		t.Errorf("on the way: %s", story(got))
	}
	got := check.Rest(w.history(), w.rv, parents.DaemonSet())
	if len(got) != 1 || got[0].Invariant != "H9" {
		t.Errorf("want one violation of H9, got:\n%s", story(got))
	}
	w.remove(&appsv1.ControllerRevision{}, "web-h2")
	if got := check.Rest(w.history(), w.rv, parents.DaemonSet()); len(got) != 0 {
		t.Errorf("within the limit: %s", story(got))
	}
}
