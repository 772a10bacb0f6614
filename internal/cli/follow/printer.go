package follow

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/cairn-dev/cairn/inspect/status"
	"github.com/cairn-dev/cairn/internal/cli/env"
	"github.com/cairn-dev/cairn/internal/printable"
)

// This file is what is seen: on a terminal one view that is drawn anew, elsewhere a line for each change.

type printer struct {
	lines    io.Writer
	view     func(io.Writer, *status.Status) error
	terminal *env.Terminal // nil: lines
	warn     func(...string)

	last   *status.Status
	line   string          // the last one, without times
	warned map[string]bool // what was warned of
	before []string        // the warnings at the last look
	drawn  int             // how many lines the view has

	failing *failing // nil: the last read has succeeded
}

// failing describes reads that fail one after the other.
type failing struct {
	since, told time.Time
	err         error
}

// text is the time for which the object could not be read, and the reason.
func (f *failing) text(now time.Time) string {
	return fmt.Sprintf("not read for %s: %v", now.Sub(f.since).Round(time.Second), f.err)
}

// A failure is reported after tellAfter, and again every tellEvery: a busy API server answers the next read.
const tellAfter, tellEvery = 5 * time.Second, 30 * time.Second

// unread notes that the object could not be read.
func (p *printer) unread(err error, now time.Time) {
	if p.failing == nil {
		p.failing = &failing{since: now}
	}
	f := p.failing
	if f.err = err; now.Sub(f.since) >= tellAfter && now.Sub(f.told) >= tellEvery {
		f.told = now
		p.warn("The object was " + f.text(now) + ".")
	}
}

func newPrinter(e *env.Env, o Options) *printer {
	p := &printer{lines: o.Lines, view: o.View, warn: e.Warn, warned: map[string]bool{}}
	if p.lines == nil {
		p.lines = e.Out
	}
	if o.View != nil {
		p.terminal = e.Terminal()
	}
	return p
}

// times are what changes although nothing happens.
var times = regexp.MustCompile(`\b(\d+h)?(\d+m)?\d+s\b`)

// show prints a status if it says anything new.
func (p *printer) show(s *status.Status) (changed bool, err error) {
	line := times.ReplaceAllString(s.Line(), "")
	changed = line != p.line
	p.last, p.line = s, line
	if p.terminal != nil {
		return changed, p.draw(s)
	}
	for _, w := range s.Warnings {
		// What a controller has yet to do is over at the next look, mostly.
		if stays := s.State != status.InProgress || slices.Contains(p.before, w); stays && !p.warned[w] {
			p.warned[w] = true
			p.warn(w)
		}
	}
	p.before = s.Warnings
	if changed {
		_, err = fmt.Fprintln(p.lines, s.Line())
	}
	return changed, err
}

// draw draws the view over the one before. No line is longer than the terminal is wide and no view higher: the cursor
// goes up by lines of the terminal, and not beyond its top.
func (p *printer) draw(s *status.Status) error {
	var view bytes.Buffer
	if err := p.view(&view, s); err != nil {
		return err
	}
	for _, w := range s.Warnings {
		fmt.Fprintf(&view, "\nWarning: %s\n", w)
	}
	columns, height := p.terminal.Size()
	lines := strings.Split(strings.TrimRight(string(printable.Escape(view.Bytes())), "\n"), "\n")
	if len(lines) > height-1 {
		lines = append(lines[:max(0, height-2)], "…")
	}
	for n := range lines {
		lines[n] = env.Cut(lines[n], columns)
	}
	text := []byte(strings.Join(lines, "\n") + "\n")
	if p.terminal.Colours {
		text = Paint(text, s)
	}
	back := ""
	if p.drawn > 0 {
		back = fmt.Sprintf("\x1b[%dA\r\x1b[J", p.drawn)
	}
	p.drawn = len(lines)
	_, err := p.terminal.W.Write(append([]byte(back), text...))
	return err
}

// Paint returns a view, made safe for a terminal, with its state in the colour that it has.
func Paint(text []byte, s *status.Status) []byte {
	colours := map[status.State]env.Colour{
		status.Done: env.Green, status.Unknown: env.Yellow, status.InProgress: env.Yellow, status.Failed: env.Red,
	}
	return env.Paint(text, s.StateText(), colours[s.State])
}
