package content

import (
	"slices"
	"testing"
)

// What differs is said in words, as short as it can be.
func TestChanges(t *testing.T) {
	const pod = `{"spec":{"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"nginx:1.28"},{"name":"log","image":"log:1"}]}}}}`
	for name, c := range map[string]struct {
		before, after string
		want          []string
	}{
		"nothing": {pod, pod, nil},
		"an image": {
			pod, `{"spec":{"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"nginx:1.29"},{"name":"log","image":"log:1"}]}}}}`,
			[]string{`containers[name="web"].image: nginx:1.28 → nginx:1.29`},
		},
		"another order": {
			pod, `{"spec":{"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"log","image":"log:1"},{"name":"web","image":"nginx:1.28"}]}}}}`,
			[]string{`containers[order]: [name="web"] [name="log"] → [name="log"] [name="web"]`},
		},
		"an element before the others": {`{"env":[{"name":"A"}]}`, `{"env":[{"name":"B"},{"name":"A"}]}`, []string{`+env[name="B"]: {"name":"B"}`}},
		"a container more, a label less": {
			pod, `{"spec":{"template":{"metadata":{"labels":{}},"spec":{"containers":[{"name":"web","image":"nginx:1.28"},{"name":"log","image":"log:1"},{"name":"x","image":"y"}]}}}}`,
			[]string{`-labels.app: web`, `+containers[name="x"]: {"image":"y","name":"x"}`},
		},
		"a scale":                            {`{"spec":{"replicas":2}}`, `{"spec":{"replicas":3}}`, []string{"spec.replicas: 2 → 3"}},
		"a list":                             {`{"spec":{"args":["a","b"]}}`, `{"spec":{"args":["a","c"]}}`, []string{`spec.args: ["a","b"] → ["a","c"]`}},
		"another order of what has no names": {`{"spec":{"args":["a","b"]}}`, `{"spec":{"args":["b","a"]}}`, []string{`spec.args: ["a","b"] → ["b","a"]`}},
		"two of one name": {
			`{"l":[{"name":"a","v":1},{"name":"a","v":2}]}`, `{"l":[{"name":"a","v":1},{"name":"a","v":3}]}`,
			[]string{`l: [{"name":"a","v":1},{"name":"a","v":2}] → [{"name":"a","v":1},{"name":"a","v":3}]`},
		},
		"ports":          {`{"ports":[{"containerPort":80},{"containerPort":81,"protocol":"UDP"}]}`, `{"ports":[{"containerPort":81,"protocol":"UDP"}]}`, []string{`-ports[containerPort=80]: {"containerPort":80}`}},
		"ambiguous":      {`{"a":{"x":{"y":1}},"b":{"x":{"y":1}}}`, `{"a":{"x":{"y":2}},"b":{"x":{"y":3}}}`, []string{"a.x.y: 1 → 2", "b.x.y: 1 → 3"}},
		"a type":         {`{"spec":{"a":{"b":1}}}`, `{"spec":{"a":"b"}}`, []string{`spec.a: {"b":1} → b`}},
		"odd keys":       {`{"data":{"app.yaml":"1"}}`, `{"data":{"app.yaml":""}}`, []string{`data["app.yaml"]: 1 → ""`}},
		"long texts":     {`{"data":{"a":"x\ny"}}`, `{"data":{"a":"z"}}`, []string{`data.a: "x\ny" → z`}},
		"a null":         {`{"spec":{"a":null}}`, `{"spec":{}}`, []string{`-spec.a: null`}},
		"a large number": {`{"spec":{"n":9007199254740993}}`, `{"spec":{"n":9007199254740992}}`, []string{"spec.n: 9007199254740993 → 9007199254740992"}},
	} {
		t.Run(name, func(t *testing.T) {
			before, errA := decoded([]byte(c.before))
			after, errB := decoded([]byte(c.after))
			if errA != nil || errB != nil {
				t.Fatal(errA, errB)
			}
			var got []string
			for _, change := range compareContents(before, after) {
				got = append(got, change.String())
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
