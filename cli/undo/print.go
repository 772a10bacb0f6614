package undo

import (
	"fmt"
	"io"

	"github.com/cairn-dev/cairn/cli/env"
	"github.com/cairn-dev/cairn/inspect"
)

// This file is the shape of the output. Scripts read json and yaml: fields may be added there, and never renamed.

// result is what came of an undo: either done, by plan, or nothing.
type result struct {
	plan    *inspect.Undo
	done    *inspect.Applied
	nothing *inspect.NothingToUndoError
}

// report is a result as json and yaml show it.
type report struct {
	Parent     string    `json:"parent"`
	Namespace  string    `json:"namespace,omitempty"`
	From       *revision `json:"from,omitempty"` // absent if the spec was recorded in no revision
	To         *revision `json:"to"`
	Changed    bool      `json:"changed"`
	DryRun     bool      `json:"dryRun"`
	Diff       string    `json:"diff,omitempty"`
	Privileges []string  `json:"privileges,omitempty"`
	Warnings   []string  `json:"warnings,omitempty"`
}

type revision struct {
	Revision int64  `json:"revision"`
	Name     string `json:"name"`
}

func show(w io.Writer, r result, o options) error {
	switch o.format {
	case "json", "yaml":
		return env.Encode(w, o.format, r.report(o))
	case "name":
		fmt.Fprintln(w, r.parent())
		return nil
	}
	suffix := ""
	if o.dryRun {
		suffix = " (server dry run)"
	}
	if r.done == nil {
		fmt.Fprintf(w, "%s skipped rollback (current template already matches revision %d)%s\n", r.parent(), r.nothing.To.Number, suffix)
		return nil
	}
	fmt.Fprintf(w, "%s rolled back to %s%s\n", r.parent(), r.plan.To, suffix)
	if o.dryRun {
		fmt.Fprint(w, r.done.Diff)
	}
	return nil
}

func (r result) parent() inspect.Parent {
	if r.nothing != nil {
		return r.nothing.Parent
	}
	return r.plan.Parent
}

func (r result) report(o options) report {
	out := report{Parent: r.parent().String(), Namespace: r.parent().Namespace, DryRun: o.dryRun}
	if r.nothing != nil {
		out.To = named(r.nothing.To)
		return out
	}
	out.Changed, out.From, out.To = !o.dryRun, named(r.plan.From), named(&r.plan.To)
	out.Diff, out.Privileges, out.Warnings = r.done.Diff, r.done.Privileges, r.plan.Warnings
	return out
}

func named(e *inspect.Entry) *revision {
	if e == nil {
		return nil
	}
	return &revision{Revision: e.Number, Name: e.Name}
}
