package cluster_test

import (
	"context"
	"flag"
	"os"
	"testing"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/cairn-dev/cairn/proof/scenario"
	"github.com/cairn-dev/cairn/proof/scenario/cluster"
	"github.com/cairn-dev/cairn/proof/scenario/scenariotest"
	"github.com/cairn-dev/cairn/sandbox"
	"github.com/cairn-dev/cairn/sandbox/sandboxtest"
)

const scripts = "../testdata"

func TestMain(m *testing.M) {
	flag.Parse()
	// Scripts wait most of the time. Without this, only as many of them play at once as there are cores.
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		if err := f.Value.Set("12"); err != nil {
			panic(err)
		}
	}
	ctrl.SetLogger(klog.Background())
	os.Exit(sandboxtest.Main(m, sandbox.Options{
		Nodes: cluster.Nodes, Replaced: sandbox.Kinds(), FeatureGates: "StatefulSetRecreateStrategy=true", // for sts-recreate
	}))
}

// TestScenarios plays every script on the real API server.
func TestScenarios(t *testing.T) {
	host, err := cluster.NewHost(context.WithoutCancel(t.Context()), sandboxtest.Get(t), scenariotest.Read(t, scripts))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(host.Close)
	scenariotest.Play(t, scripts, scenariotest.Stage{
		Name: cluster.StageName, Form: scenario.PerObject,
		Parallel: func(s *scenario.Script) bool { return !cluster.Alone(s) },
		Open: func(t *testing.T, s *scenario.Script) scenario.Stage {
			t.Helper()
			stage, err := host.Open(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := stage.Close(); err != nil {
					t.Error(err)
				}
			})
			return stage
		},
	})
}
