package manager

import (
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/cairn-dev/cairn/internal/manager"
)

// theirs is how a script starts Metacontroller 4.17 that says every default, --kubeconfig excepted.
var theirs = []string{
	"--discovery-interval=30s", "--cache-flush-interval=30m", "--metrics-address=:9999", "--health-probe-bind-address=:8081",
	"--pprof-address=0", "--client-go-qps=5", "--client-go-burst=10", "--workers=5", "--events-qps=0.0033", "--events-burst=25",
	"--leader-election=false", "--leader-election-resource-lock=leases", "--leader-election-namespace=", "--leader-election-id=metacontroller",
	"--target-label-selector=", "--apply-strategy=dynamic-apply", "--apply-strategy-ssa-field-manager=metacontroller",
	"--zap-devel=false", "--zap-encoder=json", "--zap-log-level=info", "--zap-stacktrace-level=error", "--zap-time-encoding=epoch",
}

func TestMetacontrollersDefaults(t *testing.T) {
	f := parse(t, append(theirs, "--controllers=daemonset")...)
	got, err := f.options()
	if err != nil {
		t.Fatal(err)
	}
	want := manager.Options{
		NamedAccounts: true,
		Controllers:   []string{"daemonset"}, Workers: 5, AskServer: true,
		LeaderElectionNamespace: "cairn-system", LeaderElectionID: "metacontroller",
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		MetricsBindAddress: ":9999", MetricsSecure: true, HealthProbeBindAddress: ":8081", PprofBindAddress: manager.Off,
		TargetLabelSelector: labels.Everything(),
	}
	if d := diff(want, got); d != "" {
		t.Error(d)
	}
	if f.qps != 5 || f.burst != 10 || f.logFormat != "json" {
		t.Errorf("%v requests a second, %d at once, logs as %s", f.qps, f.burst, f.logFormat)
	}
	// A flag without a value, and the one that turns the lease on.
	if got, err := parse(t, "--controllers=daemonset", "--leader-elect=false", "--leader-election").options(); err != nil || !got.LeaderElect {
		t.Errorf("%+v %v", got, err)
	}
}

// TestMetricsSecure: what leaves the machine is not for everybody.
func TestMetricsSecure(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "--metrics-secure": true, "--metrics-bind-address=off": false, "--metrics-bind-address=:8080": true,
		"--metrics-bind-address=[::1]:8080": false, "--metrics-bind-address=localhost:8080": false,
		"--metrics-bind-address=10.0.0.1:8080": true, "--metrics-bind-address=127.0.0.1:0 --metrics-secure=false": false,
	} {
		got, err := parse(t, append(strings.Fields(text), "--controllers=daemonset")...).options()
		if err != nil || got.MetricsSecure != want {
			t.Errorf("%s: %v, %v", text, got.MetricsSecure, err)
		}
	}
	if _, err := parse(t, "--controllers=daemonset", "--metrics-bind-address=:8080", "--metrics-secure=false").options(); err == nil {
		t.Error("metrics for everybody")
	}
}

func TestMetacontrollersLogLevels(t *testing.T) {
	for flag, want := range map[string]string{
		"--zap-log-level=debug": "debug 0 json", "--zap-log-level=error": "error 0 json", "--zap-log-level=panic": "error 0 json",
		"--zap-log-level=5": "info 5 json", "--zap-devel": "debug 0 text", "--zap-devel=false": "info 0 json", "--zap-encoder=console": "info 0 text",
	} {
		f := parse(t, "--log-format=json", flag)
		if got := strings.Join([]string{f.logLevel, string(rune('0' + f.verbosity)), f.logFormat}, " "); got != want {
			t.Errorf("%s: %s, want %s", flag, got, want)
		}
	}
}

// TestMetacontrollersValues: what Metacontroller would refuse, and what nothing here could do, is refused.
func TestMetacontrollersValues(t *testing.T) {
	for flag, want := range map[string]string{
		"--apply-strategy=guess":                       "there are: dynamic-apply, server-side-apply",
		"--leader-election-resource-lock=configmaps":   "there are: leases",
		"--zap-log-level=0":                            "there is no such level",
		"--zap-encoder=xml":                            "there are: console, json",
		"--zap-devel=perhaps":                          "invalid syntax",
		"--discovery-interval=soon":                    "invalid duration",
		"--client-go-qps=many":                         "invalid syntax",
		"--leader-election=perhaps":                    "invalid syntax",
		"--events-burst=2.5":                           "invalid syntax",
		"--cache-flush-interval=30":                    "missing unit",
		"--target-label-selector-that-is-no-flag=true": "unknown flag",
	} {
		fs := pflag.NewFlagSet("manager", pflag.ContinueOnError)
		fs.SetOutput(io.Discard)
		(&flags{}).add(fs)
		if err := fs.Parse([]string{flag}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

// TestFlagsThatChangeNothing are told to whoever sets them, and nobody else.
func TestFlagsThatChangeNothing(t *testing.T) {
	fs := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	(&flags{}).add(fs)
	if got := unheeded(fs); len(got) > 0 {
		t.Errorf("before anything is set: %v", got)
	}
	if err := fs.Parse(theirs); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(slices.Sorted(maps.Keys(idle)), slices.Sorted(maps.Keys(unheeded(fs)))); d != "" {
		t.Error(d)
	}
}

// TestFlagsAreDocumented: what the help does not list, docs/metacontroller.md does.
func TestFlagsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/metacontroller.md")
	if err != nil {
		t.Fatal(err)
	}
	fs := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	(&flags{}).add(fs)
	hidden := 0
	fs.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			return
		}
		hidden++
		if !strings.Contains(string(page), "`--"+f.Name+"`") {
			t.Errorf("docs/metacontroller.md does not say what --%s does", f.Name)
		}
	})
	if hidden < len(renamed)+len(idle) {
		t.Errorf("%d flags are hidden", hidden)
	}
}
