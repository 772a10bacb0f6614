// Package history is the verb "cairn history": it prints what package inspect says about the revisions of one object.
package history

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/inspect"
	"github.com/cairn-dev/cairn/internal/cli/env"
)

// New returns the verb.
func New(e *env.Env) *cobra.Command {
	var which string
	var reveal bool
	cmd := &cobra.Command{
		Use:   "history TYPE/NAME ... [--revision N]",
		Short: "Show the revisions of an object, or what one of them holds",
		Long: `Show the revisions of an object, oldest first: those that its controller keeps in ControllerRevisions or ReplicaSets, whatever its
kind, or that a CompositeController keeps of it.

CURRENT marks the revision that has the content of the spec as it is now, whatever its number is. PODS is the number
of pods made from a revision, terminating ones included; CHILDREN is the number of children that a revision of a
composite parent claims; there is no such column where revisions do not say what is made from them. Revisions that
Metacontroller wrote have no number and come first. With --revision the recorded content of one revision is printed; values of
Secrets, and of environment variables that are called like passwords, are masked.

A terminal shows BY, the field manager that made an edit, where its controller notes it and for the current revision,
and CHANGED, what differs from the revision before, and leaves out what does not fit, the least important column first.
-o wide adds: INTACT, no if the name of a revision does not go with its content; COMPLETED, yes if a rollout to it is
known to have been complete; and BY and CHANGED everywhere.`,
		Example: `  # All revisions of a DaemonSet
  cairn history ds/web

  # What revision 2 of a StatefulSet holds
  cairn history sts/db --revision 2

  # Of all Deployments of an app: which revision is current, and why it was made
  cairn history deploy -l app=web -o custom-columns=NAME:.parent.name,REV:.revision,CURRENT:.current,CAUSE:.changeCause

  # A parent of a CompositeController, and a revision by the name of its object
  cairn history catset/nap --revision catsets.ctl.example.com-4be2f…`,
	}
	selection := env.AddSelection(cmd.Flags())
	cmd.Args = func(_ *cobra.Command, args []string) error { return selection.Args(args) }
	cmd.Flags().StringVar(&which, "revision", "", "print the content of the revision with this number, or object name")
	cmd.Flags().BoolVar(&reveal, "show-secrets", false, "do not mask secrets in the content of a revision")
	output := env.AddOutput(cmd.Flags(), "wide")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		format, err := output.Format()
		if err != nil {
			return err
		}
		var find inspect.Find
		if cmd.Flags().Changed("revision") {
			if find, err = env.Find("revision", which); err != nil {
				return err
			}
		}
		found, err := e.Select(args, selection)
		if err != nil {
			return err
		}
		if reveal {
			found.Inspector = found.ShowSecrets()
		}
		if find != nil {
			return one(cmd.Context(), e, found, format, find)
		}
		return all(cmd.Context(), e, found, format)
	}
	return cmd
}

// all prints the histories of what was found.
func all(ctx context.Context, e *env.Env, found *env.Found, format string) error {
	width := 0
	if t := e.Terminal(); t != nil {
		width, _ = t.Size()
	}
	var logs []log
	printed := false
	failed := found.Each(func(i *inspect.Inspector, parent client.Object) error {
		h, err := i.History(ctx, parent)
		if err != nil {
			return err
		}
		e.Warn(found.Warnings(h.Parent, h.Warnings)...)
		if env.Encodes(format) {
			logs = append(logs, encoded(h))
			return nil
		}
		if printed && format != "name" {
			fmt.Fprintln(e.Out)
		}
		printed = true
		return printAll(e.Out, found.Title(h.Parent), h, format, e.Clock.Now(), width)
	})
	if env.Encodes(format) && (failed == nil || len(logs) > 0) {
		return errors.Join(env.EncodeAll(e.Out, format, found, "History", logs), failed)
	}
	return failed
}

// one prints one revision of one object.
func one(ctx context.Context, e *env.Env, found *env.Found, format string, find inspect.Find) error {
	if n := len(found.Objects); n != 1 {
		return env.Usagef("--revision is about one object, not %d", n)
	}
	h, err := found.History(ctx, found.Objects[0])
	if err != nil {
		return err
	}
	entry, err := find(h)
	if err != nil {
		return err
	}
	return printOne(e.Out, h, entry, format)
}
