package layout_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// width is the maximum width of comments and prose in columns. A tab is one column.
const width = 120

var (
	// commented matches a comment on a line of its own that is prose: not code, a marker or the output of an example.
	commented = regexp.MustCompile(`^\s*// *[^\s+|]`)
	output    = regexp.MustCompile(`(?m)^\s*// (Output|Unordered output):\n(\s*//.*\n)*`)
	// paged matches a line of a page that is prose: not a table, a heading, HTML or a quotation.
	paged = regexp.MustCompile(`^ {0,3}[^\s|#<>]`)
)

func TestWidth(t *testing.T) {
	for _, f := range readFiles(t) {
		src, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(f.path)))
		if err != nil {
			t.Fatal(err)
		}
		if !f.generated {
			checkWidth(t, f.path, output.ReplaceAllStringFunc(string(src), blank), commented)
		}
	}
	pages, _ := readPages(t)
	for name, page := range pages {
		if !strings.HasPrefix(name, notes) {
			checkWidth(t, name, page, paged)
		}
	}
}

// blank returns the line breaks of s.
func blank(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) }

func checkWidth(t *testing.T, name, src string, prose *regexp.Regexp) {
	t.Helper()
	for i, line := range strings.Split(src, "\n") {
		if utf8.RuneCountInString(line) > width && prose.MatchString(line) {
			t.Errorf("%s:%d is wider than %d columns", name, i+1, width)
		}
	}
}
