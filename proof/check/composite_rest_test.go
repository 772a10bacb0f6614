package check_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/internal/catset"
)

// This file holds what is left of composite parents: children that are held back, races, the end, and hooks.

// What a controller holds back belongs to its revision for good.
func TestHeldBack(t *testing.T) {
	for _, test := range []struct {
		want string
		do   func(w cats)
	}{
		{"P3", func(w cats) {
			w.edited()
			w.mark("cats-0")
		}},
		{"", func(w cats) {
			w.edited()
			w.claims("app:2", 2)
			w.roll(2)
			w.as("user", func() { w.pod("cats-0", func(p *corev1.Pod) { p.Spec.Hostname = "other" }) })
			w.mark("cats-0")
			w.end(0)
			w.born(0, "app:1")
		}},
		{"W2", func(w cats) {
			w.edited()
			w.as("user", func() { w.mark("cats-0") })
			w.end(0)
			w.born(0, "app:2")
		}},
	} {
		w := newCats(t, catset.HeldBack)
		test.do(w)
		if got := invariants(check.Check(w.history(), catset.Kinds()...)); strings.Join(got, " ") != test.want {
			t.Errorf("want %q, got %v", test.want, got)
		}
	}
}

// Who writes a claim at the moment at which somebody else deletes the child could not know.
func TestAClaimThatCrossesADelete(t *testing.T) {
	w := newCats(t, catset.Together)
	w.edited()
	w.as("user", func() { w.mark("cats-0") })
	w.end(0)
	gone := w.rv
	w.claims("app:2", 0) // the last that it wrote was before the delete
	w.put(cat(0, "app:2"))
	if got := check.Check(w.history(), catset.Kinds()...); len(got) != 0 {
		t.Errorf("want none, got:\n%s", story(got))
	}
	// Unless it has told the hook that the child is not there.
	w.notes = append(w.notes, check.Note{RV: gone, Parent: "cats-uid", Told: []client.Object{cat(1, "app:1")}})
	if got := invariants(check.Check(w.history(), catset.Kinds()...)); !slices.Equal(got, []string{"P5"}) {
		t.Errorf("want P5, got %v", got)
	}
}

func TestCompositeAtRest(t *testing.T) {
	for _, test := range []struct {
		want []string
		name string
		do   func(w cats)
	}{
		{nil, "nothing to do", func(cats) {}},
		{nil, "a rollout", func(w cats) {
			w.edited()
			w.claims("app:2", 0, 1, 2)
			for i := range 3 {
				w.roll(i)
			}
			w.put(again(w, config("app:2")))
			w.says(2, 3, true)
		}},
		{[]string{"C1"}, "a child is missing", func(w cats) {
			w.as("user", func() { w.remove(&corev1.Pod{}, "cats-1") })
			w.set(func(set *unstructured.Unstructured) {
				report(set, 1, 2, false)
				set.Object["status"].(map[string]any)["replicas"] = int64(2)
			})
		}},
		{nil, "a name is taken", func(w cats) {
			w.as("user", func() { w.remove(&corev1.Pod{}, "cats-1") })
			other := cat(1, "app:1")
			other.OwnerReferences = nil
			w.as("user", func() { w.put(other) })
			w.set(func(set *unstructured.Unstructured) {
				report(set, 1, 2, false)
				set.Object["status"].(map[string]any)["replicas"] = int64(2)
			})
		}},
		{[]string{"C1"}, "a rollout has stopped", func(w cats) {
			w.edited()
			w.put(again(w, config("app:2")))
		}},
		{[]string{"R4"}, "it says that it is over", func(w cats) {
			w.breaks("cats-0")
			w.set(func(set *unstructured.Unstructured) { report(set, 1, 2, true) })
		}},
		{[]string{"S1"}, "it counts wrong", func(w cats) { w.says(1, 2, true) }},
		{[]string{"C1"}, "an edit was not seen", func(w cats) { w.edit(int64(3), "replicas") }},
		{[]string{"H1"}, "two revisions hold the same", func(w cats) {
			r := catRevision(2, "app:1")
			r.SetName("another")
			r.SetUID("another")
			w.as("user", func() { w.put(r) })
		}},
		{[]string{"H9"}, "too many revisions", func(w cats) {
			for i := range catset.Limit + 1 {
				w.as("user", func() { w.put(catRevision(int64(i+2), fmt.Sprintf("app:%d", i+2))) })
			}
		}},
		{[]string{"X1"}, "of a parent that is gone", func(w cats) {
			again := get(w.world, catset.New("", "", "", 0, ""), "cats")
			again.SetUID("new-uid")
			w.as("user", func() { w.remove(again, "cats"); w.put(again) })
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newCats(t, catset.Together)
			test.do(w)
			if got := invariants(check.Rest(w.history(), w.rv, catset.Kinds()...)); !slices.Contains(append(got, ""), strings.Join(test.want, "")) || len(got) > 0 != (test.want != nil) {
				t.Errorf("want %v, got %v:\n%s", test.want, got, story(check.Rest(w.history(), w.rv, catset.Kinds()...)))
			}
		})
	}
}

// invariants are those that are broken, each once.
func invariants(violations []check.Violation) []string {
	var out []string
	for _, v := range violations {
		out = append(out, v.Invariant)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func TestHooksOfCatSets(t *testing.T) {
	note := func(w cats, image, question string, failed bool) {
		sent := get(w.world, catset.New("", "", "", 0, ""), "cats")
		version := sent.GetResourceVersion()
		sent = catset.New(namespace, "cats", catset.Together, 3, image)
		sent.SetResourceVersion(version)
		w.notes = append(w.notes, check.Note{RV: w.rv, Parent: "cats-uid", Question: question, Sent: sent, Failed: failed})
	}
	for _, test := range []struct {
		want, name string
		do         func(w cats)
	}{
		{"W1", "one of two questions of a pass failed", func(w cats) {
			note(w, "app:1", "q", true)
			note(w, "app:2", "q", false)
			w.claims("app:2", 2)
			w.mark("cats-2")
		}},
		{"", "it was asked again", func(w cats) {
			note(w, "app:1", "q", true)
			note(w, "app:2", "q", false)
			note(w, "app:1", "q", false)
			w.claims("app:2", 2)
			w.mark("cats-2")
		}},
		{"", "something else was asked since", func(w cats) {
			note(w, "app:1", "q", true)
			note(w, "app:2", "other", false)
			w.claims("app:2", 2)
			w.mark("cats-2")
		}},
		{"", "the parent of an old revision", func(w cats) { note(w, "app:1", "q", false) }},
		{"W2", "a parent that never was", func(w cats) { note(w, "app:7", "q", false) }},
	} {
		t.Run(test.want+" "+test.name, func(t *testing.T) {
			w := newCats(t, catset.Together)
			w.edited()
			test.do(w)
			if got := invariants(check.Check(w.history(), catset.Kinds()...)); strings.Join(got, " ") != test.want {
				t.Errorf("want %q, got %v", test.want, got)
			}
		})
	}
}
