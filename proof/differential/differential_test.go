package differential

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/manager"
	"github.com/cairn-dev/cairn/proof/fault"
	"github.com/cairn-dev/cairn/sandbox"
	"github.com/cairn-dev/cairn/sandbox/install"
	"github.com/cairn-dev/cairn/sandbox/sandboxtest"
)

// The cut of make test is one seed. Nightly runs take more.
var (
	seed  = flag.Uint64("differential.seed", 1, "the first seed")
	seeds = flag.Uint64("differential.seeds", 1, "the number of seeds")
	steps = flag.Int("differential.steps", 4, "the number of steps of a program")
)

// workloads is the number of random workloads in each namespace.
const workloads = 10

func TestMain(m *testing.M) {
	ctrl.SetLogger(klog.Background())
	os.Exit(sandboxtest.Main(m, sandbox.Options{Nodes: len(pools), Replaced: sandbox.Kinds()}))
}

// TestNoWorseThanUpstream runs programs until rest after each step, and compares.
func TestNoWorseThanUpstream(t *testing.T) {
	compared := 0
	for s := *seed; s < *seed+*seeds; s++ {
		t.Run(fmt.Sprint("seed ", s), func(t *testing.T) {
			w := newWorld(t, s)
			check := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
				worse, err := w.worse(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, text := range worse {
					t.Errorf("%s\n  replay: cd proof && go test -count=1 ./differential -differential.seed=%d", text, s)
				}
				compared += len(w.workloads)
			}
			check(w.start(t.Context(), workloads))
			for range *steps {
				check(w.step(t.Context()))
			}
		})
	}
	t.Logf("compared %d states of workloads", compared)
}

// newWorld starts the controllers of both namespaces.
func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	s := sandboxtest.Get(t)
	cfg := s.Config()
	cfg.QPS = -1
	c, err := client.New(cfg, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		Client: c, cairn: sandboxtest.Namespace(t, s), upstream: sandboxtest.Namespace(t, s),
		random: rand.New(rand.NewPCG(seed, 0)),
	}
	runCairn(t, s, w.cairn)
	for _, kind := range []string{"daemonset", "statefulset", "replicaset"} {
		cfg, err := s.UpstreamConfig(kind)
		if err != nil {
			t.Fatal(err)
		}
		within(cfg, w.upstream)
		halt, err := s.RunUpstreamWith(context.WithoutCancel(t.Context()), kind, cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(halt)
	}
	return w
}

// runCairn runs the manager under the shipped roles until the test ends.
func runCairn(t *testing.T, s *sandbox.Sandbox, namespace string) {
	t.Helper()
	kinds := []string{"daemonset", "statefulset", "replicaset"}
	cfg, err := install.Roles(t.Context(), s.Config(), kinds, true)
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	within(cfg, namespace)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() {
		done <- manager.Run(ctx, manager.Options{
			Config: cfg, Logger: klog.Background(), Controllers: kinds, AskServer: true,
			MetricsBindAddress: manager.Off, HealthProbeBindAddress: manager.Off,
		})
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Error("the manager does not stop")
		}
	})
}

// within keeps a controller in one namespace.
func within(cfg *rest.Config, namespace string) {
	cfg.Wrap(fault.Within(namespace, "daemonsets", "statefulsets", "replicasets", "pods", "controllerrevisions", "persistentvolumeclaims"))
}
