// Package tree is the verb "cairn tree": it prints what package inspect says about what an object controls, and what
// controls it.
package tree

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/inspect"
	"github.com/cairn-dev/cairn/inspect/tree"
	"github.com/cairn-dev/cairn/internal/cli/env"
)

// New returns the verb.
func New(e *env.Env) *cobra.Command {
	var up bool
	cmd := &cobra.Command{
		Use:   "tree TYPE/NAME ... [--up]",
		Short: "Show what an object controls, or what controls it",
		Long: `Show what an object controls, directly and indirectly, found by controller references alone: all kinds that the cluster
has and that you may list are looked at, in the namespace of the object or, if it is in none, in all namespaces.

REVISION is the number of the revision that an object holds, or was made from. STATE is one word: Done, InProgress, Failed or Unknown, as
in "cairn status", Terminating, or NotFound for an owner that was deleted. Objects that could not be read are Unknown. MESSAGE is the
reason of any state but Done.
With --up the owners of the object are shown, from the uppermost one down to the object.`,
		Example: `  # What does a Deployment control?
  cairn tree deploy/api

  # Who made this pod?
  cairn tree pod/api-5d8f6c-x2x7k --up`,
	}
	selection := env.AddSelection(cmd.Flags())
	cmd.Args = func(_ *cobra.Command, args []string) error { return selection.Args(args) }
	cmd.Flags().BoolVar(&up, "up", false, "show what controls the object, instead of what it controls")
	output := env.AddOutput(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		format, err := output.Format()
		if err != nil {
			return err
		}
		found, err := e.Select(args, selection)
		if err != nil {
			return err
		}
		return all(cmd.Context(), e, found, up, format)
	}
	return cmd
}

func all(ctx context.Context, e *env.Env, found *env.Found, up bool, format string) error {
	var trees []*tree.Tree
	failed := found.Each(func(i *inspect.Inspector, o client.Object) error {
		t, err := read(ctx, e, i, o, up)
		if err != nil {
			return err
		}
		e.Warn(found.Warnings(t.Root.Parent, t.Warnings)...)
		trees = append(trees, t)
		return nil
	})
	if len(trees) == 0 && failed != nil {
		return failed
	}
	return errors.Join(show(e.Out, found, trees, format, e.Clock.Now()), failed)
}

func read(ctx context.Context, e *env.Env, i *inspect.Inspector, o client.Object, up bool) (*tree.Tree, error) {
	if up {
		return tree.Ancestors(ctx, i.Client(), o, e.Clock.Now())
	}
	kinds, err := e.Kinds(o.GetNamespace() != "")
	if err != nil {
		return nil, err
	}
	return tree.Below(ctx, i.Client(), o, kinds, e.Clock.Now())
}
