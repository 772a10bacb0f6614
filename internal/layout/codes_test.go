package layout_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// This file sees that a code means one thing: what its line of docs/invariants.md says.

var (
	coded    = regexp.MustCompile(`(?m)^\| ([A-Z]\d) \| .`)
	codeUsed = regexp.MustCompile(`\b[A-Z]\d{1,2}\b`)
	// prose is where codes stand: comments, and what a mutant must break.
	prose = regexp.MustCompile(`(?m)(?:^|[^:"])//(.*)$|^expect: (.*)$`)
	// levels are those of the tests, and no codes.
	levels = []string{"L0", "L1"}
)

func TestCodes(t *testing.T) {
	read := func(name string) string {
		src, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		return string(src)
	}
	var known []string
	for _, found := range coded.FindAllStringSubmatch(read("docs/invariants.md"), -1) {
		known = append(known, found[1])
	}
	rules := read("proof/check/doc.go")
	for _, code := range known {
		if code[0] != 'E' && !strings.Contains(rules, "//\t"+code+"  ") && !strings.Contains(rules, "; "+code+" ") {
			t.Errorf("docs/invariants.md: no rule of proof/check is %s", code)
		}
	}
	_, names := readPages(t)
	for name := range names {
		if mutant := path.Dir(name) == "proof/mutants/testdata"; path.Ext(name) != ".go" && !mutant {
			continue
		}
		for _, said := range prose.FindAllStringSubmatch(read(name), -1) {
			for _, code := range codeUsed.FindAllString(said[1]+said[2], -1) {
				if !slices.Contains(known, code) && !slices.Contains(levels, code) {
					t.Errorf("%s: %s is no code of docs/invariants.md: %s", name, code, strings.TrimSpace(said[0]))
				}
			}
		}
	}
}
