package fault_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/cairn-dev/cairn/internal/manager"
	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/check/parents"
	"github.com/cairn-dev/cairn/proof/fault"
	"github.com/cairn-dev/cairn/sandbox/install"
	"github.com/cairn-dev/cairn/sandbox/sandboxtest"
)

// This file sweeps every controller over the real API server, under the roles that are shipped, with every run judged.
//
// CAIRN_CHECK=full makes every request fail in every way. Without it one of twenty such runs is done always, and one of
// twenty in turn: CAIRN_TURN is a number that grows with each commit. CAIRN_FAULT is one run, by the name that a report
// gives it, to be done again: just that one, and the test fails if there is none or its fault does not happen.

// loopback is where a test's hook is.
var loopback = netip.MustParsePrefix("127.0.0.1/32")

// slots are for the runs of all sweeps: they mostly wait.
var slots = make(chan struct{}, 16)

// full is true if every request is to fail in every way.
var full = os.Getenv("CAIRN_CHECK") == "full"

// subject is one controller under the sweep.
type subject struct {
	// controller is its name in package manager, and name the sweep's if that is another one.
	controller, name string
	// manager, if not nil, says how it is run.
	manager func(context.Context, *manager.Options)
	kinds   []check.Kind
	scopes  []check.Scope
	// namespaced are the resources that it watches in all namespaces.
	namespaced []string
	scenarios  []fault.Scenario
	aimed      []fault.Fault
	refusals   []fault.Refusal
	// prepare, if not nil, makes what is there once for all runs, and completes the sweep.
	prepare func(*testing.T, *fault.Sweep)
}

// builtIn completes the subject of a kind that Kubernetes has.
func builtIn(k check.Kind, s subject) subject {
	s.controller, s.kinds, s.scopes, s.namespaced = k.Controller, []check.Kind{k}, k.Scopes(), k.Namespaced()
	return s
}

// subjects are all controllers.
func subjects() []subject {
	cats := &hooks{} // both serve the same CompositeControllers
	return []subject{
		daemonSets(), replicaSets(), replicationControllers(), statefulSets(), cronJobs(), authors(), surges(), composites(cats), appliedComposites(cats),
		decorators(), recorders(),
	}
}

func TestEveryControllerIsSwept(t *testing.T) {
	for _, name := range manager.Names() {
		if !slices.ContainsFunc(subjects(), func(s subject) bool { return s.controller == name }) {
			t.Errorf("nothing sweeps the controller %s: add it to subjects", name)
		}
	}
}

func TestSweep(t *testing.T) { //nolint:tparallel // the tests beside it are judged by the clock
	for _, subject := range subjects() {
		name := cmp.Or(subject.name, subject.controller)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sweep := sweepOf(t, subject)
			report, err := sweep.Run(t.Context(), subject.scenarios...)
			if err != nil {
				t.Fatal(err)
			}
			t.Log(report.Requests)
			for _, missed := range report.Missed {
				t.Logf("ended before its fault: %s", missed)
				if sweep.Only != "" {
					t.Error("so that this was no replay")
				}
			}
			for i := range report.Failures {
				t.Error(&report.Failures[i])
			}
			if sweep.Only == "" && (report.Injected < (report.Runs-len(report.Requests))/2 || report.States < 2*nodes*report.Runs) {
				t.Errorf("a sweep that injects or sees this little shows nothing: %v", report)
			}
			_, _ = fmt.Fprintf(os.Stdout, "check: L1 %s: %s\n", name, report.Summary())
		})
	}
}

// part picks the runs of a sweep; nil means all.
func part(t *testing.T) func(string) bool {
	t.Helper()
	if full {
		return nil
	}
	turn, err := strconv.Atoi(cmp.Or(os.Getenv("CAIRN_TURN"), "0"))
	if err != nil {
		t.Fatalf("CAIRN_TURN: %v", err)
	}
	return fault.OneOf(20, turn)
}

func sweepOf(t *testing.T, subject subject) *fault.Sweep {
	t.Helper()
	s := sandboxtest.Get(t)
	cfg, err := install.Roles(t.Context(), s.Config(), []string{subject.controller}, true)
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	user := s.Config()
	user.QPS = -1
	user.ContentType = runtime.ContentTypeProtobuf
	sweep := &fault.Sweep{
		User:   user,
		Config: cfg,
		Manager: func(ctx context.Context, cfg *rest.Config) error {
			o := manager.Options{
				Config: cfg, Controllers: []string{subject.controller}, AskServer: true, Logger: klog.FromContext(ctx),
				MetricsBindAddress: manager.Off, HealthProbeBindAddress: manager.Off, HookAllow: []netip.Prefix{loopback},
			}
			if subject.manager != nil {
				subject.manager(ctx, &o)
			}
			return manager.Run(ctx, o)
		},
		Namespaced: subject.namespaced,
		Kinds:      subject.kinds,
		Scopes:     subject.scopes,
		Points:     fault.All,
		Part:       part(t),
		Pairs: [][2]fault.Mode{
			{fault.KillAfter, fault.KillBefore}, {fault.KillStale, fault.ResponseLost}, {fault.Unseen, fault.KillAfter},
		},
		Aimed:    subject.aimed,
		Refusals: subject.refusals,
		Slots:    slots,
		Only:     os.Getenv("CAIRN_FAULT"),
		Replay: func(run string) string {
			return fmt.Sprintf("cd proof && CAIRN_CHECK=full CAIRN_FAULT='%s' go test ./fault -run '%s$' -count=1", run, t.Name())
		},
	}
	if full || sweep.Only != "" { // in a short sweep, these lines hide the failures: CI prints 30,000 characters
		sweep.Progress = func(line string) { t.Log(line) }
	}
	if subject.prepare != nil {
		subject.prepare(t, sweep)
	}
	return sweep
}

func TestASweepReportsAManagerThatIsWrong(t *testing.T) {
	s := sandboxtest.Get(t)
	user := s.Config()
	user.QPS = -1
	created := func(ctx context.Context, e *fault.Env) error {
		_, err := e.Client.CoreV1().ConfigMaps(e.Namespace).Get(ctx, "made", metav1.GetOptions{})
		return err
	}
	sweep := &fault.Sweep{
		User: user, Config: user, Patience: 10 * time.Second, Namespaced: []string{"serviceaccounts"}, Scopes: parents.DaemonSet().Scopes(),
		// It tries once in its life and believes that what it was told is what happened.
		Manager: func(ctx context.Context, cfg *rest.Config) error {
			c := kubernetes.NewForConfigOrDie(cfg)
			list, err := c.CoreV1().ServiceAccounts(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "made"}}
			if _, err := c.CoreV1().ConfigMaps(list.Items[0].Namespace).Create(ctx, made, metav1.CreateOptions{}); err != nil && ctx.Err() == nil {
				return err
			}
			<-ctx.Done()
			return nil
		},
		Modes: []fault.Mode{fault.Conflict, fault.KillBefore},
	}
	var suspended atomic.Bool // once, the machine is: that run is repeated
	report, err := sweep.Run(t.Context(), fault.Scenario{
		Name: "try once",
		Drive: func(ctx context.Context, e *fault.Env) error {
			if suspended.CompareAndSwap(false, true) {
				return errors.New("etcdserver: request timed out")
			}
			return until("it is made", created)(ctx, e)
		},
		Ended: created,
	})
	if err != nil {
		t.Fatal(err)
	}
	if report.Requests["try once"] != 1 || report.Runs != 3 || report.Injected != 2 || report.Violations != 1 || len(report.Failures) != 1 {
		t.Fatalf("%v", report)
	}
	f := report.Failures[0]
	if f.Run != "try once, 409 conflict, k=1" || !strings.Contains(f.Request, "create configmaps") || !strings.Contains(f.String(), "the manager ended by itself") {
		t.Errorf("the failure is reported as %v", &f)
	}
}
