// Package annotate is the verb "cairn annotate": it has package inspect write why a change was made, and prints the
// result.
package annotate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cairn-dev/cairn/inspect"
	"github.com/cairn-dev/cairn/internal/cli/env"
)

// report is a result as json and yaml show it. Scripts read these: fields may be added, and never renamed.
type report struct {
	env.Header

	Parent   env.Parent `json:"parent"`
	Revision *env.Ref   `json:"revision"`
	Cause    string     `json:"cause"`
	Changed  bool       `json:"changed"`
}

// New returns the verb.
func New(e *env.Env) *cobra.Command {
	var which string
	cmd := &cobra.Command{
		Use:   `annotate TYPE/NAME "CAUSE"`,
		Short: "Say why a revision was made",
		Long: `Write why the object was changed into the revision that it is at now, or into another one. History shows it as the change cause,
and so does kubectl rollout history. The object itself is not written, so the next revision does not inherit the cause.
An empty cause removes it.`,
		Example: `  cairn annotate ds/web "nginx 1.29: CVE-2026-1234"

  # An earlier revision
  cairn annotate catset/nap "the one with more milk" --revision 3`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return env.OneObject(args)
			}
			if object := args[:len(args)-1]; env.OneObject(object) == nil {
				return nil
			}
			if env.OneObject(args) == nil {
				return errors.New(`no cause is given; say it behind the object: cairn annotate TYPE/NAME "CAUSE"`)
			}
			return fmt.Errorf("%q is not one object and a cause; put the cause into quotes", strings.Join(args, " "))
		},
	}
	cmd.Flags().StringVar(&which, "revision", "", "number, or object name, of the revision (default: the current one)")
	output := env.AddOutput(cmd.Flags())
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
		return run(cmd.Context(), e, args[:len(args)-1], args[len(args)-1], find, format)
	}
	return cmd
}

func run(ctx context.Context, e *env.Env, object []string, cause string, find inspect.Find, format string) error {
	inspector, parent, err := e.Open(object)
	if err != nil {
		return err
	}
	done, err := inspector.Annotate(ctx, parent, find, cause)
	if err != nil {
		return err
	}
	switch {
	case env.Encodes(format):
		return env.Encode(e.Out, format, report{
			Header: env.HeaderOf("Annotation"), Parent: env.ParentOf(done.Parent), Revision: env.RefTo(&done.Entry),
			Cause: cause, Changed: done.Changed,
		})
	case format == "name":
		fmt.Fprintln(e.Out, done.Parent)
		return nil
	}
	if !done.Changed {
		fmt.Fprintf(e.Out, "%s of %s has this cause already\n", done.Entry, done.Parent)
		return nil
	}
	fmt.Fprintf(e.Out, "%s of %s annotated\n", done.Entry, done.Parent)
	return nil
}
