package verify

import (
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/cairn-dev/cairn/inspect/verify"
	"github.com/cairn-dev/cairn/internal/cli/env"
)

// This file is the shape of the output. Scripts read json and yaml: fields may be added there, and never renamed.

type report struct {
	env.Header

	Parents   int       `json:"parents"`
	Revisions int       `json:"revisions"`
	Problems  []problem `json:"problems"`
	Warnings  []string  `json:"warnings,omitempty"`
}

type problem struct {
	Reason  string     `json:"reason"`
	Object  env.Parent `json:"object"`
	Message string     `json:"message"`
	Fix     string     `json:"fix,omitempty"`
}

func show(w io.Writer, found *verify.Verified, format string) error {
	switch {
	case env.Encodes(format):
		out := report{
			Header: env.HeaderOf("Verification"), Parents: found.Parents, Revisions: found.Revisions,
			Problems: []problem{}, Warnings: found.Warnings,
		}
		for _, p := range found.Problems {
			line := problem{Reason: p.Reason, Object: env.ParentOf(p.Object), Message: p.Message}
			if p.Fix != nil {
				line.Fix = p.Fix.Message
			}
			out.Problems = append(out.Problems, line)
		}
		return env.Encode(w, format, out)
	case format == "name":
		for _, p := range found.Problems {
			fmt.Fprintln(w, p.Object)
		}
		return nil
	}
	if len(found.Problems) == 0 {
		fmt.Fprintf(w, "nothing is wrong with %s of %s\n", count(found.Revisions, "revision"), count(found.Parents, "object"))
		return nil
	}
	t := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		{Name: "Object", Type: "string", Format: "name"},
		{Name: "Namespace", Type: "string"},
		{Name: "Problem", Type: "string"},
		{Name: "Message", Type: "string"},
	}}
	for _, p := range found.Problems {
		t.Rows = append(t.Rows, metav1.TableRow{Cells: []any{p.Object.String(), p.Object.Namespace, p.Reason, p.Message}})
	}
	return printers.NewTablePrinter(printers.PrintOptions{}).PrintObj(t, w)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
