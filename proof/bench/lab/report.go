package lab

// This file prints what subjects took in each phase, in each round, as a table: medians, and the ratio of the last
// subject to each other one in one round, as minimum, median and maximum.

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Rounds are the costs of one subject for one phase of a load, one for each round.
type Rounds []Cost

// column is one figure of a cost.
type column struct {
	title, format string
	of            func(Cost) float64
	// least is below what a figure is too small for a ratio to say anything.
	least float64
}

var columns = []column{
	{"requests", "%.0f", func(c Cost) float64 { return float64(c.Total()) }, 1},
	{"CPU s", "%.2f", func(c Cost) float64 { return c.CPU.Seconds() }, 0.1},
	{"MB moved", "%.2f", func(c Cost) float64 { return float64(c.Moved) / 1e6 }, 0.1},
	{"wall s", "%.2f", func(c Cost) float64 { return c.Wall.Seconds() }, 0.1},
	{"peak MB", "%.0f", func(c Cost) float64 { return float64(c.Peak) / 1e6 }, 1},
}

// Measured is a subject, and what it took for one phase.
type Measured struct {
	Name   string
	Rounds Rounds
}

// Table is what is printed at the end. It is for one goroutine.
type Table struct {
	rows []row
}

// row is a phase of a load.
type row struct {
	Phase    string
	Load     Load
	Subjects []Measured
}

// Add adds a phase of a load. The last subject is compared with each of the others.
func (t *Table) Add(phase string, load Load, subjects ...Measured) {
	t.rows = append(t.rows, row{phase, load, subjects})
}

// lines are the lines of the table for a phase: the figures of each subject, and the ratios.
func (r row) lines() (out []string) {
	last := r.Subjects[len(r.Subjects)-1]
	title := r.Phase + " " + r.Load.String()
	line := func(who string, cell func(column) string) {
		cells := make([]string, 0, len(columns))
		for _, col := range columns {
			cells = append(cells, cell(col))
		}
		out = append(out, fmt.Sprintf("| %s | %s | %s |", title, who, strings.Join(cells, " | ")))
		title = ""
	}
	for _, s := range r.Subjects {
		line(s.Name, func(col column) string { return fmt.Sprintf(col.format, median(s.Rounds, col.of)) })
	}
	for _, s := range r.Subjects[:len(r.Subjects)-1] {
		line("ratio to "+s.Name, func(col column) string { return ratio(s.Rounds, last.Rounds, col) })
	}
	return out
}

// ratio is how many times the first one's figure the second one's is: median (minimum to maximum) of the rounds.
func ratio(first, second Rounds, col column) string {
	if median(first, col.of) < col.least {
		return "–"
	}
	var of []float64
	for i := range first {
		if a := col.of(first[i]); a > 0 {
			of = append(of, col.of(second[i])/a)
		}
	}
	slices.Sort(of)
	if len(of) == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f (%.2f to %.2f)", of[len(of)/2], of[0], of[len(of)-1])
}

// median is the one in the middle of what a figure was in each round.
func median(costs Rounds, of func(Cost) float64) float64 {
	sorted := slices.SortedFunc(slices.Values(costs), func(a, b Cost) int { return cmp.Compare(of(a), of(b)) })
	return of(sorted[len(sorted)/2])
}

// Write prints the table, if there is anything in it.
func (t *Table) Write(w io.Writer, rounds int) error {
	if len(t.rows) == 0 {
		return nil
	}
	titles := make([]string, 0, len(columns))
	for _, col := range columns {
		titles = append(titles, col.title)
	}
	var lines []string
	for _, r := range t.rows {
		lines = append(lines, r.lines()...)
	}
	_, err := fmt.Fprintf(w, "\n%s, %d processors, medians of %d rounds\n\n| load | who | %s |\n%s|\n%s\n",
		time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), rounds, strings.Join(titles, " | "),
		strings.Repeat("|---", len(columns)+2), strings.Join(lines, "\n"))
	return err
}

// Save writes what was measured as JSON, and as a picture if there is one, into a directory.
func (t *Table) Save(dir, name string) error {
	if len(t.rows) == 0 {
		return nil
	}
	data, err := json.MarshalIndent(t.rows, "", "  ") //nolint:musttag // for a person to read: as the types are
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // for everybody to read
		return err
	}
	err = os.WriteFile(filepath.Join(dir, name+".json"), data, 0o644) //nolint:gosec // the same
	if picture := t.Picture(); picture != "" {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name+".svg"), []byte(picture), 0o644)) //nolint:gosec // the same
	}
	return err
}
