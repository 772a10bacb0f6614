package inspect

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cairn-dev/cairn/internal/inspecttest"
)

func number(n int64) Find { return func(h *History) (Entry, error) { return h.Find(n) } }

// TestDiff: what is compared is what the first of the two holds, whatever the controller records by now.
func TestDiff(t *testing.T) {
	cc, nap := inspecttest.CatSets(), inspecttest.CatSet("3")
	whole := inspecttest.CatSets()
	whole.Spec.ParentResource.RevisionHistory.FieldPaths = []string{"spec"}
	more := inspecttest.CatSet("2")
	if err := unstructured.SetNestedField(more.Object, "milk", "spec", "template", "drink"); err != nil {
		t.Fatal(err)
	}
	three := inspecttest.CatSet("3")
	if err := unstructured.SetNestedField(three.Object, int64(5), "spec", "replicas"); err != nil {
		t.Fatal(err)
	}
	unreadable := inspecttest.Taken(t, cc, inspecttest.CatSet("9"), 9)
	unreadable.FieldPaths = []string{"status"}
	i := New(inspecttest.PetServer(t, interceptor.Funcs{}, nap, cc, unreadable,
		inspecttest.Taken(t, whole, three, 1), inspecttest.Taken(t, cc, more, 2), inspecttest.Taken(t, cc, nap, 3)))
	var missing *NotFoundError
	var illegible *UnreadableError
	for name, c := range map[string]struct {
		from, to Find
		before   int
		given    map[string]any
		want     string
		err      any
	}{
		"the one before":    {want: "--- revision 2 (R)\n+++ catset.pets.example.com/nap now\n@@ -1,4 +1,3 @@\n spec:\n   template:\n-    drink: milk\n-    text: \"2\"\n+    text: \"3\"\n"},
		"the same":          {from: number(3)},
		"other paths":       {from: number(1), want: "--- revision 1 (R)\n+++ catset.pets.example.com/nap now\n@@ -1,5 +1,5 @@\n spec:\n-  replicas: 5\n+  replicas: 2\n   selector:\n     matchLabels:\n       app: nap\n"},
		"two revisions":     {from: number(3), to: number(2), want: "--- revision 3 (R)\n+++ revision 2 (R)\n@@ -1,3 +1,4 @@\n spec:\n   template:\n-    text: \"3\"\n+    drink: milk\n+    text: \"2\"\n"},
		"none":              {from: number(4), err: &missing},
		"unreadable":        {from: number(9), err: &illegible},
		"to an unreadable":  {from: number(1), to: number(9), err: &illegible},
		"to none":           {from: number(1), to: number(4), err: &missing},
		"from before to it": {to: number(2)},
		"one before":        {before: 1, err: &illegible}, // revision 9, which cannot be read, is the one before
		"two before":        {before: 2, to: number(2)},
		"too far before":    {before: 7, err: new(error)},
		"a file": {
			from: number(3), given: map[string]any{"spec": map[string]any{"template": map[string]any{"text": "4"}}},
			want: "--- revision 3 (R)\n+++ a file\n@@ -1,3 +1,3 @@\n spec:\n   template:\n-    text: \"3\"\n+    text: \"4\"\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var a *Operand
			if c.from != nil || c.before > 0 {
				a = &Operand{Find: c.from, Before: c.before}
			}
			d, err := i.Diff(t.Context(), nap, a, Operand{Find: c.to, Given: c.given, Title: "a file"})
			if c.err != nil {
				if !errors.As(err, c.err) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := strings.ReplaceAll(d.Diff, d.From.Name, "R")
			if d.To != nil {
				got = strings.ReplaceAll(got, d.To.Name, "R")
			}
			if got != c.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

// TestNothingToCompare: without an older revision there is nothing to compare with, and that is an error of its own.
func TestNothingToCompare(t *testing.T) {
	cc, nap := inspecttest.CatSets(), inspecttest.CatSet("3")
	i := New(inspecttest.PetServer(t, interceptor.Funcs{}, nap, cc, inspecttest.Taken(t, cc, nap, 1)))
	if _, err := i.Diff(t.Context(), nap, nil, Operand{}); !errors.Is(err, ErrNothingToCompare) {
		t.Errorf("got %v", err)
	}
}
