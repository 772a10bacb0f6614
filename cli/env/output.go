package env

import (
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

// This file is the flag -o and the formats that every verb has.

// Output is the value of a flag -o. The empty one is what people read.
type Output struct {
	value   string
	offered []string
}

// AddOutput adds a flag -o that takes one of offered.
func AddOutput(flags *pflag.FlagSet, offered ...string) *Output {
	o := &Output{offered: offered}
	flags.StringVarP(&o.value, "output", "o", "", "output format: "+strings.Join(offered, ", "))
	return o
}

// Format returns the chosen format, "" if none was chosen, and a [*UsageError] if there is no such format.
func (o *Output) Format() (string, error) {
	if o.value == "" || slices.Contains(o.offered, o.value) {
		return o.value, nil
	}
	return "", Usagef("there is no output format %q; there are: %s", o.value, strings.Join(o.offered, ", "))
}

// Encode writes v as json or yaml, in the shape of its JSON tags.
func Encode(w io.Writer, format string, v any) error {
	b, err := json.MarshalIndent(v, "", "    ")
	if err != nil {
		return err
	}
	b = append(b, '\n')
	if format == "yaml" {
		if b, err = yaml.JSONToYAML(b); err != nil {
			return err
		}
	}
	_, err = w.Write(b)
	return err
}
