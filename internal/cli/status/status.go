// Package status is the verb "cairn status": it prints what package inspect says about the rollout of one object.
package status

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/inspect"
	"github.com/cairn-dev/cairn/inspect/status"
	"github.com/cairn-dev/cairn/internal/cli/env"
	"github.com/cairn-dev/cairn/internal/cli/follow"
)

// New returns the verb.
func New(e *env.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status TYPE/NAME ...",
		Short: "Show whether objects are done, and what they wait for",
		Long: `Show whether an object of any kind is what its spec asks for and, if it has a history, how far its rollout is: what its
controller says in the conditions Updated and HistoryHealthy, how many children belong to which revision and how many of these
are available, and which child is not, with the check that it fails.

CURRENT marks the revision that the object asks for. AVAILABLE counts the children that exist, are not terminating and have passed
the checks of their kind for minReadySeconds: Ready for pods of a workload, the controller's statusChecks for the children
of a composite parent. Children of a kind that is not rolled out belong to no revision.

An object of a kind that has no history is done, in progress or failed by what its own controller reports: conditions, counters,
phases. Why a pod is not available is said in the words of the component that knows: the scheduler, the kubelet; why a child cannot
be created in those of the quota, policy or webhook that refused it.

Of several objects (TYPE, -l, -A, -f) there is a line for each.

The exit code is 0 if it is done, 2 if in progress, 3 if failed, and 4 if its status does not tell. Of several
objects the worst counts. With --watch the command ends when it is done or has failed, or after --timeout with 124. A
terminal shows a view that changes, a pipe gets a line for each change. Several objects are waited for one after the other.`,
		Example: `  # Is it done, and if not, why?
  cairn status ds/web

  # What is not done, of all in the cluster?
  cairn status deploy,ds,sts -A

  # Wait until it is done, for a script
  cairn status deploy/api --watch --timeout 5m

  # A parent of a CompositeController
  cairn status catset/nap -o json`,
	}
	selection := env.AddSelection(cmd.Flags())
	cmd.Args = func(_ *cobra.Command, args []string) error { return selection.Args(args) }
	var watch bool
	var timeout time.Duration
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "go on until it is done or has failed")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "with --watch: how long to wait at most, as in 5m (default: for ever)")
	output := env.AddOutput(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		format, err := output.Format()
		if err != nil {
			return err
		}
		if !watch && timeout != 0 {
			return env.Usagef("--timeout is for --watch")
		}
		if watch && format != "" {
			return env.Usagef("--watch prints no %s; leave out one of the two", format)
		}
		found, err := e.Select(args, selection)
		if err != nil {
			return err
		}
		if watch {
			return follow.All(cmd.Context(), e, found, follow.Options{Timeout: timeout, View: view})
		}
		return run(cmd.Context(), e, found, format)
	}
	return cmd
}

func run(ctx context.Context, e *env.Env, found *env.Found, format string) error {
	var all []*status.Status
	failed := found.Each(func(i *inspect.Inspector, parent client.Object) error {
		s, err := status.Of(ctx, i, parent, e.Clock.Now())
		if err != nil {
			return err
		}
		if found.One {
			e.Warn(s.Warnings...)
		}
		all = append(all, s)
		return nil
	})
	if len(all) > 0 || failed == nil {
		failed = errors.Join(show(e, found, all, format), failed)
	}
	if failed != nil {
		return failed
	}
	worst := status.Done
	for _, s := range all {
		if slices.Index(status.States, s.State) > slices.Index(status.States, worst) {
			worst = s.State
		}
	}
	return follow.Answer(worst)
}
