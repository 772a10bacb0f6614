// Package undo is the verb "cairn undo": it has package inspect plan and carry out an undo, and prints the result.
package undo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/inspect"
	"github.com/cairn-dev/cairn/internal/cli/env"
	"github.com/cairn-dev/cairn/internal/cli/follow"
)

// options are what the command line says.
type options struct {
	number   int64  // 0: previous, unless there is a name
	name     string // of a revision object
	lastGood bool
	// dryRun is one of the values of --dry-run.
	dryRun             string
	yes, force, reveal bool
	format             string
}

// The values of --dry-run.
const (
	onServer = "server"
	onClient = "client"
	noDryRun = "none"
)

// New returns the verb.
func New(e *env.Env) *cobra.Command {
	var o options
	var revision, to string
	cmd := &cobra.Command{
		Use:   "undo TYPE/NAME [--to-revision N | --to last-good]",
		Short: "Bring an object back to an earlier revision",
		Long: `Bring an object of any kind that keeps a history back to an earlier revision: by default to the
newest one that differs from the spec as it is now.

What a revision records is restored as a whole, so a field that was added since is removed; everything else stays as
it is. A DaemonSet or StatefulSet records its template, and the number of replicas stays. A composite parent records what
the fieldPaths of its controller say; if that is all of spec, the scale goes back too, and that is said. The controller
then replaces the children, under the object's own update strategy. If the spec changes while this command runs, nothing
is done. If the undo would change nothing, that is said, and the exit code is 0.

--to last-good goes back to the newest revision to which a rollout was once complete, as controllers of cairn note it, or whose
children, one at least, have all been available for 30 seconds.

The API server is asked first, by a dry run, what it would store. On a terminal that is shown, and you are asked; --yes
answers the question. A warning names who else writes the object and would take the undo back: Helm, Argo CD, Flux, an
autoscaler, kubectl apply. Another one names each object that the restored pods need and that does not exist. A revision
whose name does not go with its content was perhaps not made by a controller: it is refused without --force. Values of
Secrets are masked, and values of environment variables that are called like passwords.`,
		Example: `  # What would change?
  cairn undo ds/web --dry-run=server

  # Back to the revision before
  cairn undo ds/web

  # A StatefulSet, back to revision 2
  cairn undo sts/db --to-revision 2

  # Out of a rollout that is stuck, whatever was tried since
  cairn undo deploy/api --to last-good

  # Back, and wait until the rollout is over
  cairn undo ds/web --wait --timeout 5m

  # In a script
  cairn undo catset/nap --yes`,
		Args: func(_ *cobra.Command, args []string) error { return env.OneObject(args) },
	}
	cmd.Flags().StringVar(&revision, "to-revision", "",
		"number, or object name, of the revision to go back to (default: the newest that differs from the spec)")
	cmd.Flags().StringVar(&to, "to", "", `"last-good" is the newest revision that differs from the spec and is known to be good`)
	cmd.Flags().StringVar(&o.dryRun, "dry-run", noDryRun,
		`"server" has the API server say what would change, "client" computes it here; neither changes anything`)
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&o.force, "force", false, "go back also to a revision that perhaps no controller made")
	cmd.Flags().BoolVar(&o.reveal, "show-secrets", false, "do not mask secrets in what is shown")
	wait := follow.AddWait(cmd.Flags())
	output := env.AddOutput(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var err error
		if o.format, err = output.Format(); err != nil {
			return err
		}
		if err := o.parse(revision, to); err != nil {
			return err
		}
		if err := wait.Check(o.dryRun != noDryRun); err != nil {
			return err
		}
		if err := run(cmd.Context(), e, args, o); err != nil || !wait.Asked {
			return err
		}
		return wait.Object(cmd.Context(), e, args, o.format)
	}
	return cmd
}

func (o *options) parse(revision, to string) error {
	switch o.dryRun {
	case noDryRun, onServer, onClient:
	default:
		return env.Usagef("there is no --dry-run=%s; there are: none, server, client", o.dryRun)
	}
	switch {
	case to != "" && revision != "":
		return env.Usagef("--to and --to-revision are mutually exclusive")
	case to == "last-good":
		o.lastGood = true
		return nil
	case to != "":
		return env.Usagef("there is no --to=%s; there is: last-good (--to-revision names a revision)", to)
	case revision == "":
		return nil
	}
	var err error
	o.number, o.name, err = env.Revision("to-revision", revision) // 0 is kubectl's word for "the previous one"
	return err
}

func run(ctx context.Context, e *env.Env, args []string, o options) error {
	inspector, parent, err := e.Open(args)
	if err != nil {
		return err
	}
	if o.reveal {
		inspector = inspector.ShowSecrets()
	}
	plan, err := o.plan(ctx, inspector, parent, e.Clock.Now())
	var r result
	if err == nil {
		e.Warn(plan.Warnings...)
		plan.Force = o.force
		r, err = carryOut(ctx, e, inspector, plan, o)
	}
	var nothing *inspect.NothingToUndoError
	if errors.As(err, &nothing) && nothing.To != nil {
		return show(e, result{nothing: nothing}, o)
	}
	if r.plan == nil {
		return err
	}
	return errors.Join(show(e, r, o), err)
}

func (o *options) plan(ctx context.Context, i *inspect.Inspector, parent client.Object, now time.Time) (*inspect.Undo, error) {
	switch {
	case o.lastGood:
		return i.PlanUndoLastGood(ctx, parent, now)
	case o.name != "":
		return i.PlanUndoTo(ctx, parent, o.name)
	}
	return i.PlanUndo(ctx, parent, o.number)
}

// carryOut carries a plan out, after a dry run that shows the object that would be stored. A dry run that the user
// asked for has a result even if the undo itself would be refused: the error is the reason.
func carryOut(ctx context.Context, e *env.Env, i *inspect.Inspector, plan *inspect.Undo, o options) (result, error) {
	if o.dryRun == onClient {
		warnPrivileges(e, plan.To, plan.Privileges)
		return result{plan: plan, done: &inspect.Applied{DryRun: true, Diff: plan.Diff, Privileges: plan.Privileges}}, plan.Planted()
	}
	tried, err := i.Apply(ctx, plan, true)
	switch {
	case err == nil:
	case o.dryRun == noDryRun && apierrors.IsBadRequest(err): // a webhook that has side effects refuses dry runs
		e.Warn(fmt.Sprintf("The API server could not say beforehand what it would store: %v.", err))
		tried = &inspect.Applied{Diff: plan.Diff, Privileges: plan.Privileges}
	default:
		return result{}, err
	}
	warnPrivileges(e, plan.To, tried.Privileges) // this may be the last chance to stop it
	if tried.Altered != "" {
		e.Warn(fmt.Sprintf("Admission changes %s: what is stored is not what the revision holds.", plan.To))
		e.PrintDiff(e.ErrOut, tried.Altered)
	}
	if o.dryRun == onServer {
		return result{plan: plan, done: tried}, plan.Planted()
	}
	if err := plan.Planted(); err != nil {
		return result{}, err
	}
	if !o.yes && e.Interactive() {
		e.PrintDiff(e.ErrOut, tried.Diff)
		fmt.Fprintln(e.ErrOut, stakes(ctx, e, plan))
		sure, err := e.Confirm(fmt.Sprintf("Bring %s back to %s?", plan.Parent, plan.To))
		if err != nil {
			return result{}, err
		}
		if !sure {
			fmt.Fprintln(e.ErrOut, "Nothing was changed.")
			return result{}, &env.ExitError{Status: env.Failed}
		}
	}
	done, err := i.Apply(ctx, plan, false)
	if err != nil {
		return result{}, err
	}
	e.Warn(done.Warnings...)
	return result{plan: plan, done: done}, nil
}

// stakes says where an undo is carried out, what is replaced, and how it is taken back.
func stakes(ctx context.Context, e *env.Env, plan *inspect.Undo) string {
	var out string
	if where := e.Where(); where != "" {
		out = "In " + where + ". "
	}
	if replaced, of := plan.Replaced(ctx); of != "" {
		out += fmt.Sprintf("%d %s are of another revision, and will be replaced. ", replaced, of)
	}
	if from := plan.From; from != nil {
		which := env.Number(from.Number)
		if from.Number == 0 {
			which = from.Name
		}
		out += fmt.Sprintf("To take it back: %s undo %s --to-revision %s", e.Name, plan.Parent, which)
	}
	return strings.TrimSpace(out)
}

func warnPrivileges(e *env.Env, to inspect.Entry, privileges []string) {
	for _, p := range privileges {
		e.Warn(fmt.Sprintf("With %s, %s.", to, p))
	}
}
