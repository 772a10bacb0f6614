package composite

// This file prints figures: as metrics of the benchmarks, and at the end as a table beside the floor, the targets and
// what Metacontroller took.

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cairn-dev/cairn/proof/bench/lab"
)

// ours is who is measured, if it is not the floor.
const ours = "cairn"

// figures are what one load took. What is not known is zero.
type figures struct {
	wall, cpu       float64 // seconds
	calls, requests float64
	megabytes       float64 // in all calls of the hook
	peak            float64 // megabytes of memory
}

// report gives out what the passes of a benchmark took on average.
func report(b *testing.B, who, what string, l load, costs []lab.Cost) {
	b.Helper()
	n := float64(len(costs))
	sum := lab.Cost{Tally: lab.Tally{Requests: map[string]int{}}}
	for _, c := range costs {
		sum.Wall += c.Wall
		sum.CPU += c.CPU
		sum.Calls += c.Calls
		sum.Bytes += c.Bytes
		sum.Refused = append(sum.Refused, c.Refused...)
		sum.Peak = max(sum.Peak, c.Peak)
		for kind, count := range c.Requests {
			sum.Requests[kind] += count
		}
	}
	f := figures{
		wall: sum.Wall.Seconds() / n, cpu: sum.CPU.Seconds() / n, calls: float64(sum.Calls) / n,
		megabytes: float64(sum.Bytes) / n / 1e6, requests: float64(sum.Total()) / n, peak: float64(sum.Peak) / 1e6,
	}
	children := float64(l.pods())
	b.ReportMetric(0, "ns/op") // it holds the wait for rest
	b.ReportMetric(f.wall, "wall-s")
	b.ReportMetric(f.requests/children, "requests/child")
	if who == ours {
		b.ReportMetric(f.cpu, "cpu-s")
		b.ReportMetric(f.calls/children, "calls/child")
		b.ReportMetric(f.megabytes, "MB-to-hook")
		b.ReportMetric(f.peak, "peak-MB")
	}
	b.Logf("%d times: %s", len(costs), sum.Tally)
	printed.rows = append(printed.rows, row{f, what, who, children})
}

// table is what is printed at the end.
type table struct{ rows []row }

type row struct {
	figures

	what, who string
	children  float64
}

var printed = &table{}

// write prints the table, if there is anything in it: each load with all that is known of it.
func (t *table) write(w io.Writer) error {
	if len(t.rows) == 0 {
		return nil
	}
	lines := []string{
		"| load | who | wall s | CPU s | requests | per child | hook calls | per child | MB to the hook | memory MB |",
		"|---|---|---|---|---|---|---|---|---|---|",
	}
	written := map[string]bool{}
	for _, first := range t.rows {
		if written[first.what] {
			continue
		}
		written[first.what] = true
		for _, r := range t.rows {
			if r.what == first.what {
				lines = append(lines, r.String())
			}
		}
		if f, ok := published[first.what]; ok {
			lines = append(lines, row{f, first.what, "Metacontroller (published)", first.children}.String())
		}
		if goal, ok := targets[first.what]; ok {
			lines = append(lines, fmt.Sprintf("| %s | target | %s |", first.what, strings.Join(goal[:], " | ")))
		}
	}
	_, err := fmt.Fprintf(w, "\n%s, %d processors\n\n%s\n", time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), strings.Join(lines, "\n"))
	return err
}

// String is a line of the table.
func (r row) String() string {
	number := func(format string, v float64) string {
		if v == 0 && r.who != ours {
			return ""
		}
		return fmt.Sprintf(format, v)
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |", r.what, r.who,
		number("%.2f", r.wall), number("%.2f", r.cpu), number("%.0f", r.requests), number("%.2f", r.requests/r.children),
		number("%.0f", r.calls), number("%.2f", r.calls/r.children), number("%.2f", r.megabytes), number("%.0f", r.peak))
}
