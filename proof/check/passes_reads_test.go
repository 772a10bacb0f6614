package check_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// This file is about what a pass must have read before it records, numbers or adopts.

// unlabelled is a pass that lists the revisions of the parent, by its labels or all, and then records one. Somebody has
// just made one that has its number, and no labels.
func unlabelled(w *world, byLabels bool) {
	view := w.rv
	w.as("user", func() {
		r := revision("web", "web-uid", 2, "h2", "app:2")
		r.Labels = nil
		w.put(r)
	})
	w.edit("app:3")
	w.in(seeing("2", view), func() {
		w.read("web-uid", w.rv)
		w.read("", w.rv)
		if byLabels {
			w.log[len(w.log)-1].Labels = labels.SelectorFromSet(labels.Set{"app": "web"})
		}
		w.put(revision("web", "web-uid", 2, "h3", "app:3"))
	})
}

func TestWhoNumbersKnows(t *testing.T) {
	third := func(w *world) { w.put(revision("web", "web-uid", 2, "h3", "app:3")) }
	for _, test := range []struct {
		want, name string
		do         func(w *world)
	}{
		{"", "another manager's number after the view", func(w *world) {
			view := w.rv
			w.in(pass("b", "1"), func() { second(w) })
			w.edit("app:3")
			w.in(seeing("2", view), func() { third(w) })
		}},
		{"H2", "another manager's number before the view", func(w *world) {
			w.in(pass("b", "1"), func() { second(w) })
			w.edit("app:3")
			w.in(seeing("2", w.rv), func() { third(w) })
		}},
		{"H2", "its own number after the view", func(w *world) {
			view := w.rv
			w.in(seeing("1", view), func() { second(w) })
			w.edit("app:3")
			w.in(seeing("2", view), func() { third(w) })
		}},
		{"H2", "another manager's number before a list in that pass", func(w *world) {
			view := w.rv
			w.in(pass("b", "1"), func() {
				w.edit("app:2")
				w.read("web-uid", w.rv)
				w.put(revision("web", "web-uid", 2, "h2", "app:2"))
			})
			w.edit("app:3")
			w.in(seeing("2", view), func() {
				w.read("web-uid", w.rv)
				w.read("", w.rv)
				third(w)
			})
		}},
		{"", "a number that a list by labels did not show in that pass", func(w *world) { unlabelled(w, true) }},
		{"H2", "a number that a list of all showed in that pass", func(w *world) { unlabelled(w, false) }},
		{"", "its own number that arrived after a list in that pass", func(w *world) {
			late, p := seeing("1", w.rv), seeing("2", w.rv)
			w.edit("app:2")
			w.in(late, func() { w.read("web-uid", w.rv) })
			w.edit("app:3")
			w.in(p, func() {
				w.read("web-uid", w.rv)
				w.read("", w.rv)
			})
			w.in(late, func() { w.put(revision("web", "web-uid", 2, "h2", "app:2")) })
			w.in(p, func() { third(w) })
		}},
		{"", "an orphan's number, and it was adopted after a list in that pass", func(w *world) {
			orphan := revision("web", "web-uid", 7, "h7", "app:7")
			refs := orphan.OwnerReferences
			orphan.OwnerReferences = nil
			w.as("user", func() { w.put(orphan) })
			w.edit("app:3")
			p := seeing("2", w.rv)
			w.in(p, func() {
				w.read("web-uid", w.rv)
				w.read("", w.rv)
			})
			w.in(pass("b", "1"), func() {
				w.read("web-uid", w.rv)
				w.revision("web-h7", func(r *appsv1.ControllerRevision) { r.OwnerReferences = refs })
			})
			w.in(p, func() { third(w) })
		}},
		{"", "the user's number", func(w *world) {
			w.as("user", func() { w.put(revision("web", "web-uid", 1, "h2", "app:2")) })
		}},
	} {
		t.Run(test.want+" "+test.name, func(t *testing.T) { alone(t, test.want, test.do) })
	}
}

func TestTheParentIsReadBeforeItIsRecorded(t *testing.T) {
	back := func(w *world) { w.revision("web-h1", func(r *appsv1.ControllerRevision) { r.Revision = 3 }) }
	for _, test := range []struct {
		want, name string
		do         func(w *world)
	}{
		{"H7", "an old template after a status", func(w *world) {
			second(w)
			w.report(0, 3)
			back(w)
		}},
		{"H7", "an old template after a stamp", func(w *world) {
			w.edit("app:2")
			r := revision("web", "web-uid", 2, "h2", "app:2")
			r.Annotations = map[string]string{"cairn.dev/parent-uid": "web-uid", "cairn.dev/parent-generation": "2"}
			w.put(r)
			back(w)
		}},
		{"", "an old template that is asked for again", func(w *world) {
			second(w)
			w.report(0, 3)
			w.edit("app:1")
			back(w)
		}},
		{"", "a template that was replaced on the way", func(w *world) {
			w.edit("app:2")
			w.edit("app:3")
			w.put(revision("web", "web-uid", 2, "h2", "app:2"))
		}},
		{"", "another manager's stamp after the view", func(w *world) {
			view := w.rv
			w.in(pass("b", "1"), func() { second(w); w.report(0, 3) })
			w.in(seeing("2", view), func() { back(w) })
		}},
		{"", "a stamp from the future", func(w *world) {
			w.as("user", func() {
				w.revision("web-h1", func(r *appsv1.ControllerRevision) {
					r.Annotations = map[string]string{"cairn.dev/parent-uid": "web-uid", "cairn.dev/parent-generation": "99"}
				})
			})
			second(w)
		}},
		{"", "a read that showed it", func(w *world) {
			w.edit("app:2")
			read := w.rv
			w.edit("app:3")
			w.in(pass("a", "1"), func() {
				w.read("web-uid", read)
				w.put(revision("web", "web-uid", 2, "h2", "app:2"))
			})
		}},
		{"H7", "a read that showed something else", func(w *world) {
			w.edit("app:2")
			w.edit("app:3")
			w.in(pass("a", "1"), func() {
				w.read("web-uid", w.rv)
				w.put(revision("web", "web-uid", 2, "h2", "app:2"))
			})
		}},
		{"H7", "a read in another pass", func(w *world) {
			w.edit("app:2")
			w.in(pass("a", "1"), func() { w.read("web-uid", w.rv) })
			w.in(pass("a", "2"), func() { w.put(revision("web", "web-uid", 2, "h2", "app:2")) })
		}},
		{"H7", "a read that came too late", func(w *world) {
			w.edit("app:2")
			w.in(pass("a", "1"), func() {
				w.put(revision("web", "web-uid", 2, "h2", "app:2"))
				w.read("web-uid", w.rv)
			})
		}},
	} {
		t.Run(test.want+" "+test.name, func(t *testing.T) { alone(t, test.want, test.do) })
	}
}

func TestTheParentIsReadBeforeItAdopts(t *testing.T) {
	orphan := func(w *world) {
		o := revision("web", "web-uid", 0, "h0", "app:0")
		o.OwnerReferences = nil
		w.as("user", func() { w.put(o) })
	}
	adopt := func(w *world) {
		w.revision("web-h0", func(r *appsv1.ControllerRevision) { r.OwnerReferences = owner("web", "web-uid") })
	}
	end := func(w *world) {
		w.as("user", func() { w.ds(func(ds *appsv1.DaemonSet) { ds.DeletionTimestamp = new(metav1.NewTime(start)) }) })
	}
	for _, test := range []struct {
		want, name string
		do         func(w *world)
	}{
		{"", "a read", func(w *world) {
			orphan(w)
			w.in(pass("a", "1"), func() { w.read("web-uid", w.rv); adopt(w) })
		}},
		{"O2", "no read", func(w *world) {
			orphan(w)
			w.in(pass("a", "0"), func() { w.read("web-uid", w.rv) })
			w.in(pass("a", "1"), func() { adopt(w) })
		}},
		{"O2", "an orphan that is going", func(w *world) {
			orphan(w)
			w.as("user", func() {
				w.revision("web-h0", func(r *appsv1.ControllerRevision) { r.DeletionTimestamp = new(metav1.NewTime(start)) })
			})
			w.in(pass("a", "1"), func() { w.read("web-uid", w.rv); adopt(w) })
		}},
		{"O2", "a read of another parent", func(w *world) {
			orphan(w)
			w.in(pass("a", "1"), func() { w.read("old-uid", w.rv-1); adopt(w) })
		}},
		{"", "the parent's end came after the read", func(w *world) {
			orphan(w)
			read := w.rv
			end(w)
			w.in(pass("a", "1"), func() { w.read("web-uid", read); adopt(w) })
		}},
		{"", "the parent's end came after the orphan", func(w *world) {
			orphan(w)
			end(w)
			w.in(pass("a", "1"), func() { adopt(w) })
		}},
		{"O2", "the parent's end came before the orphan", func(w *world) {
			end(w)
			orphan(w)
			w.in(pass("a", "1"), func() { adopt(w) })
		}},
		{"", "a revision is made for a parent whose end nobody saw", func(w *world) {
			w.edit("app:2")
			view := w.rv
			end(w)
			w.in(seeing("1", view), func() { w.put(revision("web", "web-uid", 2, "h2", "app:2")) })
		}},
		{"O3", "a revision is made for a parent whose end its author saw", func(w *world) {
			w.edit("app:2")
			end(w)
			w.in(seeing("1", w.rv), func() { w.put(revision("web", "web-uid", 2, "h2", "app:2")) })
		}},
		{"O3", "a pod is made for a parent whose end its author was told", func(w *world) {
			w.as("user", func() { w.mark("web-n1-h1"); w.remove(&corev1.Pod{}, "web-n1-h1") })
			view := w.rv
			end(w)
			w.in(seeing("1", view), func() {
				w.read("web-uid", w.rv)
				w.put(pod("web", "web-uid", "n1", "h1", "app:1"))
			})
		}},
	} {
		t.Run(test.want+" "+test.name, func(t *testing.T) {
			alone(t, test.want, test.do)
		})
	}
}
