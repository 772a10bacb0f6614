package sim

import (
	"fmt"
	"strings"
)

// trace is what happened in one world, a line for each thing. Two runs of one seed have the same trace, byte for byte.
type trace struct {
	on    bool
	lines strings.Builder
}

func (w *world) tracef(format string, args ...any) {
	if w.trace.on {
		fmt.Fprintf(&w.trace.lines, "%5d %10.3fs ", w.step, w.clock.Since(w.born).Seconds())
		fmt.Fprintf(&w.trace.lines, format, args...)
		w.trace.lines.WriteByte('\n')
	}
}
