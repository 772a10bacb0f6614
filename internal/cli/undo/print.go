package undo

import (
	"fmt"

	"github.com/cairn-dev/cairn/inspect"
	"github.com/cairn-dev/cairn/inspect/object"
	"github.com/cairn-dev/cairn/internal/cli/env"
)

// This file is the shape of the output. Scripts read json and yaml: fields may be added there, and never renamed.

// result is the result of an undo: either done, by plan, or nothing.
type result struct {
	plan    *inspect.Undo
	done    *inspect.Applied
	nothing *inspect.NothingToUndoError
}

// report is a result as json and yaml show it.
type report struct {
	env.Header

	Parent     env.Parent `json:"parent"`
	From       *env.Ref   `json:"from,omitempty"` // absent if the spec was recorded in no revision
	To         *env.Ref   `json:"to"`
	Changed    bool       `json:"changed"` // or would be, by a dry run
	DryRun     bool       `json:"dryRun"`
	Diff       string     `json:"diff,omitempty"`
	Privileges []string   `json:"privileges,omitempty"`
	Altered    string     `json:"altered,omitempty"` // a diff from the revision to what admission makes of it
	Warnings   []string   `json:"warnings,omitempty"`
}

func show(e *env.Env, r result, o options) error {
	w := e.Out
	switch {
	case env.Encodes(o.format):
		return env.Encode(w, o.format, r.report(o))
	case o.format == "name":
		fmt.Fprintln(w, r.parent())
		return nil
	}
	suffix := ""
	if o.dryRun != noDryRun {
		suffix = " (" + o.dryRun + " dry run)"
	}
	if r.done == nil {
		to := r.nothing.To.String()
		if r.nothing.To.Number > 0 {
			to = fmt.Sprintf("revision %d", r.nothing.To.Number) // as kubectl says it
		}
		fmt.Fprintf(w, "%s skipped rollback (current %s already matches %s)%s\n", r.parent(), r.nothing.Part, to, suffix)
		return nil
	}
	if r.done.Altered != "" {
		suffix = ", as admission changes it" + suffix
	}
	fmt.Fprintf(w, "%s rolled back to %s%s\n", r.parent(), r.plan.To, suffix)
	if o.dryRun != noDryRun {
		e.PrintDiff(w, r.done.Diff)
	}
	return nil
}

func (r result) parent() object.Parent {
	if r.nothing != nil {
		return r.nothing.Parent
	}
	return r.plan.Parent
}

func (r result) report(o options) report {
	out := report{Header: env.HeaderOf("Undo"), Parent: env.ParentOf(r.parent()), DryRun: o.dryRun != noDryRun}
	if r.nothing != nil {
		out.To = env.RefTo(r.nothing.To)
		return out
	}
	out.Changed, out.From, out.To = true, env.RefTo(r.plan.From), env.RefTo(&r.plan.To)
	out.Diff, out.Privileges, out.Warnings = r.done.Diff, r.done.Privileges, r.plan.Warnings
	out.Altered = r.done.Altered
	return out
}
