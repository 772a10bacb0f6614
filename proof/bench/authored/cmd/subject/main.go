// Program subject is what is measured: subject fleet runs a controller of package builder as docs/library.md makes one,
// subject statefulset runs cairn's StatefulSet controller. It is one program, so that what both have in memory beside
// their objects is the same: garbage is collected more seldom beside more of it. It finds the cluster by KUBECONFIG,
// and serves profiles at CAIRN_BENCH_PPROF.
//
// What may not come in: any other package of sandbox/. It would be in the process that is measured.
package main

import (
	"context"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/cairn-dev/cairn/controllers/statefulset"
	"github.com/cairn-dev/cairn/pass"
)

// subjects are what can be measured: its cache, and what adds its controller.
var subjects = map[string]struct {
	cache cache.Options
	setup func(ctx context.Context, mgr ctrl.Manager) error
}{
	"fleet": {setup: setupFleets},
	"statefulset": {
		// As in cairn's manager.
		cache: cache.Options{DefaultUnsafeDisableDeepCopy: new(true), DefaultTransform: cache.TransformStripManagedFields()},
		setup: func(ctx context.Context, mgr ctrl.Manager) error {
			return statefulset.Setup(ctx, mgr, pass.Options{AskServer: true})
		},
	},
}

func run(name string) error {
	subject, ok := subjects[name]
	if !ok {
		return fmt.Errorf("there is no subject %q", name)
	}
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	addToScheme(scheme)
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme: scheme, Cache: subject.cache,
		Metrics: metricsserver.Options{BindAddress: "0"}, PprofBindAddress: os.Getenv("CAIRN_BENCH_PPROF"),
	})
	if err != nil {
		return err
	}
	ctx := ctrl.SetupSignalHandler()
	if err := subject.setup(ctx, mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func main() {
	if err := run(os.Args[len(os.Args)-1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
