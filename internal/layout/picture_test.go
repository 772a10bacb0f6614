package layout_test

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cairn-dev/cairn/internal/goldenfile"
)

// This file draws the picture of the README from docs/tour.md, which a test of the sandbox replays: so it shows what a
// terminal does.
//
//	go test ./internal/layout -run TestPicture -update

// pictured are the commands that the picture shows, each with what the tour says that it prints, the first time that it
// is there.
var pictured = []string{
	"kubectl set image daemonset/web web=nginx:1.29", "cairn history ds/web", "cairn undo ds/web --dry-run=server", "cairn undo ds/web",
}

const (
	lineHeight = 18
	// pictureWidth is that of 92 columns, with a margin.
	pictureWidth = 800
)

// pictureStyle follows the theme of the reader.
const pictureStyle = `text{font:14px ui-monospace,Menlo,Consolas,monospace;white-space:pre;fill:#1f2328}rect{fill:#f6f8fa;stroke:#d1d9e0}` +
	`.prompt{font-weight:bold}.added{fill:#1a7f37}.removed{fill:#cf222e}` +
	`@media(prefers-color-scheme:dark){text{fill:#e6edf3}rect{fill:#0d1117;stroke:#3d444d}.added{fill:#3fb950}.removed{fill:#f85149}}`

func TestPicture(t *testing.T) {
	tour, err := os.ReadFile(filepath.Join(root, "docs", "tour.md"))
	if err != nil {
		t.Fatal(err)
	}
	lines := sessionOf(string(tour), pictured)
	if len(lines) < 2*len(pictured) {
		t.Fatalf("the tour has %d lines of %v", len(lines), pictured)
	}
	goldenfile.Check(t, filepath.Join("..", root, "docs", "tour.svg"), drawn(lines))
}

// sessionOf returns the first appearance of each command in the console blocks of a page, with what follows it.
func sessionOf(page string, commands []string) []string {
	var out []string
	left, inside, taking := slices.Clone(commands), false, false
	for line := range strings.SplitSeq(page, "\n") {
		command, is := strings.CutPrefix(line, "$ ")
		switch {
		case strings.HasPrefix(line, "```"):
			inside, taking = line == "```console", false
		case inside && is:
			if taking = len(left) > 0 && command == left[0]; taking {
				left = left[1:]
			}
		}
		if taking {
			out = append(out, line)
		}
	}
	return out
}

// drawn is a terminal that shows lines.
func drawn(lines []string) string {
	var b strings.Builder
	height := lineHeight*len(lines) + 2*lineHeight
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d"><style>%[3]s</style>`,
		pictureWidth, height, pictureStyle)
	fmt.Fprintf(&b, "\n"+`<rect x=".5" y=".5" width="%d" height="%d" rx="8"/>`+"\n", pictureWidth-1, height-1)
	for n, line := range lines {
		class := ""
		switch {
		case strings.HasPrefix(line, "$ "):
			class = ` class="prompt"`
		case strings.HasPrefix(line, "+"):
			class = ` class="added"`
		case strings.HasPrefix(line, "-"):
			class = ` class="removed"`
		}
		fmt.Fprintf(&b, `<text x="16" y="%d"%s>%s</text>`+"\n", lineHeight*(n+2)-4, class, html.EscapeString(line))
	}
	return b.String() + "</svg>\n"
}
