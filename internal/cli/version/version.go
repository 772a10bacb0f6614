// Package version is the verb "cairn version".
package version

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/cairn-dev/cairn/internal/cli/env"
)

// New returns the verb.
func New(e *env.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of cairn and of the Go it was built with",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(e.Out, Text(e))
			return err
		},
	}
}

// Text is what is printed.
func Text(e *env.Env) string {
	return fmt.Sprintf("cairn %s (%s %s/%s)\n", e.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
