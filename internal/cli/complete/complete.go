// Package complete says what a shell may complete: kinds, names of objects, revisions, and the values of flags. The
// shells' scripts come from "cairn completion"; they call the program back, and cobra calls what is here.
//
// What may not come in: an error that a user sees. Somebody who presses TAB gets suggestions or none.
package complete

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/cairn-dev/cairn/inspect"
	"github.com/cairn-dev/cairn/internal/cli/env"
)

// patience is how long somebody who pressed TAB waits for a cluster.
const patience = 3 * time.Second

// Live is the word for an object as it is now, where a revision can be named.
const Live = "live"

const none = cobra.ShellCompDirectiveNoFileComp

// Attach makes root and its verbs complete: arguments that name an object, arguments and flags that name a revision,
// output formats, and what the kubeconfig has. It looks at the verbs' usage lines and flags, so that a verb needs to do
// nothing.
func Attach(root *cobra.Command, e *env.Env) {
	c := &completer{e}
	for name, values := range map[string]cobra.CompletionFunc{
		"context": c.contexts, "cluster": c.clusters, "user": c.users, "namespace": c.namespaces,
	} {
		_ = root.RegisterFlagCompletionFunc(name, values) // the flag exists: package env adds kubectl's
	}
	for _, cmd := range root.Commands() {
		if strings.Contains(cmd.Use, "TYPE/NAME") {
			cmd.ValidArgsFunction = c.arguments
		}
		for _, flag := range []string{"revision", "to-revision"} {
			if cmd.Flags().Lookup(flag) != nil {
				_ = cmd.RegisterFlagCompletionFunc(flag, c.revisionFlag)
			}
		}
		if flag := cmd.Flags().Lookup("output"); flag != nil {
			_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(env.Offered(flag), none))
		}
		if flag := cmd.Flags().Lookup("dry-run"); flag != nil {
			_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]cobra.Completion{"none", "server"}, none))
		}
	}
}

type completer struct{ *env.Env }

// arguments completes TYPE/NAME, or TYPE NAME, and revisions behind it where the verb takes some.
func (c *completer) arguments(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, stop := quick(cmd)
	defer stop()
	object := len(args)
	if object > 0 && !strings.Contains(args[0], "/") {
		object-- // TYPE NAME
	}
	switch {
	case len(args) == 0:
		return c.objects(ctx, begun)
	case object == 0:
		return c.named(ctx, args[0], "", begun), none
	case strings.Contains(cmd.Use, "[A]") && object <= 2: //nolint:mnd // A and B
		live := cobra.CompletionWithDesc(Live, "the object as it is now")
		return append(c.revisions(ctx, args[:len(args)-object+1]), live), cobra.ShellCompDirectiveDefault // a file, too
	}
	return nil, none
}

// objects completes the first argument: a kind, and behind the slash a name.
func (c *completer) objects(ctx context.Context, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if kind, name, slash := strings.Cut(begun, "/"); slash {
		return c.named(ctx, kind, kind+"/", name), none
	}
	resources, err := c.Resources()
	if err != nil {
		return nil, none
	}
	var out []cobra.Completion
	for _, r := range resources {
		if strings.HasPrefix(r, begun) {
			out = append(out, r+"/")
		}
	}
	return out, none | cobra.ShellCompDirectiveNoSpace
}

// named returns the names of a kind's objects that start with begun, each behind prefix.
func (c *completer) named(ctx context.Context, kind, prefix, begun string) []cobra.Completion {
	names, err := c.Names(ctx, kind)
	if err != nil {
		return nil
	}
	var out []cobra.Completion
	for _, name := range names {
		if strings.HasPrefix(name, begun) {
			out = append(out, prefix+name)
		}
	}
	return out
}

// revisionFlag completes a flag that names a revision of the object that the arguments name.
func (c *completer) revisionFlag(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, stop := quick(cmd)
	defer stop()
	if len(args) > 1 && strings.Contains(args[0], "/") {
		args = args[:1]
	}
	return c.revisions(ctx, args), none | cobra.ShellCompDirectiveKeepOrder
}

// revisions returns the revisions of an object, newest first, each with what a user knows it by.
func (c *completer) revisions(ctx context.Context, object []string) []cobra.Completion {
	if env.OneObject(object) != nil {
		return nil
	}
	inspector, parent, err := c.Open(object)
	if err != nil {
		return nil
	}
	h, err := inspector.History(ctx, parent)
	if err != nil {
		return nil
	}
	var out []cobra.Completion
	for _, e := range slices.Backward(h.Entries) {
		name := e.Name
		if _, err := h.Find(e.Number); err == nil && e.Number > 0 {
			name = env.Number(e.Number)
		}
		out = append(out, cobra.CompletionWithDesc(name, c.about(e)))
	}
	return out
}

func (c *completer) about(e inspect.Entry) string {
	words := []string{e.Name}
	if e.Current {
		words = append(words, "current")
	}
	words = append(words, fmt.Sprintf("made %s ago", duration.HumanDuration(c.Clock.Now().Sub(e.Created))))
	if e.ChangeCause != "" {
		words = append(words, e.ChangeCause)
	}
	return strings.Join(words, ", ")
}

func quick(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	return context.WithTimeout(ctx, patience)
}
