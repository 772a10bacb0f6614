// Package status is the verb "cairn status": it prints what package inspect says about the rollout of one object.
package status

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/cairn-dev/cairn/internal/cli/env"
)

// New returns the verb.
func New(e *env.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status TYPE/NAME",
		Short: "Show how far a rollout is, and what it waits for",
		Long: `Show how far the rollout of an object with a history is: what its controller says in
the conditions Updated and HistoryHealthy, how many children belong to which revision and how many of these are available, and
which child is not, with the check that it fails.

CURRENT marks the revision that the object asks for. PASSING counts the children that exist, are not terminating and have passed
the checks of their kind for minReadySeconds: Ready for pods of a workload, the controller's statusChecks for the children
of a composite parent. Children of a kind that is not rolled out belong to no revision. It is one look, not a watch; the
exit code does not say whether the rollout is complete, -o json does.`,
		Example: `  # Is it done, and if not, why?
  cairn status ds/web

  # A parent of a CompositeController, for a script
  cairn status catset/nap -o json`,
		Args: func(_ *cobra.Command, args []string) error { return env.OneObject(args) },
	}
	output := env.AddOutput(cmd.Flags(), "json", "yaml", "name")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		format, err := output.Format()
		if err != nil {
			return err
		}
		return run(cmd.Context(), e, args, format)
	}
	return cmd
}

func run(ctx context.Context, e *env.Env, args []string, format string) error {
	inspector, parent, err := e.Open(args)
	if err != nil {
		return err
	}
	s, err := inspector.Status(ctx, parent, e.Clock.Now())
	if err != nil {
		return err
	}
	e.Warn(s.Warnings...)
	return show(e.Out, s, format)
}
