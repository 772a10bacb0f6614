package inspect

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cairn-dev/cairn/internal/inspecttest"
)

// These tests are about going back with parents of CompositeControllers.

// TestUndoRace: an undo of a composite parent is refused if its spec changed meanwhile, and made again if its status
// did.
func TestUndoRace(t *testing.T) {
	for name, c := range map[string]struct {
		generation int64
		meanwhile  []string
		paths      []string
		refused    bool
	}{
		"status":          {generation: 3, meanwhile: []string{"status", "ready"}},
		"spec":            {generation: 4, meanwhile: []string{"spec", "text"}, refused: true},
		"no generation":   {generation: 0, meanwhile: []string{"status", "ready"}},
		"not counted":     {generation: 0, meanwhile: []string{"spec", "text"}, refused: true},
		"recorded labels": {generation: 3, meanwhile: []string{"metadata", "labels", "a"}, paths: []string{"metadata.labels"}, refused: true},
		"other labels":    {generation: 3, meanwhile: []string{"metadata", "labels", "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			cc, nap := inspecttest.CatSets(), inspecttest.CatSet("2")
			kept := cc.Spec.ParentResource.RevisionHistory
			kept.FieldPaths = append(kept.FieldPaths, c.paths...)
			nap.SetGeneration(min(c.generation, 3))
			server := inspecttest.PetServer(t, interceptor.Funcs{}, nap, cc, inspecttest.Taken(t, cc, inspecttest.CatSet("1"), 1), inspecttest.Taken(t, cc, nap, 2))
			i := New(server)
			u, err := i.PlanUndo(t.Context(), nap, 0)
			if err != nil {
				t.Fatal(err)
			}
			live := inspecttest.CatSet("")
			if err := server.Get(t.Context(), client.ObjectKeyFromObject(nap), live); err != nil {
				t.Fatal(err)
			}
			live.SetGeneration(c.generation)
			if err := unstructured.SetNestedField(live.Object, "later", c.meanwhile...); err != nil {
				t.Fatal(err)
			}
			if err := server.Update(t.Context(), live); err != nil {
				t.Fatal(err)
			}
			_, err = i.Apply(t.Context(), u, false)
			var changed *ChangedError
			if errors.As(err, &changed) != c.refused || !c.refused && err != nil {
				t.Errorf("got %v", err)
			}
			if err := server.Get(t.Context(), client.ObjectKeyFromObject(nap), live); err != nil {
				t.Fatal(err)
			}
			text, _, _ := unstructured.NestedString(live.Object, "spec", "template", "text")
			if (text == "1") == c.refused {
				t.Errorf("the text is %q", text)
			}
			if later, _, _ := unstructured.NestedString(live.Object, c.meanwhile...); later != "later" {
				t.Error("what was written meanwhile is gone")
			}
		})
	}
}

// TestOtherPaths: a revision is weighed by the field paths that it was taken with, not by those of today.
func TestOtherPaths(t *testing.T) {
	cc, whole, nap := inspecttest.CatSets(), inspecttest.CatSets(), inspecttest.CatSet("2")
	whole.Spec.ParentResource.RevisionHistory.FieldPaths = []string{"spec"}
	older := inspecttest.CatSet("1")
	i := New(inspecttest.PetServer(t, interceptor.Funcs{}, nap, whole, inspecttest.Taken(t, cc, older, 1), inspecttest.Taken(t, cc, nap, 2), inspecttest.Taken(t, whole, nap, 3)))
	// Revision 2 has no replicas and no selector, and everything that it has is as it is now.
	if _, err := i.PlanUndo(t.Context(), nap, 2); !errors.Is(err, ErrNothingToUndo) {
		t.Errorf("got %v", err)
	}
	u, err := i.PlanUndo(t.Context(), nap, 0)
	if err != nil || u.To.Number != 1 || strings.Contains(u.Diff, "selector") || strings.Contains(string(u.Patch), "replicas") {
		t.Errorf("%+v, %v", u, err)
	}
	inspecttest.ExpectWarnings(t, u.Warnings)
}

// TestAPlanIsOfWhatWasRead: a caller who goes on with the object does not change what a plan was made for.
func TestAPlanIsOfWhatWasRead(t *testing.T) {
	cc, nap := inspecttest.CatSets(), inspecttest.CatSet("2")
	server := inspecttest.PetServer(t, interceptor.Funcs{}, nap, cc, inspecttest.Taken(t, cc, inspecttest.CatSet("1"), 1), inspecttest.Taken(t, cc, nap, 2))
	mine := inspecttest.CatSet("")
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(nap), mine); err != nil {
		t.Fatal(err)
	}
	i := New(server)
	u, err := i.PlanUndo(t.Context(), mine, 0)
	if err != nil {
		t.Fatal(err)
	}
	mine.SetGeneration(4)
	if err := unstructured.SetNestedField(mine.Object, "3", "spec", "template", "text"); err != nil {
		t.Fatal(err)
	}
	if err := server.Update(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	var changed *ChangedError
	if _, err := i.Apply(t.Context(), u, false); !errors.As(err, &changed) {
		t.Errorf("got %v", err)
	}
}
