package podtemplate_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/cairn-dev/cairn/internal/podtemplate"
)

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func text(t *testing.T, tree map[string]any) string {
	t.Helper()
	b, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestNormal: what an encoder adds is no difference, what a user has set is.
func TestNormal(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"what an encoder adds": {
			`{"spec":{"size":0,"template":{"metadata":{"creationTimestamp":null,"labels":{}},"spec":{"containers":[{"name":"a","resources":{}}]}}}}`,
			`{"spec":{"size":0,"template":{"metadata":{},"spec":{"containers":[{"name":"a","resources":{}}]}}}}`,
		},
		"what it leaves out": {
			`{"spec":{"template":{"spec":{"containers":[{"name":"a"}]}}}}`,
			`{"spec":{"template":{"metadata":{},"spec":{"containers":[{"name":"a","resources":{}}]}}}}`,
		},
		"in a list": {
			`{"spec":{"pools":[{"template":{"spec":{"containers":[{"name":"a"}]}}}]}}`,
			`{"spec":{"pools":[{"template":{"metadata":{},"spec":{"containers":[{"name":"a","resources":{}}]}}}]}}`,
		},
		"a field of another's": {
			`{"spec":{"template":{"spec":{"containers":[{"name":"a","podInjectPolicy":"x"}]}}}}`,
			`{"spec":{"template":{"spec":{"containers":[{"name":"a","podInjectPolicy":"x"}]}}}}`,
		},
		"no template": {`{"spec":{"containers":[{"name":"a"}],"selector":{}}}`, `{"spec":{"containers":[{"name":"a"}],"selector":{}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			in := parse(t, c.in)
			out, err := podtemplate.Normal(in)
			if err != nil || text(t, out) != c.want {
				t.Errorf("%s, %v\nwant %s", text(t, out), err, c.want)
			}
			if got := text(t, in); got != text(t, parse(t, c.in)) {
				t.Errorf("it was changed: %s", got)
			}
		})
	}
}

func TestEachFails(t *testing.T) {
	broken := errors.New("broken")
	in := parse(t, `{"spec":{"pools":[{"template":{"spec":{"containers":[{"name":"a"}]}}}]}}`)
	if _, err := podtemplate.Each(in, func(map[string]any) (map[string]any, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
}
