package check_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/internal/catset"
)

// This file breaks each promise about composite parents once, and keeps it once.

func TestCompositePromises(t *testing.T) {
	for _, p := range []struct {
		want, name string
		bad, good  func(w cats)
	}{
		{"P3", "a revision says first that a child is its own", func(w cats) {
			w.edited()
			w.mark("cats-2")
		}, func(w cats) {
			w.edited()
			w.claims("app:2", 2)
			w.mark("cats-2")
		}},
		{"P3", "what is as it should be stays", func(w cats) { w.mark("cats-2") }, func(w cats) {
			w.edit(int64(2), "replicas")
			w.mark("cats-2")
		}},
		{"P3", "what somebody has changed need not", func(w cats) {
			w.as("user", func() { w.pod("cats-2", func(p *corev1.Pod) { p.Labels["more"] = "yes" }) })
			w.mark("cats-2")
		}, func(w cats) {
			w.as("user", func() { w.pod("cats-2", func(p *corev1.Pod) { p.Spec.Hostname = "other" }) })
			w.mark("cats-2")
		}},
		{"P3", "a field that no revision covers", func(w cats) {
			w.edit("new", "note")
			w.edit("", "note")
			w.edit("new", "note")
			w.as("user", func() {
				w.set(func(set *unstructured.Unstructured) { unstructured.RemoveNestedField(set.Object, "spec", "note") })
			})
			w.says(4, 3, true)
			w.mark("cats-2")
		}, func(w cats) {
			w.edit("new", "note")
			w.mark("cats-2")
		}},
		{"R1", "the budget", func(w cats) {
			w.edited()
			w.claims("app:2", 0, 1, 2)
			w.mark("cats-2")
			w.mark("cats-1")
			w.mark("cats-0")
		}, func(w cats) {
			w.edited()
			w.claims("app:2", 0, 1, 2)
			w.mark("cats-2")
			w.mark("cats-1")
			w.end(2)
			w.born(2, "app:2")
			w.mark("cats-0")
		}},
		{"P4", "no child without a revision that says so", func(w cats) {
			w.edit(int64(4), "replicas")
			w.put(cat(3, "app:1"))
		}, func(w cats) {
			w.edit(int64(4), "replicas")
			w.claims("app:1", 0, 1, 2, 3)
			w.put(cat(3, "app:1"))
		}},
		{"W2", "a child of an old revision is what that asks for", func(w cats) {
			w.edited()
			w.as("user", func() { w.mark("cats-0") })
			w.end(0)
			w.put(cat(0, "app:2"))
		}, func(w cats) {
			w.edited()
			w.as("user", func() { w.mark("cats-0") })
			w.end(0)
			w.put(cat(0, "app:1"))
		}},
		{"W2", "and no more than that", func(w cats) {
			w.edited()
			w.as("user", func() { w.mark("cats-0") })
			w.end(0)
			p := cat(0, "app:1")
			p.Annotations["metacontroller.k8s.io/last-applied-configuration"] = strings.Replace(
				p.Annotations["metacontroller.k8s.io/last-applied-configuration"], `"spec":{`, `"spec":{"nodeName":"n1",`, 1)
			w.put(p)
		}, func(w cats) {
			w.edited()
			w.as("user", func() { w.mark("cats-0") })
			w.end(0)
			w.put(cat(0, "app:1"))
		}},
		{"P4", "a child of the newest is what is asked for", func(w cats) {
			w.edited()
			w.claims("app:2", 2)
			w.mark("cats-2")
			w.end(2)
			w.put(cat(2, "app:1"))
		}, func(w cats) {
			w.edited()
			w.claims("app:2", 2)
			w.roll(2)
		}},
		{"P4", "a child that is not rolled", func(w cats) {
			w.edited()
			w.as("user", func() { w.remove(&corev1.ConfigMap{}, "cats-config") })
			w.put(config("app:1"))
		}, func(w cats) {
			w.edited()
			w.put(again(w, config("app:2")))
		}},
		{"P5", "a lost child comes back as it was", func(w cats) {
			w.edited()
			w.as("user", func() { w.mark("cats-0") })
			w.end(0)
			w.says(2, 2, false)
			w.claims("app:2", 0)
			w.put(cat(0, "app:2"))
		}, func(w cats) {
			w.edited()
			w.claims("app:2", 0)
			w.as("user", func() { w.mark("cats-0") })
			w.end(0)
			w.put(cat(0, "app:2"))
		}},
		{"H3", "a revision lets no child go", func(w cats) {
			w.edited()
			w.claims("app:1", 0, 1)
		}, func(w cats) {
			w.edited()
			w.claims("app:2", 2)
			w.claims("app:1", 0, 1)
		}},
		{"H3", "a revision with a child stays", func(w cats) {
			w.edited()
			w.claims("app:2", 1, 2)
			w.remove(&unstructured.Unstructured{}, catRevision(1, "app:1").GetName())
		}, func(w cats) {
			w.edited()
			w.claims("app:2", 0, 1, 2)
			w.remove(&unstructured.Unstructured{}, catRevision(1, "app:1").GetName())
		}},
		{"H4", "what it holds stays", func(w cats) {
			r := get(w.world, &unstructured.Unstructured{}, catRevision(1, "app:1").GetName())
			r.Object["parentPatch"] = catRevision(1, "app:9").Object["parentPatch"]
			w.as("user", func() { w.put(r) })
		}, func(w cats) { w.claims("app:1", 2, 1, 0) }},
		{"H5", "a name with a count is for names that are taken", func(w cats) {
			w.image("app:2")
			r := catRevision(2, "app:2")
			r.SetName(r.GetName()[:len(r.GetName())-1] + "x")
			w.put(r)
		}, func(w cats) {
			w.image("app:2")
			taken := catRevision(7, "app:2")
			taken.SetOwnerReferences(nil)
			w.as("user", func() { w.put(taken) })
			r := catRevision(2, "app:2")
			r.SetName(r.GetName()[:len(r.GetName())-1] + "x")
			r.SetUID("another")
			w.put(r)
		}},
		{"H2", "numbers rise", func(w cats) {
			w.image("app:2")
			w.put(catRevision(1, "app:2"))
		}, func(w cats) { w.edited() }},
		{"P2", "only what is asked for", func(w cats) {
			w.claims("app:1", 0, 1, 2, 3)
			p := cat(3, "app:1")
			w.put(p)
		}, func(w cats) {
			w.edit(int64(4), "replicas")
			w.claims("app:1", 0, 1, 2, 3)
			w.put(cat(3, "app:1"))
		}},
		{"P6", "deletes carry the UID", func(w cats) {
			w.edit(int64(2), "replicas")
			w.byName = true
			w.mark("cats-2")
		}, func(w cats) {
			w.edit(int64(2), "replicas")
			w.mark("cats-2")
		}},
		{"R4", "updated means that all are", func(w cats) {
			w.edited()
			w.claims("app:2", 1, 2)
			w.roll(2)
			w.roll(1)
			w.put(again(w, config("app:2")))
			w.says(2, 3, true)
		}, func(w cats) {
			w.edited()
			w.claims("app:2", 0, 1, 2)
			w.roll(2)
			w.roll(1)
			w.roll(0)
			w.put(again(w, config("app:2")))
			w.says(2, 3, true)
		}},
		{"R4", "updated means that all serve", func(w cats) {
			w.edited()
			w.claims("app:2", 0, 1, 2)
			w.roll(2)
			w.roll(1)
			w.roll(0)
			w.put(again(w, config("app:2")))
			w.breaks("cats-0")
			w.says(2, 2, false)
			w.says(2, 2, true)
		}, func(w cats) {
			w.breaks("cats-0")
			w.says(1, 2, false)
		}},
		{"S1", "nothing below zero", func(w cats) { w.says(1, -1, true) }, func(w cats) { w.says(1, 3, true) }},
		{"S1", "no generation that is to come", func(w cats) { w.says(2, 3, true) }, func(w cats) {
			w.edit(int64(3), "replicas")
			w.says(2, 3, true)
		}},
		{"S2", "generations rise", func(w cats) {
			w.edit(int64(3), "replicas")
			w.says(2, 3, true)
			w.says(1, 3, true)
		}, func(w cats) {
			w.edit(int64(3), "replicas")
			w.says(2, 3, true)
		}},
	} {
		t.Run(p.want+" "+p.name, func(t *testing.T) {
			broken := newCats(t, catset.Together)
			p.bad(broken)
			if got := check.Check(broken.history(), catset.Kinds()...); len(got) != 1 || got[0].Invariant != p.want {
				t.Errorf("want one violation of %s, got %d:\n%s", p.want, len(got), story(got))
			}
			kept := newCats(t, catset.Together)
			p.good(kept)
			if got := check.Check(kept.history(), catset.Kinds()...); len(got) != 0 {
				t.Errorf("want none, got %d:\n%s", len(got), story(got))
			}
		})
	}
}
