// Package diff is the verb "cairn diff": it prints what package inspect says about the difference between two revisions.
package diff

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/cairn-dev/cairn/inspect"
	"github.com/cairn-dev/cairn/internal/cli/env"
)

// report is a difference as json and yaml show it. Scripts read these: fields may be added, and never renamed.
type report struct {
	env.Header

	Parent   env.Parent `json:"parent"`
	From     *env.Ref   `json:"from"`
	To       *env.Ref   `json:"to,omitempty"` // absent if it is the object as it is
	Differs  bool       `json:"differs"`
	Diff     string     `json:"diff,omitempty"`
	Warnings []string   `json:"warnings,omitempty"`
}

// New returns the verb.
func New(e *env.Env) *cobra.Command {
	var from, to string
	cmd := &cobra.Command{
		Use:   "diff TYPE/NAME [--revision N [--to-revision M]]",
		Short: "Show what differs between two revisions, or since one",
		Long: `Show what differs from a revision to the object as it is now, or from one revision to another: in the part of the object
that the history records, as a unified diff of YAML.

Without --revision it is the newest revision that differs from the object, the one to which "cairn undo" would go. The
exit code is 0 whether there is a difference or not; -o json says which.`,
		Example: `  # What has changed since the revision before?
  cairn diff ds/web

  # Since revision 2
  cairn diff sts/db --revision 2

  # From revision 2 to revision 4
  cairn diff catset/nap --revision 2 --to-revision 4`,
		Args: func(_ *cobra.Command, args []string) error { return env.OneObject(args) },
	}
	cmd.Flags().StringVar(&from, "revision", "",
		"number, or object name, of the revision to begin with (default: the newest that differs from the object)")
	cmd.Flags().StringVar(&to, "to-revision", "",
		"number, or object name, of the revision to compare it with (default: the object as it is)")
	output := env.AddOutput(cmd.Flags(), "json", "yaml", "name")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		format, err := output.Format()
		if err != nil {
			return err
		}
		var finders [2]inspect.Find
		for n, flag := range []string{"revision", "to-revision"} {
			if value := cmd.Flags().Lookup(flag); value.Changed {
				if finders[n], err = env.Find(flag, value.Value.String()); err != nil {
					return err
				}
			}
		}
		if finders[0] == nil && finders[1] != nil {
			return env.Usagef("--to-revision=%s: say with --revision what to compare it with", to)
		}
		return run(cmd.Context(), e, args, format, finders)
	}
	return cmd
}

func run(ctx context.Context, e *env.Env, args []string, format string, finders [2]inspect.Find) error {
	inspector, parent, err := e.Open(args)
	if err != nil {
		return err
	}
	d, err := inspector.Diff(ctx, parent, finders[0], finders[1])
	if err != nil {
		return err
	}
	e.Warn(d.Warnings...)
	return show(e.Out, d, format)
}

func show(w io.Writer, d *inspect.Difference, format string) error {
	switch format {
	case "json", "yaml":
		return env.Encode(w, format, report{
			Header: env.HeaderOf("Difference"), Parent: env.ParentOf(d.Parent), From: env.RefTo(&d.From), To: env.RefTo(d.To),
			Differs: d.Diff != "", Diff: d.Diff, Warnings: d.Warnings,
		})
	case "name":
		if d.Diff != "" {
			fmt.Fprintln(w, d.Parent)
		}
		return nil
	}
	if d.Diff == "" {
		from, to := d.Titles()
		fmt.Fprintf(w, "%s: nothing differs between %s and %s\n", d.Parent, from, to)
		return nil
	}
	fmt.Fprint(w, d.Diff)
	return nil
}
