// Package history is the verb "cairn history": it prints what package inspect says about the revisions of one object.
package history

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/cairn-dev/cairn/cli/env"
	"github.com/cairn-dev/cairn/inspect"
)

// New returns the verb.
func New(e *env.Env) *cobra.Command {
	var which string
	cmd := &cobra.Command{
		Use:   "history TYPE/NAME [--revision N]",
		Short: "Show the revisions of a workload, or what one of them holds",
		Long: `Show the revisions of a workload, oldest first.

CURRENT marks the revision that has the content of the spec as it is now, whatever its number is. PODS is the number of
pods made from a revision, terminating ones included. With --revision the recorded content of one revision is printed.`,
		Example: `  # All revisions of a DaemonSet
  cairn history ds/web

  # What revision 2 of a StatefulSet holds
  cairn history sts/db --revision 2`,
		Args: func(_ *cobra.Command, args []string) error { return env.OneObject(args) },
	}
	cmd.Flags().StringVar(&which, "revision", "", "print the content of the revision with this number, or object name")
	output := env.AddOutput(cmd.Flags(), "wide", "json", "yaml", "name")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		format, err := output.Format()
		if err != nil {
			return err
		}
		var find func(*inspect.History) (inspect.Entry, error)
		if cmd.Flags().Changed("revision") {
			if find, err = finder(which); err != nil {
				return err
			}
		}
		return run(cmd.Context(), e, args, format, find)
	}
	return cmd
}

// finder returns how to find the one revision that the flag names.
func finder(which string) (func(*inspect.History) (inspect.Entry, error), error) {
	number, name, err := env.Revision("revision", which)
	switch {
	case err != nil:
		return nil, err
	case name != "":
		return func(h *inspect.History) (inspect.Entry, error) { return h.FindName(name) }, nil
	case number == 0 || which == "":
		return nil, env.Usagef("--revision=%s: revisions are numbered from 1", which)
	default:
		return func(h *inspect.History) (inspect.Entry, error) { return h.Find(number) }, nil
	}
}

// run prints one revision, or all if find is nil.
func run(ctx context.Context, e *env.Env, args []string, format string, find func(*inspect.History) (inspect.Entry, error)) error {
	inspector, parent, err := e.Open(args)
	if err != nil {
		return err
	}
	h, err := inspector.History(ctx, parent)
	if err != nil {
		return err
	}
	if find == nil {
		e.Warn(h.Warnings...)
		return printAll(e.Out, h, format, e.Clock.Now())
	}
	entry, err := find(h)
	if err != nil {
		return err
	}
	return printOne(e.Out, h.Parent, entry, format)
}
