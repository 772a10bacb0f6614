package lab

// This file prints what subjects took in each phase, in each round, as a table: medians, and the ratio of the last
// subject to the first in one round, as minimum, median and maximum.

import (
	"cmp"
	"fmt"
	"io"
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

// Table is what is printed at the end. It is for one goroutine.
type Table struct{ lines []string }

// Add adds a phase of a load: the costs of two subjects, the one that the other is compared with first.
func (t *Table) Add(phase string, names [2]string, costs [2]Rounds) {
	cells := map[string][]string{}
	for _, col := range columns {
		for i, name := range names {
			cells[name] = append(cells[name], fmt.Sprintf(col.format, median(costs[i], col.of)))
		}
		cells["ratio"] = append(cells["ratio"], ratio(costs, col))
	}
	for _, who := range append(names[:], "ratio") {
		t.lines = append(t.lines, fmt.Sprintf("| %s | %s | %s |", phase, who, strings.Join(cells[who], " | ")))
	}
}

// ratio is how many times the first one's figure the second one's is: median (minimum to maximum) of the rounds.
func ratio(costs [2]Rounds, col column) string {
	if median(costs[0], col.of) < col.least {
		return "–"
	}
	var of []float64
	for i := range costs[0] {
		if a := col.of(costs[0][i]); a > 0 {
			of = append(of, col.of(costs[1][i])/a)
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
	if len(t.lines) == 0 {
		return nil
	}
	titles := make([]string, 0, len(columns))
	for _, col := range columns {
		titles = append(titles, col.title)
	}
	_, err := fmt.Fprintf(w, "\n%s, %d processors, medians of %d rounds\n\n| load | who | %s |\n%s|\n%s\n",
		time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), rounds, strings.Join(titles, " | "),
		strings.Repeat("|---", len(columns)+2), strings.Join(t.lines, "\n"))
	return err
}
