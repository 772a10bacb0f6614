package env

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/cairn-dev/cairn/internal/printable"
)

// This file is what a terminal can do that a pipe cannot: colours, and drawing a view anew. What is written to it
// without [Env.Out] has to be escaped by whoever writes it.

// Terminal is the terminal that the standard output is.
type Terminal struct {
	// W is the terminal itself: nothing is escaped.
	W io.Writer
	// Colours is false if the user wants none (NO_COLOR).
	Colours bool
	// Size returns how many columns and lines there are.
	Size func() (columns, lines int)
}

// Terminal returns the terminal that the standard output is, nil if it is none, or one that obeys nothing (TERM=dumb).
func (e *Env) Terminal() *Terminal {
	if e.out == nil {
		return nil
	}
	file := terminalOf(e.out)
	if file == nil {
		return nil
	}
	return &Terminal{W: file, Colours: colours(), Size: func() (int, int) {
		columns, lines, err := term.GetSize(int(file.Fd()))
		if err != nil || columns <= 0 || lines <= 0 {
			return 80, 24
		}
		return columns, lines
	}}
}

// colours is false if the user wants none: https://no-color.org.
func colours() bool { return os.Getenv("NO_COLOR") == "" }

// terminalOf returns the terminal that is written to, nil if that is none or obeys nothing.
func terminalOf(w io.Writer) *os.File {
	if escaped, ok := w.(*printable.Writer); ok {
		w = escaped.W
	}
	if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb" {
		return file
	}
	return nil
}

// PrintDiff writes a unified diff, in colours if w, one of the two streams, is a terminal that has them.
func (e *Env) PrintDiff(w io.Writer, diff string) {
	if file := terminalOf(w); file != nil && colours() {
		_, _ = file.Write(PaintDiff([]byte(diff))) // as the functions that print tables, it does not say
		return
	}
	fmt.Fprint(w, diff)
}

// PaintDiff returns a unified diff, made safe for a terminal, in colours.
func PaintDiff(diff []byte) []byte {
	var out bytes.Buffer
	for line := range bytes.Lines(printable.Escape(diff)) {
		text := bytes.TrimSuffix(line, []byte("\n"))
		colour := map[string]Colour{"+": Green, "-": Red, "@": Yellow}[string(text[:min(1, len(text))])]
		if colour == "" {
			out.Write(line)
			continue
		}
		out.WriteString(string(colour) + string(text) + "\x1b[0m\n")
	}
	return out.Bytes()
}

// Colour is one of the colours that states have.
type Colour string

// The colours.
const (
	Green  Colour = "\x1b[32m"
	Yellow Colour = "\x1b[33m"
	Red    Colour = "\x1b[31m"
)

// Paint returns text, made safe for a terminal, with word in a colour where it first occurs.
func Paint(text []byte, word string, c Colour) []byte {
	text = printable.Escape(text)
	before, after, found := bytes.Cut(text, []byte(word))
	if !found {
		return text
	}
	return bytes.Join([][]byte{before, []byte(c), []byte(word), []byte("\x1b[0m"), after}, nil)
}
