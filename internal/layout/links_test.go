package layout_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// This file sees that what the pages name is there: what they link to, and paths of the repository in backticks.

// design holds a living page for each room, and notes the dated ones behind them.
const design, notes = "docs/design", "docs/design/log"

var (
	fence = regexp.MustCompile("(?ms)^ *```.*?\n *```")
	code  = regexp.MustCompile("`([^`]+)`")
	link  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	// placeholder is in a path that stands for others.
	placeholder = regexp.MustCompile(`[*<>{}$…"=|]|\.\.\.|YYYY|/[A-Z]+(/|$)`)
	// inside is what can follow a path: a heading, a line, or a name that a package exports.
	inside = regexp.MustCompile(`(#|:\d|\.[A-Z]).*$`)
	// objects begins a command whose arguments are objects: "cairn tree deploy/api".
	objects = regexp.MustCompile(`^(cairn|kubectl) `)
)

func TestLinks(t *testing.T) {
	pages, names := readPages(t)
	if len(pages) < 40 {
		t.Fatalf("%d pages are too few: the test looks past them", len(pages))
	}
	report(t, checkLinks(pages, names))
	report(t, checkPaths(pages, names))
	report(t, checkNotes(pages))
}

// readPages returns the Markdown pages of the repository by name, and the names of all its files and folders.
func readPages(t *testing.T) (pages map[string]string, names map[string]bool) {
	t.Helper()
	pages, names = map[string]string{}, map[string]bool{}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (name == ".git" || name == "bin") {
			return fs.SkipDir
		}
		names[name] = true
		if path.Ext(name) != ".md" || strings.Contains(name, "testdata/") {
			return nil
		}
		src, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		pages[name] = fence.ReplaceAllStringFunc(string(src), blank)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages, names
}

// linked returns what a page links to in the repository, each from its root.
func linked(name, page string) (out []string) {
	for _, found := range link.FindAllStringSubmatch(code.ReplaceAllString(page, ""), -1) {
		to, _, _ := strings.Cut(found[1], "#")
		_, onGitHub, absolute := strings.Cut(to, "../blob/main/") // in what GitHub shows beside a pull request
		switch {
		case absolute:
			out = append(out, onGitHub)
		case to != "" && !strings.Contains(to, ":"):
			out = append(out, path.Join(path.Dir(name), to))
		}
	}
	return out
}

// checkLinks finds links to what is not there.
func checkLinks(pages map[string]string, names map[string]bool) (broken []string) {
	for name, page := range pages {
		for _, to := range linked(name, page) {
			if !names[to] {
				broken = append(broken, fmt.Sprintf("%s: links to %s, which is not there", name, to))
			}
		}
	}
	slices.Sort(broken)
	return broken
}

// checkPaths finds paths in backticks that are not there. Files may be named by the end of their path. Dated notes and
// the changelog may name what was there once.
func checkPaths(pages map[string]string, names map[string]bool) (broken []string) {
	ends := map[string]bool{}
	for name := range names {
		for end, more := name, true; more; _, end, more = strings.Cut(end, "/") {
			ends[end] = true
		}
	}
	for name, page := range pages {
		if path.Dir(name) == notes || name == "CHANGELOG.md" {
			continue
		}
		for _, found := range code.FindAllStringSubmatch(page, -1) {
			if objects.MatchString(found[1]) {
				continue
			}
			for word := range strings.FieldsSeq(found[1]) {
				word = strings.TrimRight(strings.TrimPrefix(inside.ReplaceAllString(word, ""), "./"), "/,.;:)")
				first, _, deep := strings.Cut(word, "/")
				ours := deep && names[first] || path.Ext(word) == ".go" || path.Ext(word) == ".md"
				if ours && !placeholder.MatchString(word) && !ends[word] && !names[path.Join(path.Dir(name), word)] {
					broken = append(broken, fmt.Sprintf("%s: names %s, which is not there", name, word))
				}
			}
		}
	}
	slices.Sort(broken)
	return broken
}

// checkNotes finds dated notes that no living page links to.
func checkNotes(pages map[string]string) (broken []string) {
	reached := map[string]bool{}
	for name, page := range pages {
		if path.Dir(name) == design {
			for _, to := range linked(name, page) {
				reached[to] = true
			}
		}
	}
	for name := range pages {
		if path.Dir(name) == notes && !reached[name] {
			broken = append(broken, name+": no page of "+design+" links to it")
		}
	}
	slices.Sort(broken)
	return broken
}

func TestLinksBite(t *testing.T) {
	names := map[string]bool{"pass": true, "pass/a.go": true, "docs": true, "docs/a.md": true, notes + "/1.md": true}
	for _, c := range []struct {
		name, page string
		wrong      bool
	}{
		{name: "docs/b.md", page: "[a](a.md), [`a`](../pass), [b](#b), [c](https://d.e/f), [a](../../blob/main/docs/a.md)"},
		{name: "docs/b.md", page: "`pass.Controller`, `../pass.Do`, `apps/v1`, `pass/*_test.go`, `pass/NAME`, `cairn tree pass/x`"},
		{name: "docs/b.md", page: "[a](pass/a.go)", wrong: true},
		{name: "docs/b.md", page: "[two\nlines](../gone.md#x)", wrong: true},
		{name: "docs/b.md", page: "`pass/a.go:3`, `a.go`, `go test ./pass/...`, `a.md`, `docs/a.md#b`"},
		{name: "docs/b.md", page: "`pass/b.go`", wrong: true},
		{name: "docs/b.md", page: "`go vet ./pass/sub`", wrong: true},
		{name: "docs/b.md", page: "`gone.md`", wrong: true},
		{name: notes + "/1.md", page: "`pass/b.go`"},
		{name: notes + "/1.md", page: "[b](b.go)", wrong: true},
	} {
		pages := map[string]string{c.name: c.page}
		if broken := append(checkLinks(pages, names), checkPaths(pages, names)...); (len(broken) > 0) != c.wrong {
			t.Errorf("%s: %q: wrong is %t, but the rule says %q", c.name, c.page, c.wrong, broken)
		}
	}
	pages := map[string]string{notes + "/1.md": "", notes + "/2.md": "[1](1.md)", design + "/a.md": "[2](log/2.md)"}
	if broken := checkNotes(pages); len(broken) != 1 || !strings.HasPrefix(broken[0], notes+"/1.md") {
		t.Errorf("one note is not linked: the rule says %q", broken)
	}
}
