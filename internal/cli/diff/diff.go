// Package diff is the verb "cairn diff": it prints what package inspect says about the difference between two
// revisions.
package diff

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/inspect"
	"github.com/cairn-dev/cairn/internal/cli/env"
)

// report is a difference as json and yaml show it. Scripts read these: fields may be added, and never renamed.
type report struct {
	env.Header

	Parent   env.Parent `json:"parent"`
	From     *env.Ref   `json:"from,omitempty"` // absent if it is no revision
	To       *env.Ref   `json:"to,omitempty"`
	A        string     `json:"a"` // what the two states are called
	B        string     `json:"b"`
	Differs  bool       `json:"differs"`
	Diff     string     `json:"diff,omitempty"`
	Changes  []string   `json:"changes,omitempty"` // the same in words
	Warnings []string   `json:"warnings,omitempty"`
}

// options are what the command line says.
type options struct {
	states           []inspect.Operand // none, one or two
	exitCode, reveal bool
	format           string
}

// New returns the verb.
func New(e *env.Env) *cobra.Command {
	var o options
	var from, to string
	cmd := &cobra.Command{
		Use:   "diff TYPE/NAME [A] [B]",
		Short: "Show what differs between two revisions, or since one",
		Long: `Show what differs from one state of an object to another: in the part of the object that the history records, as a unified diff
of YAML. A and B are each one of

  7           a revision by its number, or by the name of its object
  -1          the revision before the current one; -2 the one before that; ~1 says the same
  live        the object as it is now
  FILE        a manifest of the object, as it is written: the API server's defaults are not in it

Without B it is the object as it is. Without A it is the newest revision that differs from that, the one to which "cairn undo"
would go. Secrets are masked; *** (before) and *** (after) differ.

-o changes says in words what differs, a line for each field; lists whose elements have names are compared by these, in any
order. KUBECTL_EXTERNAL_DIFF names a program to compare with, as for kubectl diff. With --exit-code the exit code is 0 if nothing
differs, 1 if something does, and 2 if that could not be found out; without it 0 for both.`,
		Example: `  # What has changed since the revision before?
  cairn diff ds/web

  # From revision 2 to revision 4
  cairn diff catset/nap 2 4

  # What has changed in all Deployments of an app, in words?
  cairn diff deploy -l app=web -o changes

  # From the revision before the current one to a file
  cairn diff sts/db -1 db.yaml`,
	}
	selection := env.AddSelection(cmd.Flags())
	cmd.Args = func(_ *cobra.Command, args []string) error {
		objects, states := split(args, selection)
		if len(states) > 2 { //nolint:mnd // A and B
			return fmt.Errorf("%q are more than two states to compare", strings.Join(states, " "))
		}
		if !selection.Any() {
			return env.OneObject(objects)
		}
		return selection.Args(objects)
	}
	cmd.Flags().StringVar(&from, "revision", "",
		"number, or object name, of the revision to begin with (default: the newest that differs from the object)")
	cmd.Flags().StringVar(&to, "to-revision", "",
		"number, or object name, of the revision to compare it with (default: the object as it is)")
	cmd.Flags().BoolVar(&o.exitCode, "exit-code", false, "end with 1 if something differs, with 2 if that could not be found out")
	cmd.Flags().BoolVar(&o.reveal, "show-secrets", false, "do not mask secrets")
	output := env.AddOutput(cmd.Flags(), "changes")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var err error
		if o.format, err = output.Format(); err != nil {
			return err
		}
		objects, states := split(args, selection)
		if o.states, err = parse(states, from, to); err != nil {
			return err
		}
		differs, err := run(cmd.Context(), e, objects, selection, o)
		switch {
		case o.exitCode && err != nil:
			return &env.ExitError{Status: env.Undecided, Err: err}
		case o.exitCode && differs:
			return &env.ExitError{Status: env.Failed}
		}
		return err
	}
	return cmd
}

func run(ctx context.Context, e *env.Env, args []string, s *env.Selection, o options) (differs bool, err error) {
	found, err := e.Select(args, s)
	if err != nil {
		return false, err
	}
	if o.reveal {
		found.Inspector = found.ShowSecrets()
	}
	var a *inspect.Operand
	var b inspect.Operand
	if len(o.states) > 0 {
		a = &o.states[0]
	}
	if len(o.states) > 1 {
		b = o.states[1]
	}
	reports := []report{}
	err = found.Each(func(i *inspect.Inspector, parent client.Object) error {
		d, err := i.Diff(ctx, parent, a, b)
		if err != nil {
			return err
		}
		e.Warn(found.Warnings(d.Parent, d.Warnings)...)
		differs = differs || d.Diff != ""
		if env.Encodes(o.format) {
			reports = append(reports, encoded(d))
			return nil
		}
		if program := os.Getenv(externalVariable); program != "" && o.format == "" && d.Diff != "" {
			return external(ctx, e, program, d)
		}
		show(e, found, d, o.format)
		return nil
	})
	if env.Encodes(o.format) && (err == nil || len(reports) > 0) {
		err = errors.Join(env.EncodeAll(e.Out, o.format, found, "Difference", reports), err)
	}
	return differs, err
}

func encoded(d *inspect.Difference) report {
	return report{
		Header: env.HeaderOf("Difference"), Parent: env.ParentOf(d.Parent), From: env.RefTo(d.From), To: env.RefTo(d.To), A: d.A, B: d.B,
		Differs: d.Diff != "", Diff: d.Diff, Changes: words(d), Warnings: d.Warnings,
	}
}

func show(e *env.Env, found *env.Found, d *inspect.Difference, format string) {
	title := found.Title(d.Parent)
	switch {
	case format == "name" && d.Diff == "":
	case format == "name":
		fmt.Fprintln(e.Out, d.Parent)
	case d.Diff == "", format == "changes" && len(d.Changes) == 0:
		fmt.Fprintf(e.Out, "%s: nothing differs between %s and %s\n", title, d.A, d.B)
	case format == "changes":
		for _, change := range words(d) {
			if !found.One {
				change = title + ": " + change
			}
			fmt.Fprintln(e.Out, change)
		}
	default:
		e.PrintDiff(e.Out, d.Diff)
	}
}

func words(d *inspect.Difference) []string {
	var out []string
	for _, change := range d.Changes {
		out = append(out, change.String())
	}
	return out
}
