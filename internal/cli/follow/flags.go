package follow

import (
	"context"
	"time"

	"github.com/spf13/pflag"

	"github.com/cairn-dev/cairn/internal/cli/env"
)

// This file is the flags --wait and --timeout of verbs that change an object.

// Wait is what these flags say.
type Wait struct {
	// Asked is --wait, and Timeout is --timeout, 0 for ever.
	Asked   bool
	Timeout time.Duration
}

// AddWait adds the flags.
func AddWait(flags *pflag.FlagSet) *Wait {
	w := &Wait{}
	flags.BoolVar(&w.Asked, "wait", false, "wait until the object is done, a line for each change; ends as cairn status --watch does")
	flags.DurationVar(&w.Timeout, "timeout", 0, "with --wait: how long to wait at most, as in 5m (default: for ever)")
	return w
}

// Check returns an [*env.UsageError] if the flags do not go together.
func (w *Wait) Check(dryRun bool) error {
	switch {
	case w.Asked && dryRun:
		return env.Usagef("--wait and --dry-run: a dry run changes nothing that could be waited for")
	case !w.Asked && w.Timeout != 0:
		return env.Usagef("--timeout is for --wait")
	}
	return nil
}

// Object follows the object that args name, after a verb has changed it. Lines go to the error stream if the output has
// a format.
func (w *Wait) Object(ctx context.Context, e *env.Env, args []string, format string) error {
	o := Options{Timeout: w.Timeout}
	if format != "" {
		o.Lines = e.ErrOut
	}
	return Object(ctx, e, args, o)
}
