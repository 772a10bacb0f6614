package authored

// This file prints the medians of the rounds as a table, with how many times the StatefulSet controller's the builder's
// is.

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cairn-dev/cairn/proof/bench/lab"
)

// column is one figure of a cost.
type column struct {
	title, format string
	of            func(lab.Cost) float64
	// least is below what a figure is too small for a ratio to say anything.
	least float64
}

var columns = []column{
	{"requests", "%.0f", func(c lab.Cost) float64 { return float64(c.Total()) }, 1},
	{"CPU s", "%.2f", func(c lab.Cost) float64 { return c.CPU.Seconds() }, 0.1},
	{"MB moved", "%.2f", func(c lab.Cost) float64 { return float64(c.Moved) / 1e6 }, 0.1},
	{"wall s", "%.2f", func(c lab.Cost) float64 { return c.Wall.Seconds() }, 0.1},
	{"peak MB", "%.0f", func(c lab.Cost) float64 { return float64(c.Peak) / 1e6 }, 1},
}

// table is what is printed at the end.
type table struct{ lines []string }

var printed = &table{}

// report gives out the medians of a load.
func report(b *testing.B, l lab.Load, costs map[string]map[string][]lab.Cost) {
	b.Helper()
	b.ReportMetric(0, "ns/op") // it holds the waits for rest
	for _, phase := range phases {
		cells := map[string][]string{}
		for _, col := range columns {
			var of [2]float64
			for i, s := range pair {
				of[i] = median(costs[s.name][phase], col.of)
				cells[s.name] = append(cells[s.name], fmt.Sprintf(col.format, of[i]))
			}
			ratio := "–"
			if of[0] >= col.least {
				ratio = fmt.Sprintf("%.2f", of[1]/of[0])
			}
			cells["ratio"] = append(cells["ratio"], ratio)
		}
		for _, who := range []string{statefulSet, authored, "ratio"} {
			printed.lines = append(printed.lines, fmt.Sprintf("| %s %s | %s | %s |", phase, l, who, strings.Join(cells[who], " | ")))
		}
		for _, s := range pair {
			for i, c := range costs[s.name][phase] {
				b.Logf("%s, %s, round %d: CPU %.2f s; %s", phase, s.name, i+1, c.CPU.Seconds(), c.Tally)
			}
		}
	}
}

// median is the one in the middle of what a figure was in each round.
func median(costs []lab.Cost, of func(lab.Cost) float64) float64 {
	sorted := slices.SortedFunc(slices.Values(costs), func(a, b lab.Cost) int { return cmp.Compare(of(a), of(b)) })
	return of(sorted[len(sorted)/2])
}

// write prints the table, if there is anything in it.
func (t *table) write(w io.Writer) error {
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
