package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cairn-dev/cairn/proof/compat"
)

const (
	begin = "<!-- compat: begin -->"
	end   = "<!-- compat: end -->"
)

// verbs are the columns of the table, in the order in which they are asked.
var verbs = []string{"history", "status", "diff", "undo", "tree", "verify"}

// row is a line of the table.
type row struct {
	text   string
	failed bool
}

// row says what was found out about a kind.
func (s system) row(k kind, found map[string]error) row {
	cells := []string{fmt.Sprintf("%s %s %s", s.title, strings.TrimPrefix(compat.Version(s.module), "v"), k.title)}
	r := row{}
	for _, verb := range verbs {
		err, asked := found[verb]
		switch {
		case !asked:
			cells = append(cells, "")
		case err != nil:
			r.failed = true
			cells = append(cells, "**"+cell(err)+"**")
		default:
			cells = append(cells, "yes")
		}
	}
	r.text = "| " + strings.Join(append(cells, k.note), " | ") + " |"
	return r
}

// cell is the text of an error in one cell of a table.
func cell(err error) string {
	return strings.NewReplacer("\n", "; ", "|", "\\|").Replace(err.Error())
}

// write puts the rows of a system into the page, in place of those that it has there.
func write(s system, rows []row) error {
	file := filepath.Join("docs", "kinds.md")
	page, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	changed, err := replaced(string(page), s, rows)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, []byte(changed), 0o644) //nolint:gosec // it is there, and for everybody to read
}

// replaced returns the page with other rows of the system between the markers. The systems keep their order.
func replaced(page string, s system, rows []row) (string, error) {
	before, rest, ok1 := strings.Cut(page, begin)
	table, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		return "", errors.New("there must be a line " + begin + " and, below it, a line " + end)
	}
	lines := []string{
		begin, "", "| kind | " + strings.Join(verbs, " | ") + " | remark |", strings.Repeat("|---", len(verbs)+2) + "|",
	}
	for _, other := range systems {
		if other.name == s.name {
			for _, r := range rows {
				lines = append(lines, r.text)
			}
			continue
		}
		for line := range strings.Lines(table) {
			if strings.HasPrefix(line, "| "+other.title+" ") {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
	}
	return before + strings.Join(append(lines, "", end), "\n") + after, nil
}
