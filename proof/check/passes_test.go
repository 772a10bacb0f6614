package check_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/check/parents"
)

// This file is about caches that lag, two managers and writes on their way: what nobody could know breaks no promise,
// and what its author must have known does.

var (
	podResource       = corev1.SchemeGroupVersion.WithResource("pods")
	nodeResource      = corev1.SchemeGroupVersion.WithResource("nodes")
	parentResource    = appsv1.SchemeGroupVersion.WithResource("daemonsets")
	revisionResources = appsv1.SchemeGroupVersion.WithResource("controllerrevisions")
)

// seeing is a pass whose caches had reached a resource version.
func seeing(id string, rv uint64) *check.Pass {
	return &check.Pass{ID: id, Instance: "a", Views: map[schema.GroupVersionResource]uint64{
		podResource: rv, nodeResource: rv, parentResource: rv, revisionResources: rv,
	}}
}

func pass(instance, id string) *check.Pass { return &check.Pass{ID: id, Instance: instance} }

func (w *world) breaks(name string) {
	w.as("kubelet", func() { w.pod(name, func(p *corev1.Pod) { p.Status = corev1.PodStatus{} }) })
}

func (w *world) taint(taints ...corev1.Taint) {
	w.as("user", func() {
		w.put(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "n1"}, Spec: corev1.NodeSpec{Taints: taints}})
	})
}

// lost is a world where somebody deleted a pod that a manager made, and saw.
func lost(w *world) {
	w.as("kubelet", func() { w.remove(&corev1.Pod{}, "web-n1-h1") })
	w.in(seeing("0", w.rv), func() { w.put(pod("web", "web-uid", "n1", "h1", "app:1")) })
	w.in(seeing("1", w.rv), func() { w.report(3, 3) })
	w.as("kubelet", func() { w.remove(&corev1.Pod{}, "web-n1-h1") })
}

// unlisted is a pass that lists the pods of the parent, by its labels or all, and then deletes a revision. The pod that
// comes from it has just lost its labels, and the cache shows none.
func unlisted(w *world, byLabels bool) {
	w.put(revision("web", "web-uid", 2, "h2", "app:2"))
	view := w.rv
	w.as("user", func() {
		p := pod("web", "web-uid", "n1", "h2", "app:2")
		delete(p.Labels, "app")
		w.put(p)
	})
	w.in(seeing("1", view), func() {
		list := &check.Entry{User: w.actor, Verb: "list", Resource: "pods", Namespace: namespace, Code: 200, RV: w.rv, Pass: w.pass}
		if byLabels {
			list.Labels = labels.SelectorFromSet(labels.Set{"app": "web"})
		}
		w.log = append(w.log, list)
		w.remove(&appsv1.ControllerRevision{}, "web-h2")
	})
}

func TestWhatTheAuthorMayHaveSeen(t *testing.T) {
	for _, test := range []struct {
		want, name string
		do         func(w *world)
	}{
		{"", "a pod broke after the view", func(w *world) {
			second(w)
			view := w.rv
			w.breaks("web-n1-h1")
			w.in(seeing("1", view), func() { w.mark("web-n2-h1") })
		}},
		{"R1", "a pod broke before the view", func(w *world) {
			second(w)
			w.breaks("web-n1-h1")
			w.in(seeing("1", w.rv), func() { w.mark("web-n2-h1") })
		}},
		{"R1", "a pod broke before its process began", func(w *world) {
			second(w)
			view := w.rv
			w.breaks("web-n1-h1")
			p := seeing("1", view)
			p.Born = w.rv
			w.in(p, func() { w.mark("web-n2-h1") })
		}},
		{"", "a pod broke after its process began", func(w *world) {
			second(w)
			p := seeing("1", w.rv)
			p.Born = w.rv
			w.breaks("web-n1-h1")
			w.in(p, func() { w.mark("web-n2-h1") })
		}},
		{"R1", "a pod broke before the pass listed pods past the cache", func(w *world) {
			second(w)
			view := w.rv
			w.breaks("web-n1-h1")
			w.in(seeing("1", view), func() {
				w.log = append(w.log, &check.Entry{
					User: w.actor, Verb: "list", Resource: "pods", Namespace: namespace, Code: 200, RV: w.rv, Pass: w.pass,
				})
				w.mark("web-n2-h1")
			})
		}},
		{"", "a list of pods past the cache failed", func(w *world) {
			second(w)
			view := w.rv
			w.breaks("web-n1-h1")
			w.in(seeing("1", view), func() {
				w.log = append(w.log, &check.Entry{
					User: w.actor, Verb: "list", Resource: "pods", Namespace: namespace, Code: 500, RV: w.rv, Pass: w.pass,
				})
				w.mark("web-n2-h1")
			})
		}},
		{"", "a pod began to serve while the pass went on", func(w *world) {
			servingFor(w, 10*time.Minute)
			w.breaks("web-n2-h1")
			p := seeing("1", w.rv)
			p.At = start.Add(time.Hour - time.Second)
			w.in(p, func() { w.mark("web-n1-h1") })
		}},
		{"R1", "a pod served when the pass began", func(w *world) {
			servingFor(w, 10*time.Minute)
			w.breaks("web-n2-h1")
			p := seeing("1", w.rv)
			p.At = start.Add(time.Hour)
			w.in(p, func() { w.mark("web-n1-h1") })
		}},
		{"R1", "a pod broke before the version that the delete insisted on", func(w *world) {
			second(w)
			view := w.rv
			w.breaks("web-n1-h1")
			w.as("kubelet", func() { w.pod("web-n2-h1", func(p *corev1.Pod) { p.Status.HostIP = "10.0.0.2" }) })
			w.in(seeing("1", view), func() { w.mark("web-n2-h1") })
		}},
		{"R1", "its own delete after the view", func(w *world) {
			second(w)
			view := w.rv
			w.in(seeing("1", view), func() { w.mark("web-n1-h1") })
			w.in(seeing("2", view), func() { w.mark("web-n2-h1") })
		}},
		{"", "another manager's delete after the view", func(w *world) {
			second(w)
			view := w.rv
			w.in(pass("b", "1"), func() { w.mark("web-n1-h1") })
			w.in(seeing("2", view), func() { w.mark("web-n2-h1") })
		}},
		{"R1", "another manager's delete before the view", func(w *world) {
			second(w)
			w.in(pass("b", "1"), func() { w.mark("web-n1-h1") })
			w.in(seeing("2", w.rv), func() { w.mark("web-n2-h1") })
		}},
		{"R1", "a pod broke before the last pass wrote a pod", func(w *world) {
			second(w)
			w.in(pass("a", "1"), func() { w.mark("web-n1-h1") })
			w.as("kubelet", func() { w.remove(&corev1.Pod{}, "web-n1-h1") })
			w.breaks("web-n3-h1")
			w.in(pass("a", "2"), func() { w.put(pod("web", "web-uid", "n1", "h2", "app:2")) })
			w.in(pass("a", "3"), func() { w.mark("web-n2-h1") })
		}},
		{"", "a pod broke while the pass was writing", func(w *world) {
			w.as("user", func() { w.ds(allowing(2)) })
			second(w)
			w.breaks("web-n3-h1")
			w.in(pass("a", "1"), func() {
				w.mark("web-n1-h1")
				w.mark("web-n2-h1")
			})
		}},
		{"", "a node was free again after the view", func(w *world) {
			w.taint(corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoExecute})
			view := w.rv
			w.taint()
			w.in(seeing("1", view), func() { w.mark("web-n1-h1") })
		}},
		{"P3", "a node was free again before the view", func(w *world) {
			w.taint(corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoExecute})
			w.taint()
			w.in(seeing("1", w.rv), func() { w.mark("web-n1-h1") })
		}},
		{"", "an edit came back after the view", func(w *world) {
			second(w)
			view := w.rv
			w.report(0, 3)
			w.edit("app:1")
			w.report(3, 3)
			w.in(seeing("1", view), func() { w.mark("web-n1-h1") })
		}},
		{"P3", "an edit came back before the view", func(w *world) {
			second(w)
			w.edit("app:1")
			w.in(seeing("1", w.rv), func() { w.mark("web-n1-h1") })
		}},
		{"", "two managers fill one place for two revisions", func(w *world) {
			second(w)
			w.mark("web-n1-h1")
			w.as("kubelet", func() { w.remove(&corev1.Pod{}, "web-n1-h1") })
			view := w.rv
			w.in(pass("b", "1"), func() { w.put(pod("web", "web-uid", "n1", "h2", "app:2")) })
			w.in(seeing("2", view), func() { w.put(pod("web", "web-uid", "n1", "h1", "app:1")) })
		}},
		{"P1", "one manager fills one place twice", func(w *world) {
			second(w)
			w.mark("web-n1-h1")
			w.as("kubelet", func() { w.remove(&corev1.Pod{}, "web-n1-h1") })
			view := w.rv
			w.in(seeing("1", view), func() { w.put(pod("web", "web-uid", "n1", "h2", "app:2")) })
			w.in(seeing("2", view), func() { w.put(pod("web", "web-uid", "n1", "h1", "app:1")) })
		}},
		{"P1", "two managers fill one place for one revision", func(w *world) {
			second(w)
			w.mark("web-n1-h1")
			w.as("kubelet", func() { w.remove(&corev1.Pod{}, "web-n1-h1") })
			view := w.rv
			w.in(pass("b", "1"), func() { w.put(pod("web", "web-uid", "n1", "h2", "app:2")) })
			w.in(seeing("2", view), func() {
				p := pod("web", "web-uid", "n1", "h2", "app:2")
				p.Name = "web-at-random"
				w.put(p)
			})
		}},
		{"", "two managers fill one place, and one of them does not know of the last pod there", func(w *world) {
			lost(w)
			view := w.rv
			w.in(pass("b", "1"), func() { w.put(pod("web", "web-uid", "n1", "h1", "app:1")) })
			w.in(seeing("2", view), func() {
				p := pod("web", "web-uid", "n1", "h1", "app:1")
				p.Name = "web-instead"
				w.put(p)
			})
		}},
		{"P1", "two managers fill one place under new names", func(w *world) {
			lost(w)
			view := w.rv
			for i, name := range []string{"web-instead", "web-in-place"} {
				p := seeing(name, view)
				p.Instance = string(rune('b' + i))
				w.in(p, func() {
					p := pod("web", "web-uid", "n1", "h1", "app:1")
					p.Name = name
					w.put(p)
				})
			}
		}},
		{"", "two managers fill one place under new names, and one of them does not know of the last pod there", func(w *world) {
			lost(w)
			view := w.rv
			made := func(instance string, view uint64, name string) {
				p := seeing(name, view)
				p.Instance = instance
				w.in(p, func() {
					p := pod("web", "web-uid", "n1", "h1", "app:1")
					p.Name = name
					w.put(p)
				})
			}
			made("b", view, "web-n1-h1") // it has just started
			p := seeing("reports", w.rv)
			p.Instance = "b"
			w.in(p, func() { w.report(3, 3) })
			w.as("kubelet", func() { w.remove(&corev1.Pod{}, "web-n1-h1") })
			made("b", w.rv, "web-instead")
			made("a", view, "web-in-place")
		}},
		{"P7", "a pod has the name of the one that was deleted", func(w *world) {
			w.as("kubelet", func() { w.remove(&corev1.Pod{}, "web-n1-h1") })
			w.in(pass("a", "0"), func() { w.put(pod("web", "web-uid", "n1", "h1", "app:1")) })
			w.as("kubelet", func() {
				w.pod("web-n1-h1", func(p *corev1.Pod) { p.Status = corev1.PodStatus{Phase: corev1.PodFailed} })
			})
			w.in(pass("a", "1"), func() { w.mark("web-n1-h1") })
			w.as("kubelet", func() { w.remove(&corev1.Pod{}, "web-n1-h1") })
			w.in(pass("a", "2"), func() { w.put(pod("web", "web-uid", "n1", "h1", "app:1")) })
		}},
		{"P7", "a pod has the name of the one that was lost", func(w *world) {
			lost(w)
			w.in(seeing("2", w.rv), func() { w.put(pod("web", "web-uid", "n1", "h1", "app:1")) })
		}},
		{"", "a pod has the name of one that was an orphan when it was seen", func(w *world) {
			w.as("kubelet", func() { w.remove(&corev1.Pod{}, "web-n1-h1") })
			w.in(seeing("0", w.rv), func() { w.put(pod("web", "web-uid", "n1", "h1", "app:1")) })
			w.as("user", func() { w.pod("web-n1-h1", func(p *corev1.Pod) { p.OwnerReferences = nil }) })
			w.in(seeing("1", w.rv), func() { w.report(3, 3) })
			w.as("kubelet", func() { w.remove(&corev1.Pod{}, "web-n1-h1") })
			w.in(seeing("2", w.rv), func() { w.put(pod("web", "web-uid", "n1", "h1", "app:1")) })
		}},
		{"", "a pod has the name of one that was let go", func(w *world) {
			w.as("kubelet", func() { w.remove(&corev1.Pod{}, "web-n1-h1") })
			w.in(seeing("0", w.rv), func() { w.put(pod("web", "web-uid", "n1", "h1", "app:1")) })
			w.in(seeing("1", w.rv), func() { w.pod("web-n1-h1", func(p *corev1.Pod) { p.OwnerReferences = nil }) })
			w.as("kubelet", func() { w.remove(&corev1.Pod{}, "web-n1-h1") })
			w.in(seeing("2", w.rv), func() { w.put(pod("web", "web-uid", "n1", "h1", "app:1")) })
		}},
		{"", "a pod has the name of one that another process has seen", func(w *world) {
			lost(w)
			p := seeing("2", w.rv)
			p.Instance = "b"
			w.in(p, func() { w.put(pod("web", "web-uid", "n1", "h1", "app:1")) })
		}},
		{"", "a pod has the name of one before the last", func(w *world) {
			lost(w)
			w.in(seeing("2", w.rv), func() {
				p := pod("web", "web-uid", "n1", "h1", "app:1")
				p.Name = "web-instead"
				w.put(p)
			})
			w.in(seeing("3", w.rv), func() {})
			w.as("kubelet", func() { w.remove(&corev1.Pod{}, "web-instead") })
			w.in(seeing("4", w.rv), func() { w.put(pod("web", "web-uid", "n1", "h1", "app:1")) })
		}},
		{"", "two managers surge", func(w *world) {
			w.as("user", func() { w.ds(surging(1)) })
			second(w)
			view := w.rv
			w.in(pass("b", "1"), func() { w.put(pod("web", "web-uid", "n1", "h2", "app:2")) })
			w.in(seeing("2", view), func() { w.put(pod("web", "web-uid", "n2", "h2", "app:2")) })
		}},
		{"", "a surge beside two pods where none may be by now", func(w *world) {
			w.as("user", func() { w.ds(surging(1)) })
			second(w)
			w.in(seeing("1", w.rv), func() { w.put(pod("web", "web-uid", "n1", "h2", "app:2")) })
			w.taint(corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoExecute})
			w.in(seeing("2", w.rv), func() { w.put(pod("web", "web-uid", "n2", "h2", "app:2")) })
		}},
		{"R2", "a surge beside two pods where none may start by now", func(w *world) {
			w.as("user", func() { w.ds(surging(1)) })
			second(w)
			w.in(seeing("1", w.rv), func() { w.put(pod("web", "web-uid", "n1", "h2", "app:2")) })
			w.taint(corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoSchedule})
			w.in(seeing("2", w.rv), func() { w.put(pod("web", "web-uid", "n2", "h2", "app:2")) })
		}},
		{"", "a surge beside a place that holds three", func(w *world) {
			w.as("user", func() { w.ds(surging(2)) })
			second(w)
			w.as("user", func() {
				for _, name := range []string{"one", "two"} {
					p := pod("web", "web-uid", "n1", "h1", "app:1")
					p.Name = name
					w.put(p)
				}
			})
			w.in(seeing("1", w.rv), func() { w.put(pod("web", "web-uid", "n2", "h2", "app:2")) })
		}},
		{"R2", "one manager surges twice", func(w *world) {
			w.as("user", func() { w.ds(surging(1)) })
			second(w)
			view := w.rv
			w.in(seeing("1", view), func() { w.put(pod("web", "web-uid", "n1", "h2", "app:2")) })
			w.in(seeing("2", view), func() { w.put(pod("web", "web-uid", "n2", "h2", "app:2")) })
		}},
		{"", "an old pod came after the view", func(w *world) {
			w.edit("app:2")
			w.edit("app:1")
			w.breaks("web-n1-h1")
			w.report(3, 2)
			view := w.rv
			w.as("user", func() { w.put(pod("web", "web-uid", "n1", "h9", "app:9")) })
			w.in(seeing("1", view), func() { w.report(3, 3) })
		}},
		{"R4", "an old pod came before the view", func(w *world) {
			w.edit("app:2")
			w.edit("app:1")
			w.report(3, 2)
			w.as("user", func() { w.put(pod("web", "web-uid", "n1", "h9", "app:9")) })
			w.in(seeing("1", w.rv), func() { w.report(3, 3) })
		}},
		{"", "a revision got a pod after the view", func(w *world) {
			w.put(revision("web", "web-uid", 2, "h2", "app:2"))
			view := w.rv
			w.as("user", func() { w.put(pod("web", "web-uid", "n1", "h2", "app:2")) })
			w.in(seeing("1", view), func() { w.remove(&appsv1.ControllerRevision{}, "web-h2") })
		}},
		{"H3", "a revision got a pod before the view", func(w *world) {
			w.put(revision("web", "web-uid", 2, "h2", "app:2"))
			w.as("user", func() { w.put(pod("web", "web-uid", "n1", "h2", "app:2")) })
			w.in(seeing("1", w.rv), func() { w.remove(&appsv1.ControllerRevision{}, "web-h2") })
		}},
		{"", "a revision got a pod that a list by labels did not show", func(w *world) { unlisted(w, true) }},
		{"H3", "a revision got a pod that a list of all showed", func(w *world) { unlisted(w, false) }},
		{"", "a revision went after the view", func(w *world) {
			second(w)
			w.mark("web-n1-h1")
			w.as("kubelet", func() { w.remove(&corev1.Pod{}, "web-n1-h1") })
			view := w.rv
			w.as("user", func() { w.remove(&appsv1.ControllerRevision{}, "web-h2") })
			w.in(seeing("1", view), func() { w.put(pod("web", "web-uid", "n1", "h2", "app:2")) })
		}},
		{"", "a copy went after the original was let go, after the view", func(w *world) {
			w.put(revision("web", "web-uid", 2, "h2", "app:2"))
			w.as("user", func() {
				twin := revision("web", "web-uid", 3, "h2", "app:2")
				twin.Name, twin.UID = "web-twin", "twin"
				w.put(twin)
				w.put(pod("web", "web-uid", "n1", "h2", "app:2"))
			})
			view := w.rv
			w.as("user", func() { w.revision("web-h2", func(r *appsv1.ControllerRevision) { r.OwnerReferences = nil }) })
			w.in(seeing("1", view), func() { w.remove(&appsv1.ControllerRevision{}, "web-twin") })
		}},
		{"H3", "a copy went after the original was let go, before the view", func(w *world) {
			w.put(revision("web", "web-uid", 2, "h2", "app:2"))
			w.as("user", func() {
				twin := revision("web", "web-uid", 3, "h2", "app:2")
				twin.Name, twin.UID = "web-twin", "twin"
				w.put(twin)
				w.put(pod("web", "web-uid", "n1", "h2", "app:2"))
				w.revision("web-h2", func(r *appsv1.ControllerRevision) { r.OwnerReferences = nil })
			})
			w.in(seeing("1", w.rv), func() { w.remove(&appsv1.ControllerRevision{}, "web-twin") })
		}},
		{"P4", "a revision went before the view", func(w *world) {
			second(w)
			w.mark("web-n1-h1")
			w.as("kubelet", func() { w.remove(&corev1.Pod{}, "web-n1-h1") })
			w.as("user", func() { w.remove(&appsv1.ControllerRevision{}, "web-h2") })
			w.in(seeing("1", w.rv), func() { w.put(pod("web", "web-uid", "n1", "h2", "app:2")) })
		}},
	} {
		t.Run(test.want+" "+test.name, func(t *testing.T) { alone(t, test.want, test.do) })
	}
}

// alone sees that a history has one violation, of that name, or none.
func alone(t *testing.T, want string, do func(w *world)) {
	t.Helper()
	w := newWorld(t)
	do(w)
	got := check.Check(w.history(), parents.DaemonSet())
	if want == "" && len(got) == 0 {
		return
	}
	if len(got) != 1 || got[0].Invariant != want {
		t.Errorf("want one violation of %q, got %d:\n%s", want, len(got), story(got))
	}
}

func allowing(unavailable int) func(*appsv1.DaemonSet) {
	return func(ds *appsv1.DaemonSet) {
		ds.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable.IntVal = int32(unavailable)
		ds.Generation++
		ds.Status.ObservedGeneration++
	}
}

// Where passes are not known, a manager may have begun its pass before another one filled a place, although it wrote a
// status after that. What it wrote about children before a status is of an earlier pass, and a pass knows what those
// have seen.
func TestAPlaceThatAnotherManagerFilled(t *testing.T) {
	for name, c := range map[string]struct {
		agent string
		first func(w *world)
		want  int
	}{
		"during its pass":              {"manager-2", func(w *world) { w.report(3, 2) }, 0},
		"before one of its own writes": {"manager-2", func(w *world) { w.mark("web-n2-h1"); w.report(3, 2) }, 1},
		"it is the same manager":       {"", func(w *world) { w.report(3, 2) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			lost(w)
			instead := pod("web", "web-uid", "n1", "h1", "app:1")
			instead.Name = "web-instead"
			w.put(instead)
			made := len(w.history().Events) - 1
			c.first(w)
			w.put(pod("web", "web-uid", "n1", "h1", "app:1"))
			h := w.history()
			h.Events[made].By.UserAgent = c.agent
			var got []string
			for _, v := range check.Check(h, parents.DaemonSet()) {
				if v.Invariant == "P1" {
					got = append(got, v.String())
				}
			}
			if len(got) != c.want {
				t.Errorf("want %d violations of P1, got %v", c.want, got)
			}
		})
	}
}
