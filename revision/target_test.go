package revision_test

// Paths and targets: what can be named, what is refused, and how a normalizer is used.

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/cairn-dev/cairn/revision"
)

func TestParsePath(t *testing.T) {
	for _, c := range []struct {
		in   string
		want revision.Path
		err  string
	}{
		{"spec", revision.Path{"spec"}, ""},
		{"spec.template", revision.Path{"spec", "template"}, ""},
		{"spec.my-field.x/y", revision.Path{"spec", "my-field", "x/y"}, ""}, // no escaping
		{"", nil, "a field path must name at least one field, for instance spec.template"},
		{".", nil, `field path "." has an empty field name`},
		{".spec", nil, `field path ".spec" has an empty field name`},
		{"spec.", nil, `field path "spec." has an empty field name`},
		{"spec..template", nil, `field path "spec..template" has an empty field name`},
	} {
		got, err := revision.ParsePath(c.in)
		if c.err != "" {
			if err == nil || err.Error() != c.err || got != nil {
				t.Errorf("%q: got %v, %v, want the error %q", c.in, got, err, c.err)
			}
			continue
		}
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%q: %v (-want +got):\n%s", c.in, err, diff)
		}
	}
}

func TestPathStringIsTheInverseOfParsePath(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := revision.Path(rapid.SliceOfN(rapid.StringMatching(`[^.]+`), 1, 4).Draw(t, "path"))
		got, err := revision.ParsePath(want.String())
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Fatalf("%v (-want +got):\n%s", err, diff)
		}
	})
}

func TestFieldPaths(t *testing.T) {
	const empty = "a field path must name at least one field, for instance spec.template"
	for name, c := range map[string]struct {
		paths []string
		err   string
	}{
		"one":             {[]string{"spec"}, ""},
		"siblings":        {[]string{"spec.template", "spec.templates", "spec.b.c", "spec.b.d"}, ""},
		"none":            {nil, "a target needs at least one field path"},
		"empty":           {[]string{"spec", ""}, empty},
		"twice":           {[]string{"spec.a", "spec.a"}, "field path spec.a lies inside field path spec.a; name the outer one only"},
		"inner and outer": {[]string{"spec.a.b", "spec"}, "field path spec.a.b lies inside field path spec; name the outer one only"},
		"outer and inner": {[]string{"spec", "x", "spec.a"}, "field path spec.a lies inside field path spec; name the outer one only"},
	} {
		var paths []revision.Path
		for _, s := range c.paths {
			p, _ := revision.ParsePath(s)
			paths = append(paths, p)
		}
		target, err := revision.FieldPaths(nil, paths...)
		if c.err != "" {
			if err == nil || err.Error() != c.err || target != nil {
				t.Errorf("%s: got %v, want the error %q", name, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(paths, target.Paths()); diff != "" {
			t.Errorf("%s: Paths (-want +got):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff([]revision.Path{templatePath}, typedTarget().Paths()); diff != "" {
		t.Errorf("StrategicMerge: Paths (-want +got):\n%s", diff)
	}
}

// Without a normalizer the strategic merge format compares plain JSON.
func TestStrategicMergeWithoutNormalizer(t *testing.T) {
	target := revision.StrategicMerge(nil, revision.Path{"a"})
	s := snapshot(t, target, map[string]any{"a": map[string]any{"x": int64(1)}, "b": int64(2)})
	if got, want := string(s.Data()), `{"a":{"$patch":"replace","x":1}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	wantSame(t, s, decode(t, target, `{"a":{"x":1.0}}`))
	wantDifferent(t, s, decode(t, target, `{"a":{"x":1,"y":[]}}`))
}

// A custom resource's normalizer fills in the defaults of its schema. What it adds outside the covered paths is none of
// our business, and what it changes in its argument does not reach the snapshot.
func TestNormalizer(t *testing.T) {
	var seen int
	defaults := func(tree map[string]any) (map[string]any, error) {
		seen++
		tree["status"] = map[string]any{"seen": seen}
		spec, ok := tree["spec"].(map[string]any)
		if !ok {
			return tree, nil
		}
		template, ok := spec["template"].(map[string]any)
		if !ok {
			return nil, errors.New("no template")
		}
		if _, ok := template["policy"]; !ok {
			template["policy"] = "Always"
		}
		spec["generated"] = seen
		return tree, nil
	}
	target, err := revision.FieldPaths(defaults, templatePath)
	if err != nil {
		t.Fatal(err)
	}
	old, now := decode(t, target, `{"spec":{"template":{"image":"a"}}}`), decode(t, target, `{"spec":{"template":{"image":"a","policy":"Always"}}}`)
	if got := revision.Compare(old, now); got != revision.RuleNormal {
		t.Errorf("Compare = %q, want %q", got, revision.RuleNormal)
	}
	wantDifferent(t, old, decode(t, target, `{"spec":{"template":{"image":"a","policy":"Never"}}}`))
	wantDifferent(t, old, decode(t, target, `{}`))
	restored, err := old.Restore(map[string]any{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(encode(t, restored)), `{"spec":{"template":{"image":"a"}}}`; got != want {
		t.Errorf("the normalizer's work was restored: got %s, want %s", got, want)
	}
	if _, err := target.Decode([]byte(`{"spec":{"template":3}}`)); err == nil || !strings.Contains(err.Error(), "no template") {
		t.Errorf("Decode of what the normalizer refuses: got %v", err)
	}
}

// Snapshots that the normalizer refuses are never equal by it, and nothing is asked about them.
func TestCompareOfWhatTheNormalizerRefuses(t *testing.T) {
	target, err := revision.FieldPaths(revision.Typed[corev1.Pod](), revision.Path{"spec"})
	if err != nil {
		t.Fatal(err)
	}
	bad := snapshot(t, target, map[string]any{"spec": map[string]any{"containers": "x"}})
	worse := snapshot(t, target, map[string]any{"spec": map[string]any{"containers": "y"}})
	good := snapshot(t, target, map[string]any{"spec": map[string]any{}})
	wantSame(t, bad, bad)
	wantDifferent(t, bad, worse)
	wantDifferent(t, bad, good)
	if revision.Askable(bad, worse) || revision.Askable(bad, good) || revision.Askable(good, bad) {
		t.Error("askable")
	}
}

// odd holds what a type can do with empty values.
type odd struct {
	Spec struct {
		List   []string            `json:"list"`
		Map    map[string]string   `json:"map"`
		Lists  map[string][]string `json:"lists"`
		Nested []map[string]int    `json:"nested"`
		Any    any                 `json:"any"`
		Size   *resource.Quantity  `json:"size"`
		Sizes  corev1.ResourceList `json:"sizes"`
	} `json:"spec"`
}

func TestTyped(t *testing.T) {
	target, err := revision.FieldPaths(revision.Typed[odd](), revision.Path{"spec"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		a, b string
		want revision.Rule
	}{
		{`{"list":[]}`, `{}`, revision.RuleNormal},
		{`{"list":null}`, `{"list":[]}`, revision.RuleNormal},
		{`{"list":[""]}`, `{"list":[]}`, revision.RuleNone},
		{`{"map":{}}`, `{}`, revision.RuleNormal},
		{`{"map":null}`, `{"map":{}}`, revision.RuleNormal},
		{`{"map":{"a":""}}`, `{"map":{}}`, revision.RuleNone},
		{`{"lists":{"a":[]}}`, `{"lists":{"a":null}}`, revision.RuleNormal},
		{`{"lists":{"a":[]}}`, `{"lists":{}}`, revision.RuleNone},
		{`{"nested":[{}]}`, `{"nested":[null]}`, revision.RuleNormal},
		{`{"nested":[{}]}`, `{"nested":[]}`, revision.RuleNone},
		{`{"any":{"a":[]}}`, `{"any":{"a":1}}`, revision.RuleNone},
		{`{"size":"1Gi"}`, `{"size":"1024Mi"}`, revision.RuleNormal},
		{`{"size":0.5}`, `{"size":"500m"}`, revision.RuleNormal},
		{`{"size":"0"}`, `{}`, revision.RuleNone},
		{`{"sizes":{"cpu":"1e3"}}`, `{"sizes":{"cpu":1000}}`, revision.RuleNormal},
		{`{"sizes":{"cpu":"9223372036854775808"}}`, `{"sizes":{"cpu":"9223372036854775809"}}`, revision.RuleNone},
		{`{"unknown":1}`, `{"unknown":2}`, revision.RuleNormal},
	} {
		a, b := decode(t, target, `{"spec":`+c.a+`}`), decode(t, target, `{"spec":`+c.b+`}`)
		if ab, ba := revision.Compare(a, b), revision.Compare(b, a); ab != c.want || ba != c.want {
			t.Errorf("%s and %s: got %q and %q, want %q", c.a, c.b, ab, ba, c.want)
		}
	}
}

// A normalizer may fill in Go numbers, as the defaulting of the Kubernetes libraries does. They are numbers like those
// that were stored.
func TestNormalizerMayUseGoNumbers(t *testing.T) {
	var filled map[string]any
	defaults := func(tree map[string]any) (map[string]any, error) {
		template := tree["spec"].(map[string]any)["template"].(map[string]any)
		for field, value := range filled {
			if _, ok := template[field]; !ok {
				template[field] = value
			}
		}
		return tree, nil
	}
	target, err := revision.FieldPaths(defaults, templatePath)
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []any{int64(3), 3, 3.0, json.Number("3"), json.Number("3e0")} {
		filled = map[string]any{"n": value}
		old, now := decode(t, target, `{"spec":{"template":{}}}`), decode(t, target, `{"spec":{"template":{"n":3}}}`)
		more := decode(t, target, `{"spec":{"template":{"n":3.0,"later":true}}}`)
		if got := revision.Compare(old, now); got != revision.RuleNormal {
			t.Errorf("%T: Compare = %q, want %q", value, got, revision.RuleNormal)
		}
		if !revision.Askable(old, more) || !revision.Askable(more, old) {
			t.Errorf("%T: not askable", value)
		}
	}
	filled = map[string]any{"n": []string{"a"}}
	if _, err := target.Decode([]byte(`{"spec":{"template":{}}}`)); err == nil || !strings.Contains(err.Error(), "a []string is no decoded JSON") {
		t.Errorf("got %v", err)
	}
}
