package apply_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/cairn-dev/cairn/internal/metacontroller/apply"
)

// TestMerge is the table of what Metacontroller does. A case whose name begins with "mended" is one where it does
// something else, or never comes to rest.
func TestMerge(t *testing.T) {
	for _, c := range []struct{ name, observed, last, desired, want string }{
		{"nothing", `{}`, `{}`, `{}`, `{}`},
		{"a field is added", `{"a":1}`, `{}`, `{"b":2}`, `{"a":1,"b":2}`},
		{"a field is changed", `{"a":1}`, `{"a":1}`, `{"a":2}`, `{"a":2}`},
		{"drift is put right", `{"a":9}`, `{"a":1}`, `{"a":1}`, `{"a":1}`},
		{"a field that was set is removed", `{"a":1,"b":2}`, `{"a":1}`, `{}`, `{"b":2}`},
		{"a field that nobody set stays", `{"a":{"x":1,"y":2}}`, `{"a":{"x":1}}`, `{"a":{}}`, `{"a":{"y":2}}`},
		{"a whole object that was set is removed with what others wrote", `{"a":{"x":1,"y":2}}`, `{"a":{"x":1}}`, `{}`, `{}`},
		{"without a last, nothing is removed", `{"a":1,"b":2}`, `null`, `{"a":2}`, `{"a":2,"b":2}`},

		{"an object is not replaced by a scalar", `{"a":{"x":1}}`, `{}`, `{"a":7}`, `{"a":{"x":1}}`},
		{"an object is not replaced by a list", `{"a":{"x":1}}`, `{}`, `{"a":[1]}`, `{"a":{"x":1}}`},
		{"but loses what was set", `{"a":{"x":1,"y":2}}`, `{"a":{"x":1}}`, `{"a":7}`, `{"a":{"y":2}}`},
		{"a scalar is replaced by an object", `{"a":7}`, `{"a":7}`, `{"a":{"x":1}}`, `{"a":{"x":1}}`},
		{"a last of another type is no last", `{"a":{"x":1}}`, `{"a":[1]}`, `{"a":{"y":2}}`, `{"a":{"x":1,"y":2}}`},
		{"null over a scalar", `{"a":1}`, `{"a":1}`, `{"a":null}`, `{"a":null}`},
		{"null over an object drops what was set", `{"a":{"x":1,"y":2}}`, `{"a":{"x":1}}`, `{"a":null}`, `{"a":{"y":2}}`},
		{"null over a list", `{"a":[1]}`, `{"a":[1]}`, `{"a":null}`, `{"a":null}`},
		{"mended: a scalar over a list", `{"a":[1]}`, `{}`, `{"a":7}`, `{"a":7}`},

		{"a list of scalars is replaced", `{"a":[1,2]}`, `{"a":[1]}`, `{"a":[3]}`, `{"a":[3]}`},
		{"a list of objects without a key is replaced", `{"a":[{"k":1},{"k":2}]}`, `{}`, `{"a":[{"k":3}]}`, `{"a":[{"k":3}]}`},
		{"one item without the key is enough", `{"a":[{"name":"x"},{"k":2}]}`, `{}`, `{"a":[{"name":"x"}]}`, `{"a":[{"name":"x"}]}`},
		{"also in last", `{"a":[{"name":"y"}]}`, `{"a":[{"k":1}]}`, `{"a":[{"name":"x"}]}`, `{"a":[{"name":"x"}]}`},
		{"one scalar is enough", `{"a":[{"name":"x"},2]}`, `{}`, `{"a":[{"name":"x"}]}`, `{"a":[{"name":"x"}]}`},
		{
			"by name: observed order, then new ones; others' items stay, ours go",
			`{"a":[{"name":"theirs"},{"name":"gone"},{"name":"b","v":1,"w":2}]}`,
			`{"a":[{"name":"gone"},{"name":"b","v":1}]}`,
			`{"a":[{"name":"new"},{"name":"b","v":3}]}`,
			`{"a":[{"name":"theirs"},{"name":"b","v":3,"w":2},{"name":"new"}]}`,
		},
		{"another order alone is no change", `{"a":[{"name":"x"},{"name":"y"}]}`, `{}`, `{"a":[{"name":"y"},{"name":"x"}]}`, `{"a":[{"name":"x"},{"name":"y"}]}`},
		{"an empty list takes the items", `{"a":[]}`, `{}`, `{"a":[{"name":"x"}]}`, `{"a":[{"name":"x"}]}`},
		{"an empty desired list drops ours", `{"a":[{"name":"x"},{"name":"y"}]}`, `{"a":[{"name":"x"}]}`, `{"a":[]}`, `{"a":[{"name":"y"}]}`},
		{"keys are compared as text", `{"a":[{"port":80,"v":1}]}`, `{}`, `{"a":[{"port":"80","v":2}]}`, `{"a":[{"port":"80","v":2}]}`},
		{
			"containerPort is before port and name",
			`{"a":[{"containerPort":1,"port":1,"name":"a","o":1}]}`, `{}`, `{"a":[{"containerPort":1,"port":2,"name":"b"}]}`,
			`{"a":[{"containerPort":1,"port":2,"name":"b","o":1}]}`,
		},
		{"port is before mountPath", `{"a":[{"port":1,"mountPath":"a","o":1}]}`, `{}`, `{"a":[{"port":1,"mountPath":"b"}]}`, `{"a":[{"port":1,"mountPath":"b","o":1}]}`},
		{"mountPath is before name", `{"a":[{"mountPath":"/","name":"a","o":1}]}`, `{}`, `{"a":[{"mountPath":"/","name":"b"}]}`, `{"a":[{"mountPath":"/","name":"b","o":1}]}`},
		{"name is before uid", `{"a":[{"name":"a","uid":"1","o":1}]}`, `{}`, `{"a":[{"name":"a","uid":"2"}]}`, `{"a":[{"name":"a","uid":"2","o":1}]}`},
		{"uid is before ip", `{"a":[{"uid":"a","ip":"1","o":1}]}`, `{}`, `{"a":[{"uid":"a","ip":"2"}]}`, `{"a":[{"uid":"a","ip":"2","o":1}]}`},
		{"ip is before path", `{"a":[{"ip":"a","path":"1","o":1}]}`, `{}`, `{"a":[{"ip":"a","path":"2"}]}`, `{"a":[{"ip":"a","path":"2","o":1}]}`},
		{"path is the last one", `{"a":[{"path":"a","o":1}]}`, `{}`, `{"a":[{"path":"a","n":2}]}`, `{"a":[{"path":"a","n":2,"o":1}]}`},
		{
			"mended: a port that is there twice is no key, the name is (#371)",
			`{"a":[{"name":"t","port":53,"protocol":"TCP"},{"name":"u","port":53,"protocol":"UDP"}]}`, `{}`,
			`{"a":[{"name":"t","port":53,"protocol":"TCP"},{"name":"u","port":53,"protocol":"UDP"}]}`,
			`{"a":[{"name":"t","port":53,"protocol":"TCP"},{"name":"u","port":53,"protocol":"UDP"}]}`,
		},
		{
			"mended: without another key the list is replaced",
			`{"a":[{"port":53,"protocol":"TCP"}]}`, `{}`,
			`{"a":[{"port":53,"protocol":"TCP"},{"port":53,"protocol":"UDP"}]}`,
			`{"a":[{"port":53,"protocol":"TCP"},{"port":53,"protocol":"UDP"}]}`,
		},

		{"mended: 1.0 is 1", `{"a":1}`, `{}`, `{"a":1.0}`, `{"a":1}`},
		{"mended: null is nothing", `{}`, `{}`, `{"a":null}`, `{}`},
		{"mended: also inside what is compared as a whole", `{"a":[{"k":1}]}`, `{}`, `{"a":[{"k":1.0,"creationTimestamp":null}]}`, `{"a":[{"k":1}]}`},
		{"2^53+1 is not 2^53", `{"a":9007199254740992}`, `{}`, `{"a":9007199254740993}`, `{"a":9007199254740993}`},
		{"a string is no number", `{"a":"1"}`, `{}`, `{"a":1}`, `{"a":1}`},
		{"true is not 1", `{"a":true}`, `{}`, `{"a":1}`, `{"a":1}`},
		{"a fraction is a fraction", `{"a":1}`, `{}`, `{"a":1.5}`, `{"a":1.5}`},
		{"an empty list is not none", `{}`, `{}`, `{"a":[]}`, `{"a":[]}`},
		{"an empty object is not none", `{}`, `{}`, `{"a":{}}`, `{"a":{}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			observed, last, desired := parse(t, c.observed), parse(t, c.last), parse(t, c.desired)
			merged, changed := apply.Merge(observed, last, desired)
			if diff := cmp.Diff(parse(t, c.want), merged); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if want := text(t, parse(t, c.want)) != text(t, parse(t, c.observed)); changed != want {
				t.Errorf("changed is %t", changed)
			}
			for name, pair := range map[string][2]any{
				"observed": {observed, parse(t, c.observed)}, "last": {last, parse(t, c.last)}, "desired": {desired, parse(t, c.desired)},
			} {
				if diff := cmp.Diff(pair[1], pair[0]); diff != "" {
					t.Errorf("%s was written to: -before +after\n%s", name, diff)
				}
			}
		})
	}
}

// parse decodes as the API client does: integers are int64.
func parse(t testing.TB, src string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := utiljson.Unmarshal([]byte(src), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func text(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
