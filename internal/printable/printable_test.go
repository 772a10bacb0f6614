package printable_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/cairn-dev/cairn/internal/printable"
)

func TestEscape(t *testing.T) {
	for text, want := range map[string]string{
		"web-0\tReady\n":        "web-0\tReady\n",
		"naïve – ěščř":          "naïve – ěščř",
		"\x1b[31mred":           `\u001b[31mred`,
		"ding\a":                `ding\u0007`,
		"del\x7f":               `del\u007f`,
		"c1\u009b2J":            `c1\u009b2J`,
		"gpj.\u202eexe":         `gpj.\u202eexe`,
		"over\rwritten":         `over\u000dwritten`,
		"two\u2028lines":        `two\u2028lines`,
		"tag\U000e0041":         `tag\udb40\udc41`,
		"no text \xff\xfe here": `no text \xff\xfe here`,
	} {
		if got := string(printable.Escape([]byte(text))); got != want {
			t.Errorf("%q becomes %s, want %s", text, got, want)
		}
	}
}

// What is escaped in JSON means the same.
func TestJSONStaysTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.String().Draw(t, "value")
		raw, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		escaped := printable.Escape(raw)
		var got string
		if err := json.Unmarshal(escaped, &got); err != nil || got != value || !printable.Safe(escaped) {
			t.Fatalf("%q becomes %s, which is %q: %v", value, escaped, got, err)
		}
	})
}

// However a text is cut into writes, it is escaped as a whole.
func TestWriter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(rapid.String().Draw(t, "text"))
		var out bytes.Buffer
		w := &printable.Writer{W: &out}
		for rest := text; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			if written, err := w.Write(rest[:n]); err != nil || written != n {
				t.Fatal(written, err)
			}
			rest = rest[n:]
		}
		if want := printable.Escape(text); !bytes.Equal(out.Bytes(), want) {
			t.Fatalf("%q, want %q", out.Bytes(), want)
		}
	})
}

type full struct{ err error }

func (f full) Write([]byte) (int, error) { return 0, f.err }

func TestTheFirstErrorIsKept(t *testing.T) {
	none := errors.New("no space left")
	below := &full{none}
	w := &printable.Writer{W: below}
	_, _ = w.Write([]byte("a"))
	below.err = nil
	_, _ = w.Write([]byte("b"))
	if !errors.Is(w.Err(), none) {
		t.Error(w.Err())
	}
}
