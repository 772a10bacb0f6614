// Command cairn-sandbox runs Kubernetes in one process: etcd, the API server, the scheduler, the controllers and a few
// simulated nodes, with cairn's manager in the place of the upstream controllers it replaces.
package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/cairn-dev/cairn/sandbox"
	"github.com/cairn-dev/cairn/sandbox/install"
)

// started is when the process began, but for the tenth of a second that the packages' variables take.
var started = time.Now()

// examples are what the greeting says to apply. They are copies of those in the folder examples of the repository, so
// that the binary works from anywhere.
//
//go:embed examples/*.yaml
var examples embed.FS

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	go heed(cancel)
	err := command().ExecuteContext(ctx)
	cancel()
	if err != nil {
		fmt.Fprintf(os.Stderr, "cairn-sandbox: %s\n", strings.ReplaceAll(err.Error(), "\n", "; "))
		os.Exit(exitCode(err))
	}
}

// usageError says that the command line is wrong.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// exitCode is 2 if trying again with the same command line is pointless, as for cairn.
func exitCode(err error) int {
	if _, usage := errors.AsType[usageError](err); usage {
		return 2
	}
	return 1
}

// sensible reports values that no sandbox can have, before anything starts.
func sensible(o sandbox.Options) error {
	switch {
	case o.Nodes < 0:
		return usageError{fmt.Errorf("--nodes=%d: there cannot be %[1]d nodes", o.Nodes)}
	case o.ReadyAfter < 0:
		return usageError{fmt.Errorf("--ready-after=%s: a pod cannot be ready after %[1]s", o.ReadyAfter)}
	}
	for _, kind := range o.Upstream {
		if !slices.Contains(sandbox.Kinds(), kind) {
			return usageError{fmt.Errorf("--upstream=%s: unknown kind %[1]q; there are: %[2]s", kind, strings.Join(sandbox.Kinds(), ", "))}
		}
	}
	return nil
}

// heed stops the sandbox at the first signal. A second one ends the process at once, as if nobody had heeded it, but
// leaves no credentials behind.
func heed(stop func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	<-signals
	stop()
	again := <-signals
	sandbox.Abandon()
	signal.Reset()
	if s, ok := again.(syscall.Signal); ok {
		_ = syscall.Kill(os.Getpid(), s)
	}
}

func command() *cobra.Command {
	var o sandbox.Options
	var installed string
	cmd := &cobra.Command{
		Use:   "cairn-sandbox",
		Short: "Run Kubernetes in one process, with simulated nodes",
		Long: `Run etcd, kube-apiserver, kube-scheduler, the Kubernetes controllers, simulated nodes and cairn's manager in one
process, on the loopback address, until Ctrl-C.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.NoArgs(cmd, args); err != nil {
				return usageError{err}
			}
			return nil
		},
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := sensible(o); err != nil {
				return err
			}
			if cmd.Flags().Changed("nodes") && o.Nodes == 0 {
				o.Nodes = sandbox.NoNodes
			} else if !cmd.Flags().Changed("nodes") {
				o.Nodes = 0 // keep the nodes of a data directory
			}
			useManager(&o, installed)
			return run(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	flags := cmd.Flags()
	flags.IntVar(&o.Nodes, "nodes", sandbox.DefaultNodes, "number of simulated nodes; a data directory keeps its nodes when this is not given")
	flags.DurationVar(&o.ReadyAfter, "ready-after", 0,
		"time that pods take to be Ready once they run, as 5s, to see the middle of a rollout; a pod's annotation "+
			sandbox.ReadyAfterAnnotation+" comes first")
	flags.StringVar(&o.DataDir, "data-dir", "", "directory that keeps the state between runs (default: a temporary one)")
	flags.IntVar(&o.Port, "port", 0, "port of the API server on 127.0.0.1 (default: any free port)")
	flags.StringSliceVar(&o.Upstream, "upstream", nil, "kinds to leave to the upstream controllers: "+strings.Join(sandbox.Kinds(), ", "))
	flags.StringVar(&installed, "installed", "", "run the manager as it is installed: this program, as a process with the token and the "+
		"roles of its service account; without a value the cairn beside cairn-sandbox")
	flags.Lookup("installed").NoOptDefVal = installedHere
	flags.StringVar(&o.FeatureGates, "feature-gates", "", "features of Kubernetes to turn on or off, such as StatefulSetRecreateStrategy=true")
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "file to write the credentials to (default: in the data directory)")
	return cmd
}

// run runs the sandbox until ctx is done. That is no error.
func run(ctx context.Context, o sandbox.Options, out io.Writer) error {
	// Without a logger controller-runtime complains on the terminal. The sandbox sends klog to its log.
	ctrllog.SetLogger(klog.Background())
	o.Progress = func(step string) { report(out, step) }
	s, err := sandbox.Start(ctx, o)
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return nil // Ctrl-C before it was ready
		}
		return err
	}
	err = takeKinds(ctx, s)
	if err == nil {
		report(out, "ready")
		err = greet(out, s, o)
	}
	if err == nil {
		<-s.Done()
		err = s.Err()
	}
	if err := errors.Join(err, s.Stop(context.WithoutCancel(ctx))); err != nil {
		return err
	}
	report(out, "stopped")
	return nil
}

// takeKinds returns when the API server takes objects of cairn's own kinds. The manager installs them too, but in its
// own time, and what is called ready takes everybody's manifests.
func takeKinds(ctx context.Context, s *sandbox.Sandbox) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	err := install.CRDs(ctx, s.Config())
	if ctx.Err() != nil {
		return nil // it ends, and knows why
	}
	return err
}

// report prints a line with the time since the start of the process.
func report(out io.Writer, what string) {
	fmt.Fprintf(out, "%5.1fs  %s\n", time.Since(started).Seconds(), what)
}

// greet tells who serves what, and how to use the sandbox.
func greet(out io.Writer, s *sandbox.Sandbox, o sandbox.Options) error {
	dir := filepath.Join(s.DataDir(), "examples")
	if err := os.RemoveAll(dir); err != nil { // those of an earlier run
		return fmt.Errorf("write the examples: %w", err)
	}
	of, err := fs.Sub(examples, "examples")
	if err == nil {
		err = os.CopyFS(dir, of)
	}
	if err != nil {
		return fmt.Errorf("write the examples: %w", err)
	}
	_, err = fmt.Fprintf(out, `
Kubernetes %[1]s on %[2]s
%[3]s
Ctrl-C stops it. In another terminal (bin/kubectl serves where there is no kubectl):

  export KUBECONFIG=%[4]s
  kubectl create -f %[5]s
  kubectl rollout status daemonset/web
  kubectl set image daemonset/web web=nginx:1.29
  kubectl rollout status daemonset/web
  cairn history ds/web
  cairn undo ds/web
  kubectl set image statefulset/db db=postgres:19
  cairn history sts/db
  kubectl set image deployment/api api=nginx:1.29
  kubectl rollout undo deployment/api

CompositeControllers and DecoratorControllers run as well, with webhooks on this machine: examples/README.md.

`, sandbox.KubernetesVersion, s.Config().Host, served(o), s.Kubeconfig(), dir)
	return err
}

// served says which controllers are whose.
func served(o sandbox.Options) string {
	theirs := slices.DeleteFunc(sandbox.Kinds(), func(kind string) bool {
		return slices.Contains(o.Replaced, kind) && !slices.Contains(o.Upstream, kind)
	})
	ours := slices.DeleteFunc(sandbox.Kinds(), func(kind string) bool { return slices.Contains(theirs, kind) })
	var out []string
	for _, of := range []struct {
		who   string
		kinds []string
	}{{"cairn", ours}, {"the upstream controllers", theirs}} {
		if len(of.kinds) > 0 {
			out = append(out, "Served by "+of.who+": "+strings.Join(of.kinds, ", "))
		}
	}
	return strings.Join(out, "\n")
}
