package revision_test

// Askable, the gate before rule E3: a question to the API server is only worth it where a default could be the answer.

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cairn-dev/cairn/revision"
)

func TestAskable(t *testing.T) {
	for _, c := range []struct {
		name, a, b string
		want       bool
	}{
		{"the same", `{"image":"a"}`, `{"image":"a"}`, true}, // Compare is asked first, so nobody asks about these
		{"a new default", `{"image":"a"}`, `{"image":"a","policy":"Always"}`, true},
		{"a new default deeper", `{"c":[{"image":"a"}]}`, `{"c":[{"image":"a","ports":[{"protocol":"TCP"}]}]}`, true},
		{"one new, one dropped", `{"image":"a","old":1}`, `{"image":"a","new":1}`, true},
		{"a mirrored field", `{"account":"x"}`, `{"account":"x","accountName":"x"}`, true},
		{"a new object", `{"image":"a"}`, `{"image":"a","security":{}}`, true},
		{"numbers spelled otherwise", `{"n":1,"new":2}`, `{"n":1.0}`, true},
		{"another image", `{"image":"a"}`, `{"image":"b"}`, false},
		{"another image and a new default", `{"image":"a"}`, `{"image":"b","policy":"Always"}`, false},
		{"another number", `{"n":1}`, `{"n":2}`, false},
		{"a large number", `{"n":9007199254740992}`, `{"n":9007199254740993}`, false},
		{"another type", `{"port":80}`, `{"port":"80"}`, false},
		{"null and a value", `{"n":null}`, `{"n":1}`, false},
		{"null and an object", `{"n":null}`, `{"n":{}}`, false},
		{"object and list", `{"n":{}}`, `{"n":[]}`, false},
		{"list and object", `{"n":[]}`, `{"n":{}}`, false},
		{"one more in a list", `{"c":[{"image":"a"}]}`, `{"c":[{"image":"a"},{"image":"b"}]}`, false},
		{"one less in a list", `{"c":["a"]}`, `{"c":[]}`, false},
		{"another order", `{"c":["a","b"]}`, `{"c":["b","a"]}`, false},
		{"another item at the end", `{"c":["a","b"]}`, `{"c":["a","c"]}`, false},
		{"booleans", `{"on":true}`, `{"on":false}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			wrap := func(s string) *revision.Snapshot {
				return decode(t, plainTarget(t), fmt.Sprintf(`{"spec":{"template":%s}}`, s))
			}
			a, b := wrap(c.a), wrap(c.b)
			if ab, ba := revision.Askable(a, b), revision.Askable(b, a); ab != c.want || ba != c.want {
				t.Errorf("got %t and %t, want %t", ab, ba, c.want)
			}
		})
	}
}

// Taking fields away, anywhere, is what a missing default looks like; changing one more value is what an edit looks
// like.
func TestAskableIsAboutPresenceOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		template := templates().Draw(t, "template")
		full := snapshot(t, typedTarget(), withTemplate(&template))
		tree := parse(t, full.Data())
		fields := tree["spec"].(map[string]any)["template"].(map[string]any)
		fields["spec"].(map[string]any)["schedulerName"] = "mine"
		full = decode(t, typedTarget(), string(encode(t, tree)))
		thin(t, fields)
		thinned := decode(t, typedTarget(), string(encode(t, tree)))
		if !revision.Askable(full, thinned) || !revision.Askable(thinned, full) {
			t.Fatalf("not askable:\n%s\n%s", full.Data(), thinned.Data())
		}
		spec, ok := fields["spec"].(map[string]any)
		if _, kept := spec["schedulerName"]; !ok || !kept {
			return
		}
		spec["schedulerName"] = "yours"
		edited := decode(t, typedTarget(), string(encode(t, tree)))
		if revision.Askable(full, edited) || revision.Askable(edited, full) {
			t.Fatalf("askable:\n%s\n%s", full.Data(), edited.Data())
		}
	})
}

// thin removes some fields of the objects in v. Fields that every object of a kind has are left alone: without them it
// is another object, and a list is kept as long as it is.
func thin(t *rapid.T, v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			switch {
			case key == "spec", key == "containers", key == "volumes", key == "name", key == "port":
				thin(t, v[key])
			case rapid.IntRange(0, 3).Draw(t, key) == 0:
				delete(v, key)
			default:
				thin(t, v[key])
			}
		}
	case []any:
		for _, item := range v {
			thin(t, item)
		}
	case json.Number:
	}
}
