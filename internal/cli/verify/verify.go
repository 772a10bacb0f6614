// Package verify is the verb "cairn verify": it prints what package inspect finds wrong with revisions, and has it put
// right.
package verify

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cairn-dev/cairn/inspect"
	"github.com/cairn-dev/cairn/inspect/verify"
	"github.com/cairn-dev/cairn/internal/cli/env"
)

// options are what the command line says.
type options struct {
	all, fix, yes bool
	format        string
}

// New returns the verb.
func New(e *env.Env) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "verify [TYPE/NAME] [--fix]",
		Short: "Find revisions that are orphaned, repeated, renumbered or planted",
		Long: `Look for what is wrong with the history of one object or, without a name, of all objects in a namespace:

  OrphanRevision   a revision that no object controls
  ParentGone       a revision whose controller does not exist any more
  SameContent      a revision that another one repeats
  SameNumber       two revisions with one number
  NotIntact        a revision whose name does not go with its content: it was adopted, or planted
  Unreadable       a revision whose content cannot be read
  NoRevision       children that come from no revision
  NoControllerRef  an object of an old cluster that names its creator in an annotation only

Nothing is changed. With --fix, what can be put right without losing anything is listed, and done when it is confirmed, each with the
UID and the version that was looked at as preconditions. The exit code is 1 if something is wrong and was not put right,
and 2 if that could not be found out.`,
		Example: `  # Is everything in this namespace as it should be?
  cairn verify

  # One object
  cairn verify ds/web

  # Put right what can be
  cairn verify --fix`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return env.OneObject(args)
		},
	}
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "look at all namespaces")
	cmd.Flags().BoolVar(&o.fix, "fix", false, "put right what can be, after a question")
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "with --fix: do not ask")
	output := env.AddOutput(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var err error
		if o.format, err = output.Format(); err != nil {
			return err
		}
		if len(args) > 0 && o.all {
			return env.Usagef("--all-namespaces and the name of one object are mutually exclusive")
		}
		if o.yes && !o.fix {
			return env.Usagef("--yes answers the question of --fix, which is not given")
		}
		return run(cmd.Context(), e, args, o)
	}
	return cmd
}

func run(ctx context.Context, e *env.Env, args []string, o options) error {
	inspector, found, err := look(ctx, e, args, o.all)
	if err != nil {
		return &env.ExitError{Status: env.Undecided, Err: err}
	}
	e.Warn(found.Warnings...)
	if err := show(e.Out, found, o.format); err != nil {
		return err
	}
	if len(found.Problems) == 0 {
		return nil
	}
	if !o.fix {
		return &env.ExitError{Status: env.Failed}
	}
	return repair(ctx, e, inspector, found.Problems, o.yes)
}

func look(ctx context.Context, e *env.Env, args []string, all bool) (*inspect.Inspector, *verify.Verified, error) {
	if len(args) > 0 {
		inspector, parent, err := e.Open(args)
		if err != nil {
			return nil, nil, err
		}
		found, err := verify.Parent(ctx, inspector, parent)
		return inspector, found, err
	}
	inspector, namespace, err := e.Connect()
	if err != nil {
		return nil, nil, err
	}
	if all {
		namespace = ""
	}
	kinds, err := e.Kinds(true)
	if err != nil {
		return nil, nil, err
	}
	found, err := verify.Namespace(ctx, inspector, namespace, kinds, e.Clock.Now())
	return inspector, found, err
}

// repair shows the plan, asks, and carries it out. What fails does not keep the rest from being done.
func repair(ctx context.Context, e *env.Env, inspector *inspect.Inspector, problems []verify.Problem, yes bool) error {
	var plan []verify.Problem
	for _, p := range problems {
		if p.Fix != nil {
			plan = append(plan, p)
		}
	}
	if len(plan) == 0 {
		fmt.Fprintln(e.ErrOut, "Nothing of this can be put right without knowing more.")
		return &env.ExitError{Status: env.Failed}
	}
	fmt.Fprintln(e.ErrOut, "To be done:")
	for _, p := range plan {
		fmt.Fprintf(e.ErrOut, "  %s\n", p.Fix.Message)
	}
	if !yes {
		sure, err := e.Confirm("Apply these fixes?")
		if err != nil {
			return err
		}
		if !sure {
			return &env.ExitError{Status: env.Failed}
		}
	}
	var errs []error
	done := 0
	for _, p := range plan {
		if err := verify.Repair(ctx, inspector.Client(), p, false); err != nil {
			errs = append(errs, err)
			continue
		}
		done++
	}
	fmt.Fprintf(e.ErrOut, "%d of %d problems put right\n", done, len(problems))
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if done < len(problems) {
		return &env.ExitError{Status: env.Failed}
	}
	return nil
}
