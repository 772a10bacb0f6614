package mutants

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// This file tests that a mutant is read and applied as it is written.

const sampleText = `Pods are deleted twice,
to be sure.

expect: H3 P6
world: overlapping

-- before a/b.go --
	two
-- after --
	2
-- before a/b.go --
	2
	three
-- after --
`

func TestParse(t *testing.T) {
	got, err := Parse("sample", []byte(sampleText))
	if err != nil {
		t.Fatal(err)
	}
	want := &Mutant{
		Name: "sample", Sentence: "Pods are deleted twice, to be sure.", Expect: []string{"H3", "P6"}, World: "overlapping",
		Edits: []Edit{{"a/b.go", "\ttwo\n", "\t2\n"}, {"a/b.go", "\t2\n\tthree\n", ""}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	header, _, _ := strings.Cut(sampleText, "-- before")
	_, keys, _ := strings.Cut(sampleText, "to be sure.")
	const script = "nodes 1\nsettle\n"
	if m, err := Parse("sample", []byte(sampleText+"-- scenario --\n"+script)); err != nil || m.Script != script || len(m.Edits) != 2 {
		t.Errorf("with a scenario: %+v, %v", m, err)
	}
	for name, broken := range map[string]string{
		"no sentence":    keys,
		"no expectation": strings.Replace(sampleText, "expect: H3 P6\n", "", 1),
		"an unknown key": strings.Replace(sampleText, "expect: ", "expects: ", 1),
		"nothing to do":  header,
		"no after":       strings.TrimSuffix(sampleText, "-- after --\n"),
		"no lines":       strings.Replace(sampleText, "\ttwo\n", "", 1),
		"no file":        strings.Replace(sampleText, "before a/b.go", "before", 1),
	} {
		if m, err := Parse("sample", []byte(broken)); err == nil {
			t.Errorf("%s: Parse returned %+v and no error", name, m)
		}
	}
}

func TestApply(t *testing.T) {
	m, err := Parse("sample", []byte(sampleText))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, content, want string }{
		{name: "once", content: "\tone\n\ttwo\n\tthree\n", want: "\tone\n"},
		{name: "in the first line", content: "\ttwo\n\tthree\n\tfour\n", want: "\tfour\n"},
		{name: "twice", content: "\ttwo\n\tthree\n\ttwo\n"},
		{name: "twice in a row", content: strings.Repeat("\ttwo\n", 2) + "\tthree\n"},
		{name: "not at all", content: "\tone\n"},
		{name: "not from the start of a line", content: "\t\ttwo\n\tthree\n"},
		{name: "only the first edit", content: "\ttwo\n"},
	} {
		got, err := m.Apply(func(file string) ([]byte, error) {
			if file != "a/b.go" {
				return nil, os.ErrNotExist
			}
			return []byte(c.content), nil
		})
		if (err == nil) != (c.want != "") || got["a/b.go"] != c.want {
			t.Errorf("%s: got %q and error %v, want %q", c.name, got, err, c.want)
		}
	}
	if _, err := m.Apply(func(string) ([]byte, error) { return nil, os.ErrNotExist }); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestLinesKeepTheirNumbers: what follows a shorter or longer text is where it was.
func TestLinesKeepTheirNumbers(t *testing.T) {
	m := &Mutant{Edits: []Edit{{File: "a.go", Before: "two\n", After: "2\n2\n"}, {File: "a.go", Before: "four\nfive\n", After: "4\n"}}}
	const was = "one\ntwo\nthree\nfour\nfive\nsix\n"
	const want = "one\n2\n2\n//line /r/a.go:3\nthree\n4\n//line /r/a.go:6\nsix\n"
	is, err := m.Apply(func(string) ([]byte, error) { return []byte(was), nil })
	if got := m.keepLines("/r/a.go", "a.go", was, is["a.go"]); err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
}
