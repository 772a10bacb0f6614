package layout_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// This file wraps comments and prose: "go test ./internal/layout -run TestWrapped -wrap" does it.

var wrap = flag.Bool("wrap", false, "wrap the comments and the prose that are too wide")

// width is that of comments and prose, in columns. A tab is one.
const width = 120

// TestWrapped: comments that have a line of their own, and paragraphs of pages, are not wider.
func TestWrapped(t *testing.T) {
	wrapped := map[string]func(string) string{}
	for _, f := range readFiles(t) {
		if !f.generated {
			wrapped[f.path] = wrapComments
		}
	}
	pages, _ := readPages(t)
	for name := range pages {
		if !strings.HasPrefix(name, notes) {
			wrapped[name] = wrapPage
		}
	}
	for name, f := range wrapped {
		file := filepath.Join(root, filepath.FromSlash(name))
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out := f(string(src))
		switch {
		case out == string(src):
		case !*wrap:
			t.Errorf("%s has lines wider than %d: go test ./internal/layout -run TestWrapped -wrap", name, width)
		default:
			if err := os.WriteFile(file, []byte(out), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// block is a paragraph, or an item of a list: what its first line begins with, and the others.
type block struct {
	first, rest string
	words       []string
	wide        bool
	lines       []string
}

// flush returns the lines of a block, wrapped if one was too wide.
func (b *block) flush() []string {
	if b == nil {
		return nil
	}
	if !b.wide {
		return b.lines
	}
	var out []string
	line := b.first
	for i, word := range b.words {
		switch {
		case i == 0:
			line += word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width:
			out = append(out, line)
			line = b.rest + word
		default:
			line += " " + word
		}
	}
	return append(out, line)
}

var (
	comment = regexp.MustCompile(`^(\s*// )(\s*)(.*)$`)
	// bullet begins an item.
	bullet = regexp.MustCompile(`^([-*] +|\d+\. +)(.*)$`)
	// words are not broken within backticks.
	words = regexp.MustCompile("(?:`+[^`]*`+|\\S)+")
	// verbatim is no prose: code, directives, markers, headings, links' targets.
	verbatim = regexp.MustCompile(`^(\t|#|\+|go:|nolint|\[[^\]]+\]: |[A-Z]+\(|import "|want |\|)`)
)

// wrapComments wraps the comments of a Go file that have lines of their own.
func wrapComments(src string) string {
	output := false // of an example
	return wrapLines(src, func(line string, raw *bool) (indent, text string, ok bool) {
		if strings.Count(line, "`")%2 == 1 {
			*raw = !*raw
		}
		m := comment.FindStringSubmatch(line)
		output = len(m) > 0 && (output || strings.HasPrefix(m[3], "Output:") || strings.HasPrefix(m[3], "Unordered output:"))
		if len(m) == 0 || output || *raw || strings.HasPrefix(m[2]+m[3], "\t") || len(m[2]) > 3 && !bullet.MatchString(m[3]) && len(m[2]) != 5 {
			return "", "", false
		}
		return m[1] + m[2], m[3], true
	})
}

// wrapPage wraps the paragraphs of a page.
func wrapPage(src string) string {
	fenced := false
	return wrapLines(src, func(line string, _ *bool) (indent, text string, ok bool) {
		text = strings.TrimLeft(line, " ")
		if strings.HasPrefix(text, "```") {
			fenced = !fenced
			return "", "", false
		}
		indent = line[:len(line)-len(text)]
		return indent, text, !fenced && len(indent) < 4 && !strings.HasPrefix(text, "<") && !strings.HasPrefix(text, ">")
	})
}

// wrapLines wraps paragraphs. split returns the indent and the text of a line that may be part of one.
func wrapLines(src string, split func(line string, raw *bool) (indent, text string, ok bool)) string {
	var out []string
	var open *block
	raw := false
	for line := range strings.SplitSeq(src, "\n") {
		indent, text, ok := split(line, &raw)
		if !ok || text == "" || verbatim.MatchString(text) || strings.HasSuffix(text, "  ") {
			out = append(append(out, open.flush()...), line)
			open = nil
			continue
		}
		mark := bullet.FindStringSubmatch(text)
		if mark != nil || open == nil || indent != open.rest {
			out = append(out, open.flush()...)
			open = &block{first: indent, rest: indent}
			if mark != nil {
				open.first, open.rest, text = indent+mark[1], indent+strings.Repeat(" ", len(mark[1])), mark[2]
			}
		}
		open.wide = open.wide || utf8.RuneCountInString(line) > width
		open.lines = append(open.lines, line)
		open.words = slices.Concat(open.words, words.FindAllString(text, -1))
	}
	return strings.Join(append(out, open.flush()...), "\n")
}

func TestWrapping(t *testing.T) {
	long := strings.Repeat("words ", 30)
	for name, c := range map[string]struct {
		wrap      func(string) string
		src, want string
	}{
		"a comment":  {wrapComments, "\t// A " + long + "\n\t// and more.\nx()", "\t// A " + strings.Repeat("words ", 18) + "words\n\t// " + strings.Repeat("words ", 11) + "and more.\nx()"},
		"no comment": {wrapComments, "x := \"" + long + "\" // " + long, "x := \"" + long + "\" // " + long},
		"code":       {wrapComments, "//\tx " + long, "//\tx " + long},
		"an item":    {wrapPage, "- A " + long, "- A " + strings.Repeat("words ", 19) + "\n  " + strings.Repeat("words ", 11)},
		"a table":    {wrapPage, "| " + long + "|", "| " + long + "|"},
		"narrow":     {wrapPage, "a\nb\n- c", "a\nb\n- c"},
	} {
		t.Run(name, func(t *testing.T) {
			want := regexp.MustCompile(`(?m) +$`).ReplaceAllString(c.want, "")
			if strings.HasPrefix(name, "no") || name == "code" || name == "a table" {
				want = c.want
			}
			if got := c.wrap(c.src); got != want {
				t.Errorf("%q\nwant %q", got, want)
			}
		})
	}
}
