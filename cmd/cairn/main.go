// Command cairn looks at the revision history of Kubernetes resources, brings them back, and runs the controllers that
// record it. All of it is in package cli.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // credentials of every kind that a kubeconfig may name

	"github.com/cairn-dev/cairn/internal/cli"
)

// version is set by the linker: -X main.version=v1.2.3. Without, it is that of the module, which "go install" knows.
var version = ""

func release() string {
	if version != "" {
		return version
	}
	if built, ok := debug.ReadBuildInfo(); ok && built.Main.Version != "(devel)" && built.Main.Version != "" {
		return built.Main.Version
	}
	return "dev"
}

func main() {
	// The first signal ends what is running in good order; a second one ends the process at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	os.Exit(cli.Process(ctx, os.Args, streams, release()))
}
