package revision_test

// A restore as a JSON patch does what Restore does, and says which version of which object it was made for.

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/cairn-dev/cairn/revision"
)

// applied applies a JSON patch (RFC 6902) to object: the three operations that a restore needs, on objects only.
func applied(t tb, object map[string]any, patch []byte) map[string]any {
	t.Helper()
	ops := parse(t, []byte(`{"ops":`+string(patch)+`}`))["ops"].([]any)
	for _, o := range ops {
		op := o.(map[string]any)
		fields := strings.Split(strings.TrimPrefix(op["path"].(string), "/"), "/")
		at := object
		for i, field := range fields {
			field = strings.NewReplacer("~1", "/", "~0", "~").Replace(field)
			if i < len(fields)-1 {
				at = at[field].(map[string]any)
				continue
			}
			value, hasValue := op["value"]
			_, exists := at[field]
			switch {
			case op["op"] == "add" && hasValue, op["op"] == "replace" && hasValue && exists:
				at[field] = value
			case op["op"] == "remove" && !hasValue && exists:
				delete(at, field)
			default:
				t.Fatalf("no valid operation: %v in %s", op, patch)
			}
		}
	}
	return object
}

func TestRestorePatchDoesWhatRestoreDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := snapshot(t, plainTarget(t), parents().Draw(t, "then"))
		now := parents().Draw(t, "now")
		now["metadata"] = map[string]any{"uid": types.UID("u"), "resourceVersion": "7", "labels": map[string]any{}}
		if now["spec"] == nil {
			now["spec"] = map[string]any{}
		}
		before := encode(t, now)
		patch, err := s.RestorePatch(now)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(before), string(encode(t, now))); diff != "" {
			t.Fatalf("the parent changed:\n%s", diff)
		}
		restored, err := s.Restore(now)
		if err != nil {
			t.Fatal(err)
		}
		got := applied(t, parse(t, before), patch)
		if diff := cmp.Diff(string(encode(t, restored)), string(encode(t, got))); diff != "" {
			t.Fatalf("%s gives another object (-Restore +patch):\n%s", patch, diff)
		}
	})
}

func TestRestorePatch(t *testing.T) {
	const (
		read = `"metadata":{"uid":"u","resourceVersion":"7"}`
		pre  = `{"op":"replace","path":"/metadata/uid","value":"u"},{"op":"replace","path":"/metadata/resourceVersion","value":"7"}`
	)
	for name, c := range map[string]struct{ snapshot, parent, want, err string }{
		"replaced as a whole": {
			`{"spec":{"template":{"a":1}}}`, `{` + read + `,"spec":{"template":{"b":2}}}`,
			`[` + pre + `,{"op":"add","path":"/spec/template","value":{"a":1}}]`, "",
		},
		"removed where there is none": {
			`{}`, `{` + read + `,"spec":{"template":{},"settings":1,"replicas":3}}`,
			`[` + pre + `,{"op":"remove","path":"/spec/template"},{"op":"remove","path":"/spec/settings"}]`, "",
		},
		"null is a value":   {`{"spec":{"template":null}}`, `{` + read + `,"spec":{}}`, `[` + pre + `,{"op":"add","path":"/spec/template","value":null}]`, ""},
		"nothing to do":     {`{}`, `{` + read + `}`, `[` + pre + `]`, ""},
		"nothing to put in": {`{"spec":{"template":1}}`, `{` + read + `}`, "", "the parent has no object spec to restore spec.template into"},
		"text in the way":   {`{"spec":{"template":1}}`, `{` + read + `,"spec":"x"}`, "", "the parent has no object spec to restore spec.template into"},
		"no UID":            {`{}`, `{"metadata":{"resourceVersion":"7"}}`, "", "the parent has no metadata.uid; read it from the API server first"},
		"an empty UID":      {`{}`, `{"metadata":{"uid":"","resourceVersion":"7"}}`, "", "the parent has no metadata.uid; read it from the API server first"},
		"no version":        {`{}`, `{"metadata":{"uid":"u"}}`, "", "the parent has no metadata.resourceVersion; read it from the API server first"},
	} {
		t.Run(name, func(t *testing.T) {
			patch, err := decode(t, plainTarget(t), c.snapshot).RestorePatch(parse(t, []byte(c.parent)))
			if c.err != "" {
				if err == nil || err.Error() != c.err || patch != nil {
					t.Errorf("got %s, %v, want the error %q", patch, err, c.err)
				}
				return
			}
			if err != nil || string(patch) != c.want {
				t.Errorf("got %s, %v, want %s", patch, err, c.want)
			}
		})
	}
	if patch, err := decode(t, plainTarget(t), `{}`).RestorePatch(make(chan int)); err == nil || patch != nil {
		t.Errorf("a patch for no JSON: %s", patch)
	}
}

// Field names may hold what a JSON pointer writes with ~, and a path may be one field long.
func TestRestorePatchEscapesPaths(t *testing.T) {
	target, err := revision.FieldPaths(nil, revision.Path{"a/b~c"})
	if err != nil {
		t.Fatal(err)
	}
	parent := `{"metadata":{"uid":"u","resourceVersion":"7"}}`
	patch, err := decode(t, target, `{"a/b~c":1}`).RestorePatch(parse(t, []byte(parent)))
	if err != nil || !strings.Contains(string(patch), `{"op":"add","path":"/a~1b~0c","value":1}`) {
		t.Errorf("got %s, %v", patch, err)
	}
	got := string(encode(t, applied(t, parse(t, []byte(parent)), patch)))
	if want := `{"a/b~c":1,"metadata":{"resourceVersion":"7","uid":"u"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
