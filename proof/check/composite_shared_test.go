package check_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/internal/catset"
)

// This file holds what several controllers of one parent say of it, and who made what when a child was nobody's.

func TestSaidOfASharedParent(t *testing.T) {
	// says is what Updated says, and the two controllers, each of a generation.
	says := func(w cats, generation int64, updated, pods, configs string, ofPods, ofConfigs int64) {
		w.set(func(set *unstructured.Unstructured) {
			condition := func(kind, status string, of int64) map[string]any {
				c := map[string]any{"type": kind, "status": status, "message": "because"}
				if of > 0 {
					c["observedGeneration"] = of
				}
				return c
			}
			set.Object["status"] = map[string]any{
				"observedGeneration": generation, "replicas": int64(3), "readyReplicas": int64(3), "conditions": []any{
					condition("Updated", updated, 0),
					condition("cairn.dev/Updated.check-divided-pods", pods, ofPods),
					condition("cairn.dev/Updated.check-divided-configs", configs, ofConfigs),
				},
			}
		})
	}
	for _, test := range []struct {
		want, name string
		do         func(w cats)
	}{
		{"", "all of them say so", func(w cats) { says(w, 1, "True", "True", "True", 1, 1) }},
		{"S1", "one of them does not", func(w cats) { says(w, 1, "True", "True", "False", 1, 1) }},
		{"S1", "one of them said so of an earlier generation", func(w cats) {
			w.edit("new", "note")
			says(w, 2, "True", "True", "True", 1, 2)
		}},
		{"", "one of them is done, and does not speak for the other", func(w cats) {
			w.edited()
			says(w, 2, "False", "False", "False", 2, 2)
			w.put(again(w, config("app:2")))
			says(w, 2, "False", "False", "True", 2, 2)
		}},
		{"R4", "one of them says so too early", func(w cats) {
			w.edited()
			says(w, 2, "False", "False", "False", 2, 2)
			w.put(again(w, config("app:2")))
			says(w, 2, "False", "True", "False", 2, 2)
		}},
	} {
		t.Run(test.want+" "+test.name, func(t *testing.T) {
			w := newCats(t, catset.Divided)
			test.do(w)
			var found []check.Violation // what the revisions say of the ConfigMap is another matter
			for _, v := range check.Check(w.history(), catset.DividedKinds()...) {
				if v.Invariant == "S1" || v.Invariant == "R4" {
					found = append(found, v)
				}
			}
			if got := invariants(found); strings.Join(got, " ") != test.want {
				t.Errorf("want %q, got:\n%s", test.want, story(found))
			}
		})
	}
}

// A child that was held back and is nobody's for a while belongs to the revision that has been given its name
// meanwhile.
func TestReassignedWhileItWasNobodys(t *testing.T) {
	for _, test := range []struct {
		want, name string
		meanwhile  bool
	}{{"P5", "when it was ours again", false}, {"", "while it was nobody's", true}} {
		t.Run(test.name, func(t *testing.T) {
			w := newCats(t, catset.HeldBack)
			w.edited()
			w.as("user", func() {
				w.remove(catRevision(1, "app:1"), catRevision(1, "app:1").GetName())
				w.pod("cats-0", func(p *corev1.Pod) { p.OwnerReferences = nil })
			})
			adopt := func() { w.pod("cats-0", func(p *corev1.Pod) { p.OwnerReferences = catOwner() }) }
			if !test.meanwhile {
				adopt()
			}
			w.claims("app:2", 0)
			if test.meanwhile {
				adopt()
			}
			w.mark("cats-0")
			var got []string
			for _, invariant := range invariants(check.Check(w.history(), catset.Kinds()...)) {
				if invariant == "P5" {
					got = append(got, invariant)
				}
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("want %q, got:\n%s", test.want, story(check.Check(w.history(), catset.Kinds()...)))
			}
		})
	}
}
