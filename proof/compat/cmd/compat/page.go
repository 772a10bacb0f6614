package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/cairn-dev/cairn/proof/compat"
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

// section is a table between two lines of a page that say where it begins and ends.
type section struct{ name, head string }

var theKinds = section{name: "compat", head: "| kind | " + strings.Join(verbs, " | ") + " | remark |"}

// change writes the section of a file anew, with the rows that f makes of those that are there.
func (s section) change(file string, f func(old []string) []string) error {
	page, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	changed, err := s.changed(string(page), f)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, []byte(changed), 0o644) //nolint:gosec // it is there, and for everybody to read
}

// changed is change for the text of a page.
func (s section) changed(page string, f func(old []string) []string) (string, error) {
	begin, end := "<!-- "+s.name+": begin -->", "<!-- "+s.name+": end -->"
	before, rest, ok1 := strings.Cut(page, begin)
	table, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		return "", errors.New("there must be a line " + begin + " and, below it, a line " + end)
	}
	var old []string
	for line := range strings.Lines(table) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "| ") && line != s.head {
			old = append(old, line)
		}
	}
	lines := []string{begin, "", s.head, strings.Repeat("|---", strings.Count(s.head, "|")-1) + "|"}
	return before + strings.Join(append(append(lines, f(old)...), "", end), "\n") + after, nil
}

// replaced returns what f of change returns, with other rows of one system. The systems keep their order.
func (s system) replaced(rows []row) func(old []string) []string {
	return func(old []string) (lines []string) {
		for _, other := range systems {
			if other.name == s.name {
				for _, r := range rows {
					lines = append(lines, r.text)
				}
				continue
			}
			for _, line := range old {
				if strings.HasPrefix(line, "| "+other.title+" ") {
					lines = append(lines, line)
				}
			}
		}
		return lines
	}
}
