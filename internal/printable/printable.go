// Package printable makes text safe to show on a terminal: whatever a terminal would obey or hide is written as an
// escape. Names, causes and conditions are written by others, and may not move the cursor, ring the bell or turn a line
// around.
//
// What may not come in: colours, widths, anything else about how text looks.
package printable

import (
	"bytes"
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// hidden reports whether a terminal obeys r or does not show it: control characters but for the line feed and the tab,
// and format characters, such as those that change the direction of a line.
func hidden(r rune) bool {
	return r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// Safe reports whether text can be shown as it is.
func Safe(text []byte) bool { return utf8.Valid(text) && !bytes.ContainsFunc(text, hidden) }

// Escape returns text with every character that a terminal would obey or hide in the notation of JSON, as in \u001b,
// and bytes that are no character as in \xff. JSON stays the same JSON.
func Escape(text []byte) []byte {
	if Safe(text) {
		return text
	}
	out := make([]byte, 0, 2*len(text))
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1:
			out = fmt.Appendf(out, `\x%02x`, text[0])
		case !hidden(r):
			out = append(out, text[:size]...)
		default:
			for _, unit := range utf16.Encode([]rune{r}) {
				out = fmt.Appendf(out, `\u%04x`, unit)
			}
		}
		text = text[size:]
	}
	return out
}

// Writer escapes what is written to it, and remembers the first error of the writer below: most of what is printed is
// printed by functions whose callers do not ask whether it arrived.
type Writer struct {
	// W is where the text goes.
	W io.Writer

	// part is the beginning of a character whose end was not written yet.
	part []byte
	err  error
}

// Unwrap returns what is below, for whoever has to know whether that is a terminal.
func (w *Writer) Unwrap() any { return w.W }

// Write writes text, escaped. It returns the error of the writer below.
func (w *Writer) Write(text []byte) (int, error) {
	whole := append(w.part, text...) //nolint:gocritic // part is replaced below
	end := len(whole) - unfinished(whole)
	w.part = bytes.Clone(whole[end:])
	if _, err := w.W.Write(Escape(whole[:end])); err != nil {
		if w.err == nil {
			w.err = err
		}
		return 0, err
	}
	return len(text), nil
}

// Err returns the first error of the writer below, nil if all that was written arrived.
func (w *Writer) Err() error { return w.err }

// unfinished returns how many bytes at the end of text begin a character.
func unfinished(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return n
			}
			return 0
		}
	}
	return 0
}
