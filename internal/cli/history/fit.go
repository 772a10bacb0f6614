package history

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cairn-dev/cairn/internal/cli/env"
)

// This file makes a table fit into a terminal. -o wide, and output that goes elsewhere, has all columns.

// narrower are the steps by which a table gets narrower, until it fits: a column that is left out, or one whose texts
// are cut, to so many characters at least. The least important comes first. No command needs the name of a revision.
var narrower = []struct {
	column string
	least  int // 0: it is left out, never: only if it is blank
}{
	{"Change-Cause", never},
	{"Changed", 24},
	{"By", 0},
	{"Name", 0},
	{"Change-Cause", 24},
	{"Changed", 0},
	{"Change-Cause", 8},
}

// never stands for the width of a column that is left out only if it is blank.
const never = -1

// fit leaves out and cuts columns until the table is at most width wide.
func fit(t *metav1.Table, width int) {
	for _, step := range narrower {
		excess := total(t) - width
		at := slices.IndexFunc(t.ColumnDefinitions, func(c metav1.TableColumnDefinition) bool { return c.Name == step.column })
		switch {
		case excess <= 0:
			return
		case at < 0, step.least == never && !blank(t, at):
		case step.least <= 0:
			without(t, at)
		default:
			shorten(t, at, max(step.least, widest(t, at)-excess))
		}
	}
}

// gap is what tables of kubectl have between two columns.
const gap = 3

func total(t *metav1.Table) int {
	out := -gap
	for n := range t.ColumnDefinitions {
		out += widest(t, n) + gap
	}
	return out
}

// widest returns the width of a column.
func widest(t *metav1.Table, column int) int {
	out := len(t.ColumnDefinitions[column].Name)
	for _, row := range t.Rows {
		out = max(out, taken(t, column, fmt.Sprint(row.Cells[column])))
	}
	return out
}

// taken returns the width that a column has for a text. Since Kubernetes 1.37 kubectl's printer pads columns to the
// bytes of their longest text. Only the last column has no padding.
func taken(t *metav1.Table, column int, text string) int {
	if column == len(t.ColumnDefinitions)-1 {
		return env.Columns(text)
	}
	return len(text)
}

// shorten cuts the texts of a column to a width.
func shorten(t *metav1.Table, column, to int) {
	for _, row := range t.Rows {
		text := fmt.Sprint(row.Cells[column])
		for n := to; taken(t, column, text) > to && n > 0; n-- {
			text = env.Cut(text, n)
		}
		row.Cells[column] = text
	}
}

// shown leaves out the columns that only -o wide has. A terminal shows who made an edit and what it changed as well,
// where that is known.
func shown(t *metav1.Table) {
	for n := len(t.ColumnDefinitions) - 1; n >= 0; n-- {
		column := &t.ColumnDefinitions[n]
		edit := column.Name == "By" || column.Name == "Changed"
		if column.Priority > 0 && (!edit || blank(t, n)) {
			without(t, n)
			continue
		}
		column.Priority = 0
	}
}

// blank reports whether a column has no texts.
func blank(t *metav1.Table, column int) bool {
	return !slices.ContainsFunc(t.Rows, func(r metav1.TableRow) bool {
		text := r.Cells[column]
		return text != "" && text != unknown && text != none
	})
}
