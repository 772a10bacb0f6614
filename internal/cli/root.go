// Package cli is the command line: one folder for each verb, which reads flags and prints. What a verb prints comes
// from package inspect, and "cairn manager" runs package manager.
//
// What may not come in: a decision about any object, a switch over kinds.
package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/cairn-dev/cairn/internal/cli/annotate"
	"github.com/cairn-dev/cairn/internal/cli/complete"
	"github.com/cairn-dev/cairn/internal/cli/diff"
	"github.com/cairn-dev/cairn/internal/cli/env"
	"github.com/cairn-dev/cairn/internal/cli/history"
	"github.com/cairn-dev/cairn/internal/cli/manager"
	"github.com/cairn-dev/cairn/internal/cli/roles"
	"github.com/cairn-dev/cairn/internal/cli/sandbox"
	"github.com/cairn-dev/cairn/internal/cli/status"
	"github.com/cairn-dev/cairn/internal/cli/tree"
	"github.com/cairn-dev/cairn/internal/cli/undo"
	"github.com/cairn-dev/cairn/internal/cli/verify"
	"github.com/cairn-dev/cairn/internal/cli/version"
)

// Main runs the command line and returns the exit code; "cairn help exit-codes" lists them. args are without the name
// of the program, release is what "cairn version" says. Ending ctx ends it: a manager then stops as asked, and returns
// 0.
func Main(ctx context.Context, args []string, streams genericiooptions.IOStreams, release string) int {
	return run(ctx, args, env.New(streams, release))
}

// plugin is what the program is called as a plugin of kubectl.
const plugin = "kubectl-cairn"

// Process is [Main] for a process that is nothing but the command line: it turns off klog, which is the process's,
// where errors are printed. args begin with the name of the program; as kubectl-cairn it is a plugin of kubectl, and
// speaks of itself as such.
func Process(ctx context.Context, args []string, streams genericiooptions.IOStreams, release string) int {
	e := env.New(streams, release)
	name, args := filepath.Base(args[0]), args[1:]
	if strings.TrimSuffix(name, ".exe") == plugin {
		e.Name = "kubectl cairn"
	}
	e.Quiet = func() { klog.SetLogger(logr.Discard()) }
	return run(ctx, args, e)
}

func run(ctx context.Context, args []string, e *env.Env) int {
	root := NewRoot(e)
	root.SetArgs(diff.Arguments(args))
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = e.Written()
	}
	if err != nil {
		env.Report(e.ErrOut, e.Explain(err))
	}
	return env.Code(err)
}

// NewRoot returns the command line. Whatever cobra finds wrong with arguments and flags becomes an [*env.UsageError].
func NewRoot(e *env.Env) *cobra.Command {
	root := &cobra.Command{
		Use:         "cairn",
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: e.Name},
		Short:       "Revision history for Kubernetes workloads and custom resources",
		Long: `cairn gives Kubernetes resources a revision history, and a way back.

It finds the cluster as kubectl does: --kubeconfig, KUBECONFIG, --context, --namespace.`,
		Version:       version.Text(e),
		SilenceErrors: true,
		SilenceUsage:  true,
		// Without this, a mistyped verb would print the help and succeed.
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				return fmt.Errorf("there is no verb %q; did you mean %s?", args[0], strings.Join(near, " or "))
			}
			return fmt.Errorf("there is no verb %q", args[0])
		},
		SuggestionsMinimumDistance: 2,
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(e.In)
	root.SetOut(e.Out)
	root.SetErr(e.ErrOut)
	e.Cluster.AddFlags(root.PersistentFlags())
	root.AddCommand(
		history.New(e), diff.New(e), undo.New(e), status.New(e), tree.New(e), verify.New(e), annotate.New(e),
		manager.New(e), roles.New(e), sandbox.New(e), version.New(e),
	)
	root.AddCommand(topic("exit-codes", "What the exit code says", env.ExitCodes), options(root))
	root.SetVersionTemplate("{{.Version}}")
	root.SetHelpCommand(help(root))
	root.SetUsageTemplate(usageTemplate)
	root.SetHelpTemplate(helpTemplate)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &env.UsageError{Err: err, See: cmd.CommandPath()}
	})
	for _, cmd := range append(root.Commands(), root) {
		cmd.DisableFlagsInUseLine = true
		cmd.Long = folded(cmd.Long)
		strict(cmd)
	}
	complete.Attach(root, e)
	return root
}

// strict makes what is wrong with cmd's arguments a usage error.
func strict(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return &env.UsageError{Err: err, See: cmd.CommandPath()}
			}
			return nil
		}
	}
}

// topic returns a page of help that is no verb.
func topic(name, short, text string) *cobra.Command {
	return &cobra.Command{Use: name, Short: short, Long: text}
}

// help is cobra's verb of that name, but that a topic which does not exist is an error.
func help(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:    "help [VERB]",
		Short:  "Help about a verb, or a topic",
		Hidden: true,
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, unknown, err := root.Find(args)
			if err != nil || len(unknown) > 0 {
				return &env.UsageError{Err: fmt.Errorf("there is no help about %q", strings.Join(args, " ")), See: root.CommandPath()}
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	}
}

// options lists the flags that every verb has. There are too many of them to repeat them in each help.
func options(root *cobra.Command) *cobra.Command {
	cmd := topic("options", "The flags that every verb has", "These flags can be given to every verb:")
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		out := cmd.OutOrStdout()
		fmt.Fprintf(out, "%s\n\n%s", cmd.Long, wrapped(root.PersistentFlags()))
	})
	return cmd
}

// columns is how wide help is.
const columns = 80

func wrapped(flags *pflag.FlagSet) string { return flags.FlagUsagesWrapped(columns) }

// folded returns text with its paragraphs wrapped; what is indented stays as it is.
func folded(text string) string {
	var out, words []string
	flush := func() {
		line := ""
		for _, word := range words {
			if line != "" && len(line)+1+len(word) > columns {
				out, line = append(out, line), ""
			}
			line = strings.TrimPrefix(line+" "+word, " ")
		}
		if line != "" {
			out = append(out, line)
		}
		words = nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		if line != "" && line[0] != ' ' {
			words = append(words, strings.Fields(line)...)
			continue
		}
		flush()
		out = append(out, line)
	}
	flush()
	return strings.Join(out, "\n")
}
