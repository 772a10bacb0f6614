package env

import (
	"bytes"
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
	if e.out == nil || os.Getenv("TERM") == "dumb" {
		return nil
	}
	file, ok := e.out.W.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	return &Terminal{W: file, Colours: os.Getenv("NO_COLOR") == "", Size: func() (int, int) {
		columns, lines, err := term.GetSize(int(file.Fd()))
		if err != nil || columns <= 0 || lines <= 0 {
			return 80, 24
		}
		return columns, lines
	}}
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
