package revision_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cairn-dev/cairn/revision"
)

// What revisions hold, of controllers that say it nowhere.
func TestInferred(t *testing.T) {
	for name, c := range map[string]struct {
		data []string
		want string
	}{
		"a template that is replaced": {[]string{`{"spec":{"template":{"$patch":"replace","spec":{}}}}`}, "spec.template"},
		"two parts": {
			[]string{`{"spec":{"networkConfig":{"subdomainPolicy":"Shared"},"leaderWorkerTemplate":{"$patch":"replace","size":4}}}`},
			"spec.leaderWorkerTemplate spec.networkConfig",
		},
		"a part that an older one lacks": {[]string{`{"spec":{"a":1}}`, `{"spec":{"a":1,"b":{"c":2}}}`}, "spec.a spec.b"},
		"a directive deeper down":        {[]string{`{"spec":{"a":{"b":{"$patch":"replace"},"c":1},"d":{"e":1}}}`}, "spec.a.b spec.a.c spec.d"},
		"a part in two depths":           {[]string{`{"spec":{"a":{"b":{"$patch":"replace"}}}}`, `{"spec":{"a":{"$patch":"replace"}}}`}, "spec.a"},
		"a directive at spec itself": {
			[]string{`{"spec":{"$patch":"replace","containers":[],"volumes":null}}`}, "spec.containers spec.volumes",
		},
		"the whole object":        {[]string{`{"apiVersion":"v1","kind":"Car","metadata":{"name":"a"},"spec":{"doors":4},"status":{"x":1}}`}, "spec.doors"},
		"no spec":                 {[]string{`{"data":{"a":"b"},"immutable":true}`}, "data immutable"},
		"one that cannot be read": {[]string{`7`, `{"data":{"a":"b"}}`}, "data"},
		"nothing":                 {[]string{`{"spec":{}}`, `{"kind":"Car"}`}, "no field"},
		"no object":               {[]string{`[]`}, "no field"},
	} {
		t.Run(name, func(t *testing.T) {
			var data [][]byte
			for _, d := range c.data {
				data = append(data, []byte(d))
			}
			target, err := revision.Inferred(nil, data...)
			got := fmt.Sprint(err)
			if err == nil {
				var paths []string
				for _, p := range target.Paths() {
					paths = append(paths, p.String())
				}
				got = strings.Join(paths, " ")
			}
			if got != c.want && (c.want != "no field" || !strings.HasPrefix(got, c.want)) {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestInferredLeavesTheRest: what no revision holds is not removed, and a null in one is an absent field.
func TestInferredLeavesTheRest(t *testing.T) {
	first := []byte(`{"spec":{"$patch":"replace","containers":["a:1"],"volumes":null}}`)
	target, err := revision.Inferred(nil, first)
	if err != nil {
		t.Fatal(err)
	}
	was, err := target.Decode(first)
	if err != nil {
		t.Fatal(err)
	}
	live := map[string]any{"spec": map[string]any{
		"selector": map[string]any{"app": "a"}, "containers": []any{"a:2"}, "volumes": []any{"v"},
	}}
	back, err := was.Restore(live)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(back); got != "map[spec:map[containers:[a:1] selector:map[app:a]]]" {
		t.Error(got)
	}
	now, err := target.Snapshot(back)
	if err != nil || revision.Compare(now, was) == revision.RuleNone {
		t.Errorf("what was brought back is not the revision: %v", err)
	}
}

// Going back brings what the revision holds, and removes what it lacks and others have. Directives are no part of it.
func TestInferredGoesBack(t *testing.T) {
	first := []byte(`{"spec":{"template":{"$patch":"replace","image":"a:1"}}}`)
	second := []byte(`{"spec":{"network":{"shared":true},"template":{"$patch":"replace","image":"a:2"}}}`)
	target, err := revision.Inferred(nil, first, second)
	if err != nil {
		t.Fatal(err)
	}
	live := map[string]any{"spec": map[string]any{
		"replicas": int64(3), "network": map[string]any{"shared": true}, "template": map[string]any{"image": "a:2"},
	}}
	now, err := target.Snapshot(live)
	if err != nil {
		t.Fatal(err)
	}
	was, err := target.Decode(first)
	if err != nil {
		t.Fatal(err)
	}
	is, err := target.Decode(second)
	if err != nil {
		t.Fatal(err)
	}
	if revision.Compare(now, is) == revision.RuleNone || revision.Compare(now, was) != revision.RuleNone {
		t.Error("the second revision is what the object is now, and the first is not")
	}
	back, err := was.Restore(live)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(back), "map[spec:map[replicas:3 template:map[image:a:1]]]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
