package hook_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
)

// TestQuestions holds what Metacontroller sends, to the byte, so that a webhook sees no difference.
func TestQuestions(t *testing.T) {
	namespaced := `{"kind":"P","metadata":{"name":"p","namespace":"ns"}}`
	cluster := `{"kind":"P","metadata":{"name":"p"}}`
	const (
		in    = `{"kind":"Pod","metadata":{"name":"b","namespace":"ns"}}`
		also  = `{"kind":"Pod","metadata":{"annotations":{"x":"<&>"},"name":"a","namespace":"ns"}}`
		other = `{"kind":"Pod","metadata":{"name":"b","namespace":"other"}}`
		alone = `{"kind":"Namespace","metadata":{"name":"n"}}`
	)
	for _, c := range []struct {
		name, parent, want string
		t                  hook.Type
		kind               hook.Kind
		version            v1alpha1.HookVersion
		kinds              []hook.ChildKind
		children, related  []string
	}{
		{
			name: "nothing", parent: namespaced, t: hook.Composite, kind: hook.Sync,
			want: `{"controller":{"c":1},"parent":` + namespaced + `,"children":{},"related":{},"finalizing":false}`,
		},
		{
			name: "declared kinds have entries", parent: namespaced, t: hook.Composite, kind: hook.Finalize, kinds: []hook.ChildKind{podKind, setKind},
			want: `{"controller":{"c":1},"parent":` + namespaced + `,"children":{"Pod.v1":{},"StatefulSet.apps/v1":{}},"related":{},"finalizing":true}`,
		},
		{
			name: "v1, namespaced: names, and nothing from elsewhere", parent: namespaced, t: hook.Composite, kind: hook.Sync,
			kinds: []hook.ChildKind{podKind}, children: []string{in, other, alone, also}, related: []string{in, alone},
			want: `{"controller":{"c":1},"parent":` + namespaced + `,"children":{"Pod.v1":{"a":` + escaped(also) + `,"b":` + in + `}},` +
				`"related":{"Pod.v1":{"b":` + in + `,"n":` + alone + `}},"finalizing":false}`,
		},
		{
			name: "v1, cluster-scoped: namespace/name", parent: cluster, t: hook.Composite, kind: hook.Sync, kinds: []hook.ChildKind{podKind},
			children: []string{in, other, alone},
			want: `{"controller":{"c":1},"parent":` + cluster + `,"children":{"Pod.v1":{"n":` + alone + `,"ns/b":` + in + `,"other/b":` + other + `}},` +
				`"related":{},"finalizing":false}`,
		},
		{
			name: "v2: always namespace/name", parent: namespaced, t: hook.Composite, kind: hook.Sync, version: v1alpha1.HookVersionV2,
			kinds: []hook.ChildKind{podKind}, children: []string{in}, related: []string{other, alone},
			want: `{"controller":{"c":1},"parent":` + namespaced + `,"children":{"Pod.v1":{"ns/b":` + in + `}},` +
				`"related":{"Pod.v1":{"n":` + alone + `,"other/b":` + other + `}},"finalizing":false}`,
		},
		{
			name: "a decorator", parent: namespaced, t: hook.Decorator, kind: hook.Sync, kinds: []hook.ChildKind{podKind}, children: []string{in},
			want: `{"controller":{"c":1},"object":` + namespaced + `,"attachments":{"Pod.v1":{"b":` + in + `}},"related":{},"finalizing":false}`,
		},
		{
			name: "customize", parent: namespaced, t: hook.Composite, kind: hook.Customize, kinds: []hook.ChildKind{podKind},
			want: `{"controller":{"c":1},"parent":` + namespaced + `}`,
		},
		{
			name: "customize of a decorator says parent", parent: namespaced, t: hook.Decorator, kind: hook.Customize,
			want: `{"controller":{"c":1},"parent":` + namespaced + `}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, always(`{"children":[],"attachments":[]}`))
			o := options(s.URL)
			o.Controller = hook.Controller{Type: c.t, Object: json.RawMessage(`{"c":1}`), Children: c.kinds}
			o.Kind, o.Declared.Version = c.kind, &c.version
			loose := v1alpha1.ResponseUnmarshallModeLoose
			o.Declared.Webhook.ResponseUnmarshallMode = &loose
			q := &hook.Question{Parent: object(t, c.parent), Children: group(t, c.children), Related: group(t, c.related)}
			h := newHook(t, o)
			var err error
			if c.kind == hook.Customize {
				_, err = h.AskRelated(t.Context(), q)
			} else {
				_, err = h.Ask(t.Context(), q)
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, s.last().body); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// escaped is src as encoding/json writes it.
func escaped(src string) string {
	var v any
	if err := json.Unmarshal([]byte(src), &v); err != nil {
		panic(err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func group(t *testing.T, sources []string) []hook.Group {
	t.Helper()
	if len(sources) == 0 {
		return nil
	}
	g := hook.Group{GroupVersionKind: podKind.GroupVersionKind}
	for _, src := range sources {
		g.Objects = append(g.Objects, object(t, src))
	}
	return []hook.Group{g}
}

// TestQuestionsAreWhatEncodingJSONWrites compares the assembled bytes with those of a struct, as children change under
// an encoder that remembers them.
func TestQuestionsAreWhatEncodingJSONWrites(t *testing.T) {
	type question struct {
		Controller json.RawMessage                                  `json:"controller"`
		Parent     *unstructured.Unstructured                       `json:"parent"`
		Children   map[string]map[string]*unstructured.Unstructured `json:"children"`
		Related    map[string]map[string]*unstructured.Unstructured `json:"related"`
		Finalizing bool                                             `json:"finalizing"`
	}
	s := serve(t, always(noChildren))
	rapid.Check(t, func(rt *rapid.T) {
		h := newHook(t, options(s.URL))
		versions := map[string]int{}
		for range rapid.IntRange(1, 5).Draw(rt, "passes") {
			parent := catset(fmt.Sprint(rapid.IntRange(1, 3).Draw(rt, "parent's version")))
			revision := rapid.SampledFrom([]string{"", "r1"}).Draw(rt, "revision")
			parent.Object["spec"] = revision // what it was restored to
			parent.SetAnnotations(map[string]string{"version": parent.GetResourceVersion()})
			want := question{
				Controller: json.RawMessage(`{"kind":"CompositeController"}`), Parent: parent,
				Children: map[string]map[string]*unstructured.Unstructured{"Pod.v1": {}},
				Related:  map[string]map[string]*unstructured.Unstructured{},
			}
			var objects []*unstructured.Unstructured
			for name := range rapid.MapOf(rapid.SampledFrom([]string{"a", "b<", "c", `"d"`, "é"}), rapid.Bool()).Draw(rt, "pods") {
				if rapid.Bool().Draw(rt, "changed") {
					versions[name]++
				}
				p := pod(name, fmt.Sprint(1+versions[name]))
				p.SetUID(types.UID(name))
				p.SetLabels(map[string]string{"version": p.GetResourceVersion()})
				want.Children["Pod.v1"][name], objects = p, append(objects, p)
			}
			q := &hook.Question{Parent: parent, Revision: revision, Children: pods(objects...), Again: true}
			if _, err := h.Ask(t.Context(), q); err != nil {
				rt.Fatal(err)
			}
			b, err := json.Marshal(want)
			if err != nil {
				rt.Fatal(err)
			}
			if diff := cmp.Diff(string(b), s.last().body); diff != "" {
				rt.Fatalf("-want +got\n%s", diff)
			}
		}
	})
}
