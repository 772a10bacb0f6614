package history

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/cairn-dev/cairn/inspect"
	"github.com/cairn-dev/cairn/inspect/content"
	"github.com/cairn-dev/cairn/internal/cli/env"
	"github.com/cairn-dev/cairn/internal/goldenfile"
)

// TestFits: what is shown on terminals of three widths. No line is longer than the terminal is wide, unless -o wide
// asks for all columns.
func TestFits(t *testing.T) {
	now := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	h := &inspect.History{Children: "pods", Entries: []inspect.Entry{
		{Number: 1, Name: "web-7bc8986495", Hash: "7bc8986495", Created: now.Add(-80 * time.Hour), Since: now.Add(-80 * time.Hour), Children: 1, ChangeCause: "launch day"},
		{
			Number: 2, Name: "web-66db7fc774", Hash: "66db7fc774", Created: now.Add(-3 * time.Hour), Since: now.Add(-time.Hour), Current: true, Children: 5, By: "argocd-controller",
			ChangeCause: "the second release of this year, with everything that was asked for in the meeting of last Tuesday",
			Changes:     []content.Change{{Path: `containers[name="web"].image`, Before: "registry.example.com/shop/web:1.28.1", After: "registry.example.com/shop/web:1.29.0"}, {}},
		},
	}}
	var all bytes.Buffer
	for _, width := range []int{80, 120, 200} {
		for _, format := range []string{"", "wide"} {
			var out bytes.Buffer
			if err := printAll(&out, h.Parent.String(), h, format, now, width); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(out.String()) {
				if n := utf8.RuneCountInString(strings.TrimRight(line, " \n")); n > width && format != "wide" {
					t.Errorf("%d columns at %d: %s", n, width, line)
				}
			}
			fmt.Fprintf(&all, "%d columns, -o %q\n%s\n", width, format, out.String())
		}
	}
	goldenfile.Check(t, "fit.golden", all.String())
	var piped bytes.Buffer
	if err := printAll(&piped, h.Parent.String(), h, "", now, 0); err != nil || !strings.Contains(piped.String(), "meeting of last Tuesday") || strings.Contains(piped.String(), "argocd") {
		t.Errorf("%v\n%s", err, &piped)
	}
	for _, cause := range []string{strings.Repeat("второй выпуск ", 9), strings.Repeat("\u7b2c\u4e8c\u7248 ", 9)} {
		h.Entries[1].ChangeCause = cause
		for width := 60; width <= 200; width++ {
			var out bytes.Buffer
			if err := printAll(&out, h.Parent.String(), h, "", now, width); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(out.String()) {
				if n := env.Columns(strings.TrimRight(line, " \n")); n > width {
					t.Errorf("%d columns at %d: %s", n, width, line)
				}
			}
		}
	}
}
