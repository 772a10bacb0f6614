package revision_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/cairn-dev/cairn/revision"
)

func paths(t *testing.T, text string) *revision.Target {
	t.Helper()
	covered, ignored, _ := strings.Cut(text, " without ")
	read := func(text string) (out []revision.Path) {
		for part := range strings.SplitSeq(text, ",") {
			out = append(out, revision.Path(strings.Split(part, ".")))
		}
		return out
	}
	target, err := revision.FieldPaths(nil, read(covered)...)
	if err == nil && ignored != "" {
		target, err = target.Without(read(ignored)...)
	}
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// A revision that was recorded as other fields is read by what is among both, and restores nothing else; one whose
// field may have been renamed is not read.
func TestAs(t *testing.T) {
	const data = `{"spec":{"image":"old","size":1},"config":"old"}`
	const now = `{"spec":{"image":"new","size":9,"replicas":5},"config":"new","other":"new"}`
	for name, c := range map[string]struct{ recorded, today, restored, refused string }{
		"as it was":          {"spec,config", "spec,config", `{"config":"old","other":"new","spec":{"image":"old","size":1}}`, ""},
		"in another order":   {"config,spec", "spec,config", `{"config":"old","other":"new","spec":{"image":"old","size":1}}`, ""},
		"a path is added":    {"config", "config,other", `{"config":"old","other":"new","spec":{"image":"new","replicas":5,"size":9}}`, ""},
		"a path is left out": {"spec.image,config", "config", `{"config":"old","other":"new","spec":{"image":"new","replicas":5,"size":9}}`, ""},
		"wider now":          {"spec.image", "spec", `{"config":"new","other":"new","spec":{"image":"old","replicas":5,"size":9}}`, ""},
		"narrower now":       {"spec", "spec.image", `{"config":"new","other":"new","spec":{"image":"old","replicas":5,"size":9}}`, ""},
		"less was recorded":  {"spec without spec.size", "spec", `{"config":"new","other":"new","spec":{"image":"old","size":9}}`, ""},
		"less is now":        {"spec", "spec without spec.size", `{"config":"new","other":"new","spec":{"image":"old","size":9}}`, ""},
		"renamed":            {"config", "other", "", "it holds config, which is not versioned any more, and not other, which is now"},
		"one of two renamed": {"spec,config", "spec,other", "", "it holds config"},
	} {
		t.Run(name, func(t *testing.T) {
			today, recorded := paths(t, c.today), paths(t, c.recorded)
			target, err := today.As(recorded)
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if same := today.Covers(recorded); same != (target == today) {
				t.Errorf("covers %v, but is the same %v", same, target == today)
			}
			s, err := target.Decode([]byte(data))
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.Restore(tree(t, now))
			if err != nil {
				t.Fatal(err)
			}
			if string(encode(t, got)) != c.restored {
				t.Errorf("restored %s, want %s", encode(t, got), c.restored)
			}
		})
	}
}

// Revisions of an earlier release are equal to what the parent asks for if they are among what today's hold; they
// repeat no other, and the server is not asked about them, which could only say that what they hold is the same.
func TestRevisionsOfAnEarlierRelease(t *testing.T) {
	narrow, err := paths(t, "spec.image").As(paths(t, "spec"))
	if err != nil {
		t.Fatal(err)
	}
	today := paths(t, "spec.image")
	parent := snapshot(t, today, tree(t, `{"spec":{"image":"a","size":9}}`))
	one, two := decode(t, narrow, `{"spec":{"image":"a","size":1}}`), decode(t, narrow, `{"spec":{"image":"a","size":2}}`)
	both := []revision.Revision{
		{Name: "one", UID: "1", Number: 1, Hash: "one", Snapshot: one}, {Name: "two", UID: "2", Number: 2, Hash: "two", Snapshot: two},
	}
	res, err := revision.Resolve(revision.ParentState{UID: parentUID, Generation: 2, Snapshot: parent}, both, nil, true)
	if err != nil || res.Change != revision.NoChange || res.Update.Name != "two" || len(res.Duplicates) > 0 {
		t.Errorf("%+v, %v", res, err)
	}
	carried := []revision.Revision{both[0], both[1]}
	for i := range carried {
		carried[i].Snapshot = parent.Carried()
	}
	res, err = revision.Resolve(revision.ParentState{UID: parentUID, Generation: 2, Snapshot: parent}, carried, nil, true)
	if err != nil || res.Change != revision.NoChange || res.Update.Name != "two" || len(res.Duplicates) > 0 {
		t.Errorf("carried: %+v, %v", res, err)
	}
	wide := paths(t, "spec.image,config")
	added, err := wide.As(today)
	if err != nil {
		t.Fatal(err)
	}
	of := func(text string) *revision.Snapshot { return snapshot(t, wide, tree(t, text)) }
	old := decode(t, added, `{"spec":{"image":"a"}}`)
	if revision.Compare(of(`{"spec":{"image":"a"}}`), old) != revision.RuleBytes {
		t.Error("a parent without the new field is another one")
	}
	if with := of(`{"spec":{"image":"a"},"config":"b"}`); revision.Compare(with, old) != revision.RuleNone || revision.Askable(with, old) {
		t.Error("a revision that does not know a field is what a parent asks for that has it")
	}
}

// Data of other fields only is no snapshot of nothing, also where nobody has said what it holds; what lies beside it
// tells revisions apart.
func TestDecodeOfOtherFields(t *testing.T) {
	target := paths(t, "spec.new")
	var undecodable *revision.UndecodableError
	_, err := target.Decode([]byte(`{"spec":{"old":1}}`))
	if !errors.As(err, &undecodable) || !strings.Contains(err.Error(), "it holds spec.old, and nothing of spec.new") {
		t.Error(err)
	}
	for _, nothing := range []string{`{}`, `{"spec":{}}`, `{"spec":{"old":null}}`, `{"kind":"Fleet"}`} {
		decode(t, target, nothing)
	}
	both := []revision.Revision{
		{Name: "one", UID: "1", Number: 1, Hash: "one", Snapshot: decode(t, target, `{"spec":{"new":1,"old":1}}`)},
		{Name: "two", UID: "2", Number: 2, Hash: "two", Snapshot: decode(t, target, `{"spec":{"new":1,"old":2}}`)},
	}
	parent := snapshot(t, target, tree(t, `{"spec":{"new":1}}`))
	res, err := revision.Resolve(revision.ParentState{UID: parentUID, Generation: 2, Snapshot: parent}, both, nil, true)
	if err != nil || res.Update == nil || res.Update.Name != "two" || len(res.Duplicates) > 0 {
		t.Errorf("%+v, %v", res, err)
	}
}

// What today's type does not have may be all that tells two revisions apart.
func TestKnown(t *testing.T) {
	for text, want := range map[string]bool{
		`{"spec":{"template":{"spec":{"containers":[{"name":"a","image":"b"}]}}}}`:                                      true,
		`{"spec":{"template":{"metadata":{"creationTimestamp":null},"spec":{"containers":[{"name":"a"}]}}}}`:            true,
		`{"spec":{"template":{"spec":{"hostNetwork":false,"old":"","containers":[{"name":"a","resources":{}}]}}}}`:      true,
		`{"spec":{"template":{"spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":"1000m"}}}]}}}}`:           true,
		`{"spec":{"template":{"spec":{"old":1,"containers":[{"name":"a"}]}}}}`:                                          false,
		`{"spec":{"template":{"spec":{"containers":[{"name":"a"},{"name":"b","old":{"deep":["x"]}}]}}}}`:                false,
		`{"spec":{"template":{"spec":{"containers":[{"name":"a"}],"old":[{"name":"an entry of a list of its own"}]}}}}`: false,
	} {
		if got := decode(t, typedTarget(), text).Known(); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
