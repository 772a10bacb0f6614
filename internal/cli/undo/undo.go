// Package undo is the verb "cairn undo": it has package inspect plan and carry out an undo, and prints the result.
package undo

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/inspect"
	"github.com/cairn-dev/cairn/internal/cli/env"
	"github.com/cairn-dev/cairn/internal/cli/follow"
)

// options are what the command line says.
type options struct {
	number int64  // 0: previous, unless there is a name
	name   string // of a revision object
	dryRun bool
	format string
}

// New returns the verb.
func New(e *env.Env) *cobra.Command {
	var to, dryRun string
	cmd := &cobra.Command{
		Use:   "undo TYPE/NAME [--to-revision N]",
		Short: "Bring an object back to an earlier revision",
		Long: `Bring an object of any kind that keeps a history back to an earlier revision: by default to the
newest one that differs from the spec as it is now.

What a revision records is restored as a whole, so a field that was added since is removed; everything else stays as
it is. A DaemonSet or StatefulSet records its template, and the number of replicas stays. A composite parent records what
the fieldPaths of its controller say; if that is all of spec, the scale goes back too, and that is said. The controller
then replaces the children, under the object's own update strategy. If the spec changes while this command runs, nothing
is done. If the undo would change nothing, that is said, and the exit code is 0.`,
		Example: `  # What would change?
  cairn undo ds/web --dry-run=server

  # Back to the revision before
  cairn undo ds/web

  # A StatefulSet, back to revision 2
  cairn undo sts/db --to-revision 2

  # Back, and wait until the rollout is over
  cairn undo ds/web --wait --timeout 5m

  # A parent of a CompositeController
  cairn undo catset/nap`,
		Args: func(_ *cobra.Command, args []string) error { return env.OneObject(args) },
	}
	cmd.Flags().StringVar(&to, "to-revision", "",
		"number, or object name, of the revision to go back to (default: the newest that differs from the spec)")
	cmd.Flags().StringVar(&dryRun, "dry-run", "none", `"server" has the API server say what would change, and changes nothing`)
	wait := follow.AddWait(cmd.Flags())
	output := env.AddOutput(cmd.Flags(), "json", "yaml", "name")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var o options
		var err error
		if o.format, err = output.Format(); err != nil {
			return err
		}
		if err := o.parse(to, dryRun); err != nil {
			return err
		}
		if err := wait.Check(o.dryRun); err != nil {
			return err
		}
		if err := run(cmd.Context(), e, args, o); err != nil || !wait.Asked {
			return err
		}
		return wait.Object(cmd.Context(), e, args, o.format)
	}
	return cmd
}

func (o *options) parse(to, dryRun string) error {
	switch dryRun {
	case "none":
	case "server":
		o.dryRun = true
	case "client":
		return env.Usagef("--dry-run=client is not offered, because only the API server knows what an undo would change; use --dry-run=server")
	default:
		return env.Usagef("there is no --dry-run=%s; there are: none, server", dryRun)
	}
	if to == "" {
		return nil
	}
	var err error
	o.number, o.name, err = env.Revision("to-revision", to) // 0 is kubectl's word for "the previous one"
	return err
}

func run(ctx context.Context, e *env.Env, args []string, o options) error {
	inspector, parent, err := e.Open(args)
	if err != nil {
		return err
	}
	plan, err := o.plan(ctx, inspector, parent)
	if err == nil {
		e.Warn(plan.Warnings...)
		if !o.dryRun {
			// Before the undo: this may be the last chance to stop it.
			warnPrivileges(e, plan.To, plan.Privileges)
		}
		var done *inspect.Applied
		if done, err = inspector.Apply(ctx, plan, o.dryRun); err == nil {
			if o.dryRun {
				warnPrivileges(e, plan.To, done.Privileges)
			}
			return show(e.Out, result{plan: plan, done: done}, o)
		}
	}
	var nothing *inspect.NothingToUndoError
	if errors.As(err, &nothing) && nothing.To != nil {
		return show(e.Out, result{nothing: nothing}, o)
	}
	return err
}

func (o *options) plan(ctx context.Context, i *inspect.Inspector, parent client.Object) (*inspect.Undo, error) {
	if o.name != "" {
		return i.PlanUndoTo(ctx, parent, o.name)
	}
	return i.PlanUndo(ctx, parent, o.number)
}

func warnPrivileges(e *env.Env, to inspect.Entry, privileges []string) {
	for _, p := range privileges {
		e.Warn(fmt.Sprintf("With %s, %s.", to, p))
	}
}
