package env

import (
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/text/width"
	"sigs.k8s.io/yaml"

	"github.com/cairn-dev/cairn/inspect"
	"github.com/cairn-dev/cairn/inspect/object"
	"github.com/cairn-dev/cairn/internal/printable"
)

// This file is the flag -o, the formats that every verb has, and what more than one of them prints.

// Output is the value of a flag -o. The empty one is text for users.
type Output struct {
	value   string
	offered []string
}

// AddOutput adds a flag -o that takes one of own, json, yaml, name, and kubectl's templates.
func AddOutput(flags *pflag.FlagSet, own ...string) *Output {
	o := &Output{offered: append(own, "json", "yaml", "name")}
	flags.StringVarP(&o.value, "output", "o", "",
		"output format: "+strings.Join(o.offered, ", ")+", jsonpath=..., go-template=..., custom-columns=...")
	_ = flags.SetAnnotation("output", formats, append(slices.Clone(o.offered), templates...)) // the flag was added a line ago
	return o
}

// formats is the annotation of the flag -o for [Offered].
const formats = "cairn.dev/formats"

// Offered returns the formats that a flag -o takes, for completion.
func Offered(output *pflag.Flag) []string { return output.Annotations[formats] }

// Format returns the chosen format, "" if none was chosen, and a [*UsageError] if there is no such format.
func (o *Output) Format() (string, error) {
	if o.value == "" || slices.Contains(o.offered, o.value) {
		return o.value, nil
	}
	if !templated(o.value) {
		return "", Usagef("there is no output format %q; there are: %s", o.value, strings.Join(append(o.offered, templates...), ", "))
	}
	if _, err := printerOf(o.value); err != nil {
		return "", &UsageError{Err: err}
	}
	return o.value, nil
}

// Encodes reports whether a format is one for [Encode].
func Encodes(format string) bool { return format == "json" || format == "yaml" || templated(format) }

// Header says what machine output is: fields may be added to a version, and are never renamed or removed.
type Header struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// HeaderOf returns the header of output of a kind, as History.
func HeaderOf(kind string) Header { return Header{APIVersion: "cli.cairn.dev/v1alpha1", Kind: kind} }

// EncodeAll writes a document for each object that a verb was asked about: a list, unless the command line names one.
func EncodeAll[T any](w io.Writer, format string, f *Found, kind string, documents []T) error {
	if f.One && len(documents) == 1 {
		return Encode(w, format, documents[0])
	}
	return Encode(w, format, struct {
		Header

		Items []T `json:"items"`
	}{HeaderOf(kind + "List"), append([]T{}, documents...)})
}

// Encode writes v in a format for machines, in the shape of its JSON tags. Text that YAML would write as it is, and
// that is not safe on a terminal, is written as JSON, which is YAML as well, and has escapes.
func Encode(w io.Writer, format string, v any) error {
	b, err := json.MarshalIndent(v, "", "    ")
	if err != nil {
		return err
	}
	if templated(format) {
		return byTemplate(w, format, b)
	}
	b = append(printable.Escape(b), '\n')
	if format == "yaml" {
		text, err := yaml.JSONToYAML(b)
		if err != nil {
			return err
		}
		if printable.Safe(text) {
			b = text
		}
	}
	_, err = w.Write(b)
	return err
}

// Parent is an object as json and yaml show it.
type Parent struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
}

// ParentOf returns p as json and yaml show it.
func ParentOf(p object.Parent) Parent {
	out := Parent{Namespace: p.Namespace, Name: p.Name, UID: string(p.UID)}
	out.APIVersion, out.Kind = p.ToAPIVersionAndKind()
	return out
}

// Ref is a revision as json and yaml show it.
type Ref struct {
	Revision int64  `json:"revision"` // 0 if it has no number
	Name     string `json:"name"`
}

// RefTo returns e as json and yaml show it, nil for nil.
func RefTo(e *inspect.Entry) *Ref {
	if e == nil {
		return nil
	}
	return &Ref{Revision: e.Number, Name: e.Name}
}

// Number returns the number of a revision as tables show it.
func Number(n int64) string {
	if n == 0 {
		return "<none>"
	}
	return strconv.FormatInt(n, 10)
}

// Cut returns a line that fits into so many columns.
func Cut(line string, columns int) string {
	line = strings.ReplaceAll(line, "\t", " ")
	used, end := 0, 0 // end is where the line is cut if it does not fit
	for at, r := range line {
		w := columnsOf(r)
		if used+w <= columns-1 {
			end = at + len(string(r))
		}
		if used += w; used > columns {
			return line[:end] + "…"
		}
	}
	return line
}

// Columns returns how many columns of a terminal a line without tabs takes.
func Columns(line string) (n int) {
	for _, r := range line {
		n += columnsOf(r)
	}
	return n
}

func columnsOf(r rune) int {
	if k := width.LookupRune(r).Kind(); k == width.EastAsianWide || k == width.EastAsianFullwidth {
		return 2
	}
	return 1
}
