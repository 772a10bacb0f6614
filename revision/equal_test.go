package revision_test

// Compare and Askable: Compare is an equivalence relation, it agrees with the API server's own idea of equality, and it
// never confuses two contents; Askable is true only for what a default could explain.

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"

	"github.com/cairn-dev/cairn/revision"
)

// TestCompareIsAnEquivalence takes a crowd of snapshots of which many mean the same in different spellings, some taken
// from a parent and some read from the log, and checks the three laws on all of them.
func TestCompareIsAnEquivalence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		crowd := crowds().Draw(t, "crowd")
		equal := func(i, j int) bool { return revision.Compare(crowd[i], crowd[j]) != revision.RuleNone }
		for i := range crowd {
			if !equal(i, i) {
				t.Fatalf("not reflexive: %s", crowd[i].Data())
			}
			for j := range crowd {
				if equal(i, j) != equal(j, i) {
					t.Fatalf("not symmetric:\n%s\n%s", crowd[i].Data(), crowd[j].Data())
				}
				for k := range crowd {
					if equal(i, j) && equal(j, k) && !equal(i, k) {
						t.Fatalf("not transitive:\n%s\n%s\n%s", crowd[i].Data(), crowd[j].Data(), crowd[k].Data())
					}
				}
			}
		}
	})
}

// crowds generates snapshots of one target, typed or plain.
func crowds() *rapid.Generator[[]*revision.Snapshot] {
	return rapid.Custom(func(t *rapid.T) []*revision.Snapshot {
		if rapid.Bool().Draw(t, "typed") {
			return typedCrowd(t)
		}
		target := plainTarget(t)
		var crowd []*revision.Snapshot
		for range rapid.IntRange(1, 3).Draw(t, "contents") {
			parent := map[string]any{"spec": map[string]any{"template": values(2).Draw(t, "template")}}
			s := snapshot(t, target, parent)
			crowd = append(crowd, s, decode(t, target, string(s.Data())),
				decode(t, target, respelledJSON(t, parse(t, s.Data()))))
		}
		return crowd
	})
}

func typedCrowd(t *rapid.T) []*revision.Snapshot {
	var crowd []*revision.Snapshot
	base := templates().Draw(t, "base")
	for range rapid.IntRange(1, 3).Draw(t, "contents") {
		template := base.DeepCopy()
		nudge(t, template)
		s := snapshot(t, typedTarget(), withTemplate(respelled(t, template)))
		crowd = append(crowd, s, decode(t, typedTarget(), respelledJSON(t, parse(t, s.Data()))))
	}
	return crowd
}

// values generates what an unstructured object may hold, numbers of every Go type and size included.
func values(depth int) *rapid.Generator[any] {
	scalars := rapid.SampledFrom([]any{
		nil, true, "", "a", int64(1), 1, 1.0, 1.5, 0.0, -1.0, 1e15, 1e16, 1e20, 1e21, 1e300, 1e-9,
		int64(1) << 53, int64(1)<<53 + 1, float64(1 << 53), json.Number("1.0"), json.Number("1e16"),
	})
	if depth == 0 {
		return scalars
	}
	return rapid.OneOf(scalars,
		rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"a", "b"}), values(depth-1), 0, 2), func(m map[string]any) any { return m }),
		rapid.Map(rapid.SliceOfN(values(depth-1), 0, 2), func(l []any) any { return l }))
}

// nudge changes one thing, or nothing.
func nudge(t *rapid.T, template *corev1.PodTemplateSpec) {
	other := templates().Draw(t, "other")
	switch rapid.IntRange(0, 5).Draw(t, "nudge") {
	case 0:
	case 1:
		template.Labels = other.Labels
	case 2:
		template.Spec.Volumes = other.Spec.Volumes
	case 3:
		template.Spec.SecurityContext = other.Spec.SecurityContext
	case 4:
		template.Spec.Containers = other.Spec.Containers
	default:
		if n := len(template.Spec.Containers); n > 1 {
			template.Spec.Containers[0], template.Spec.Containers[n-1] = template.Spec.Containers[n-1], template.Spec.Containers[0]
		}
	}
}

// The API server raises a generation when apiequality.Semantic says that two specs differ. Compare must say the same.
func TestCompareAgreesWithTheAPIServer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := templates().Draw(t, "a")
		b := a.DeepCopy()
		nudge(t, b)
		b = respelled(t, b)
		want := apiequality.Semantic.DeepEqual(&a, b)
		sa := snapshot(t, typedTarget(), withTemplate(&a))
		sb := decode(t, typedTarget(), respelledJSON(t, parse(t, snapshot(t, typedTarget(), withTemplate(b)).Data())))
		if got := revision.Compare(sa, sb) != revision.RuleNone; got != want {
			t.Fatalf("Compare says equal: %t; the API server says: %t\n%s\n%s", got, want, sa.Data(), sb.Data())
		}
	})
}

// Without a type, two contents are equal if the API server would store the same for both.
func TestCompareOfPlainJSONAgreesWithTheAPIServer(t *testing.T) {
	stored := func(t tb, s *revision.Snapshot) any {
		var v any
		if err := utiljson.Unmarshal(s.Data(), &v); err != nil {
			t.Fatalf("%v", err)
		}
		b, again := encode(t, v), any(nil) // encoding makes the float 1 and the integer 1 the same
		if err := utiljson.Unmarshal(b, &again); err != nil {
			t.Fatalf("%v", err)
		}
		return again
	}
	rapid.Check(t, func(t *rapid.T) {
		target := plainTarget(t)
		take := func(what string) *revision.Snapshot {
			return snapshot(t, target, map[string]any{"spec": map[string]any{"template": values(1).Draw(t, what)}})
		}
		a, b := take("a"), take("b")
		want := reflect.DeepEqual(stored(t, a), stored(t, b))
		if got := revision.Compare(a, b) != revision.RuleNone; got != want {
			t.Fatalf("Compare says equal: %t; the API server says: %t\n%s\n%s", got, want, a.Data(), b.Data())
		}
	})
}

// What comes back says how much had to be assumed: nothing (E1), or today's type (E2).
func TestCompareNamesTheRule(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want revision.Rule
	}{
		{`{"x":1}`, `{"x":1}`, revision.RuleBytes},
		{`{"x":1,"y":[]}`, ` { "y":[], "x":1.0 } `, revision.RuleBytes},
		{`{"x":1}`, `{"x":10e-1}`, revision.RuleBytes},
		{`{"x":-0}`, `{"x":0.0}`, revision.RuleBytes},
		{`{"x":-0.0}`, `{"x":0}`, revision.RuleBytes},
		{`{"x":0.1}`, `{"x":1e-1}`, revision.RuleBytes},
		{`{"x":100000000000000000000}`, `{"x":1e20}`, revision.RuleBytes},
		{`{"x":9007199254740992}`, `{"x":9007199254740992.0}`, revision.RuleBytes},
		{`{"x":9007199254740992}`, `{"x":9007199254740993}`, revision.RuleNone},
		{`{"x":18446744073709551616}`, `{"x":18446744073709551617}`, revision.RuleNone}, // beyond 64 bits
		{`{"x":1}`, `{"x":1.0000001}`, revision.RuleNone},
		{`{"x":1}`, `{"x":"1"}`, revision.RuleNone},
		{`{"x":1}`, `{"x":true}`, revision.RuleNone},
		{`{"a":{"creationTimestamp":null}}`, `{"a":{}}`, revision.RuleBytes},
		{`{"creationTimestamp":""}`, `{}`, revision.RuleNone},
		{`{"x":null}`, `{}`, revision.RuleNone}, // without a schema nobody knows whether null is a value
		{`{"x":[]}`, `{}`, revision.RuleNone},
		{`{"x":{}}`, `{}`, revision.RuleNone},
		{`{"x":{}}`, `{"x":[]}`, revision.RuleNone},
		{`{"x":[1,2]}`, `{"x":[2,1]}`, revision.RuleNone},
		{`{"x":[1]}`, `{"x":[1,1]}`, revision.RuleNone},
		{`{"$patch":"replace"}`, `{}`, revision.RuleNone}, // content, here: this target has no directives
		{`{"X":1}`, `{"x":1}`, revision.RuleNone},
	} {
		wrap := func(s string) *revision.Snapshot {
			return decode(t, plainTarget(t), fmt.Sprintf(`{"spec":{"template":%s}}`, s))
		}
		a, b := wrap(c.a), wrap(c.b)
		if ab, ba := revision.Compare(a, b), revision.Compare(b, a); ab != c.want || ba != c.want {
			t.Errorf("%s and %s: got %q and %q, want %q", c.a, c.b, ab, ba, c.want)
		}
	}
}
