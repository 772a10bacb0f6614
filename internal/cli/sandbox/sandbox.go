// Package sandbox is the verb "cairn sandbox". It hands over to another binary, because the sandbox embeds a whole
// control plane that neither this binary nor this module carries.
package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/cairn-dev/cairn/internal/cli/env"
)

// binary is what the verb hands over to.
const binary = "cairn-sandbox"

// New returns the verb.
func New(*env.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "sandbox [FLAGS]",
		Short: "Run Kubernetes in one process, with simulated nodes",
		Long: `Run etcd, kube-apiserver, kube-scheduler, the Kubernetes controllers, simulated nodes and cairn's manager in one
process, until Ctrl-C. All flags go to the binary cairn-sandbox, which lies beside this one or in the PATH.`,
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			path, err := find()
			if err != nil {
				return err
			}
			// The sandbox takes this process over, so that signals and the exit code are its own.
			return fmt.Errorf("run %s: %w", path, syscall.Exec(path, append([]string{binary}, args...), os.Environ()))
		},
	}
}

// find looks beside the running binary, where "make build" puts it, and then in the PATH.
func find() (string, error) {
	self, err := os.Executable()
	if err == nil {
		if self, err = filepath.EvalSymlinks(self); err == nil {
			beside := filepath.Join(filepath.Dir(self), binary)
			if path, err := exec.LookPath(beside); err == nil {
				return path, nil
			}
		}
	}
	path, err := exec.LookPath(binary)
	if err != nil {
		return "", errors.New(binary + ` is neither beside this binary nor in the PATH; "make build" makes it`)
	}
	return path, nil
}
