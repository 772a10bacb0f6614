// Command floor does what a workload controller cannot do without, and nothing else: it watches what such a controller
// watches, with the same informers, creates and deletes pods, one for each name, and writes a status, once a second at
// most. It has no history, no ownership, no plan, and trusts that nobody else writes: it is what the requests, their
// answers and the watches cost anybody.
//
//	floor daemonset|statefulset|replicaset
//
// What may not come in: anything that a controller could leave out.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want one argument, the kind, got %q", args)
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv(clientcmd.RecommendedConfigPathEnvVar))
	if err != nil {
		return err
	}
	config.QPS, config.ContentType = -1, runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	f, err := newFloor(client, args[0])
	if err != nil {
		return err
	}
	return f.run(ctx)
}
