package hook_test

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
)

// FuzzDecode: whatever the bytes, the outcome is a failure, or an answer that a controller may act on without looking
// twice.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `{}`, `{"children":null}`, `{"children":[null]}`, `{"children":[{"metadata":{"labels":{"a":1}}}]}`,
		`{"children":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}],"status":{"a":1.5}}`,
		`{"attachments":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}],"labels":{"a":null}}`,
		`{"children":[],"resyncAfterSeconds":1e308,"finalized":true}`, `[[[[[[[[`, "{\"children\":[\"\xff\"]}",
		`{"relatedResources":[{"apiVersion":"v1","resource":"pods","names":["a"]}]}`,
	} {
		f.Add([]byte(seed))
	}
	forms := []hook.Form{
		composite, strict(composite), clusterwide, decorator, strict(decorator), childless(composite), finalizing(composite),
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, form := range forms {
			answer, err := form.Decode(body)
			var failed *hook.Error
			switch {
			case (answer == nil) != (err != nil):
				t.Fatalf("%v and %v", answer, err)
			case err == nil:
				checkAnswer(t, form, answer)
			case !errors.As(err, &failed) || failed.Reason == "":
				t.Fatalf("no failure: %v", err)
			case len(err.Error()) > 4000:
				t.Fatalf("%d bytes of error", len(err.Error()))
			}
			if rules, err := form.DecodeRules(v1alpha1.HookVersionV1, body); err != nil && rules != nil {
				t.Fatal(rules, err)
			}
		}
	})
}

func checkAnswer(t *testing.T, form hook.Form, a *hook.Answer) {
	t.Helper()
	if a.ChildrenPresence == hook.Absent && len(form.Kinds) > 0 && !a.Finalized {
		t.Fatal("an answer without children is an answer")
	}
	if a.ResyncAfter < 0 {
		t.Fatal(a.ResyncAfter)
	}
	seen := map[string]bool{}
	for _, child := range a.Children {
		key := child.GetKind() + "/" + child.GetNamespace() + "/" + child.GetName()
		if child.GetName() == "" || seen[key] || form.Namespace != "" && child.GetNamespace() != form.Namespace {
			t.Fatalf("child %q", key)
		}
		seen[key] = true
		(&unstructured.Unstructured{Object: child.Object}).DeepCopy() // panics at what is no JSON
	}
}
