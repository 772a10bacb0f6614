package cli_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/cairn-dev/cairn/internal/cli"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestMain makes the test binary double as cairn, for the scripts.
func TestMain(m *testing.M) {
	cairn := func() {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		os.Exit(cli.Process(ctx, os.Args, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}, "v0.0.0-test"))
	}
	testscript.Main(m, map[string]func(){"cairn": cairn, "kubectl-cairn": cairn})
}

// TestScripts runs what needs no cluster, as processes: exit codes and streams are the real ones.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *update,
		Setup: func(env *testscript.Env) error {
			cairn, err := exec.LookPath("cairn")
			env.Setenv("CAIRN", cairn)
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("KUBECONFIG", env.WorkDir+"/no-kubeconfig")
			return err
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
		},
	})
}

// exits runs a program and wants this exit code: exits CODE PROGRAM [ARGS].
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARGS]")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := "0"
	if err != nil {
		code = "-1"
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			code = strconv.Itoa(exit.ExitCode())
		}
	}
	if code != args[0] {
		ts.Fatalf("%v ended with %s, want %s (%v)", args[1:], code, args[0], err)
	}
}
