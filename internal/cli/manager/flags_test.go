package manager

import (
	"bytes"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/cairn-dev/cairn/internal/cli/env"
	"github.com/cairn-dev/cairn/internal/manager"
)

func parse(t *testing.T, args ...string) *flags {
	t.Helper()
	f := &flags{}
	fs := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	f.add(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestOptions: every flag reaches the manager, and the defaults open nothing but the probes to the network.
func TestOptions(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want manager.Options
	}{
		"defaults": {
			args: []string{"--controllers=daemonset"},
			want: manager.Options{
				Controllers: []string{"daemonset"}, AskServer: true, NamedAccounts: true,
				LeaderElect: true, LeaderElectionNamespace: "cairn-system", LeaderElectionID: "cairn-manager",
				LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
				MetricsBindAddress: "127.0.0.1:8080", HealthProbeBindAddress: ":8081", PprofBindAddress: manager.Off,
				TargetLabelSelector: labels.Everything(),
			},
		},
		"all set": {
			args: []string{
				"--controllers=daemonset,daemonset", "--workers=9", "--ask-server=false", "--leader-elect=false",
				"--leader-elect-namespace=ns", "--leader-elect-id=id", "--leader-elect-lease-duration=9s",
				"--leader-elect-renew-deadline=6s", "--leader-elect-retry-period=1s", "--metrics-bind-address=off", "--health-probe-bind-address=0",
				"--pprof-bind-address=127.0.0.1:0", "--watch-namespace=team", "--target-label-selector=tier=gold",
				"--hook-allow-address=127.0.0.1,169.254.0.0/16", "--hook-allow-address=::1", "--hook-allow-api-server",
				"--allow-version-skew", "--hosted-identity=shared",
			},
			want: manager.Options{
				Controllers: []string{"daemonset"}, Workers: 9,
				LeaderElectionNamespace: "ns", LeaderElectionID: "id",
				LeaseDuration: 9 * time.Second, RenewDeadline: 6 * time.Second, RetryPeriod: time.Second,
				MetricsBindAddress: manager.Off, HealthProbeBindAddress: manager.Off, PprofBindAddress: "127.0.0.1:0",
				Namespace: "team", TargetLabelSelector: labels.SelectorFromSet(labels.Set{"tier": "gold"}),
				HookAllow: []netip.Prefix{
					netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("::1/128"),
				},
				HookAllowAPIServers: true, AllowVersionSkew: true,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parse(t, c.args...).options()
			if err != nil {
				t.Fatal(err)
			}
			if d := diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
	if f := parse(t); f.qps != -1 {
		t.Errorf("the client limits itself to %v requests a second", f.qps)
	}
}

// TestLeaseIsBesideThePod: without a flag the lease is in the namespace of the pod, under the name that manifests give
// it.
func TestLeaseIsBesideThePod(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "metacontroller")
	for namespace, args := range map[string][]string{
		"metacontroller": theirs,
		"team":           append(slices.Clone(theirs), "--leader-election-namespace=team"),
	} {
		got, err := parse(t, append(slices.Clone(args), "--controllers=composite")...).options()
		if err != nil || got.LeaderElectionNamespace != namespace {
			t.Errorf("the lease is in %q, want %q (%v)", got.LeaderElectionNamespace, namespace, err)
		}
	}
}

// diff compares options. Selectors are the same if they are written the same.
func diff(want, got manager.Options) string {
	text := cmp.Transformer("selector", func(s labels.Selector) string { return s.String() })
	return cmp.Diff(want, got, text, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }), cmpopts.IgnoreFields(manager.Options{}, "Logger"))
}

// TestRefusedOptions: what is wrong is said before anything is connected to.
func TestRefusedOptions(t *testing.T) {
	for flag, want := range map[string]string{
		"--hook-allow-address=localhost":      "is no address and no CIDR",
		"--hook-allow-address=10.0.0.0/":      "is no address and no CIDR",
		"--target-label-selector=a==b==":      "--target-label-selector=a==b==",
		"--pprof-bind-address=6060":           "is no host:port",
		"--hosted-identity=mine":              "there are: shared, none",
		"--leader-elect-lease-duration=10s":   "has to be longer than what a leader waits",
		"--leader-elect-lease-duration=15.5s": "whole seconds",
		"--leader-elect-retry-period=9s":      "has to try more often",
		"--leader-elect-retry-period=-1s":     "has to try more often",
	} {
		_, err := parse(t, "--controllers=daemonset", flag).options()
		if env.Code(err) != env.Misused || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

// TestLogger: -v and --log-level are one scale, and the louder one wins.
func TestLogger(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string // the lines that come out, of: V(4) V(2) V(0) error
	}{
		"default":       {nil, "info error"},
		"error":         {[]string{"--log-level=error"}, "error"},
		"warn":          {[]string{"--log-level=warn"}, "error"},
		"debug":         {[]string{"--log-level=debug"}, "four two info error"},
		"-v=2":          {[]string{"-v=2"}, "two info error"},
		"-v=2, quieter": {[]string{"-v=2", "--log-level=error"}, "two info error"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			log, err := parse(t, append(c.args, "--log-format=json")...).logger(&out)
			if err != nil {
				t.Fatal(err)
			}
			log.V(4).Info("four")
			log.V(2).Info("two")
			log.Info("info")
			log.Error(errors.New("boom"), "error")
			var got []string
			for line := range strings.Lines(out.String()) {
				_, rest, _ := strings.Cut(line, `"msg":"`)
				word, _, _ := strings.Cut(rest, `"`)
				got = append(got, word)
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	_, err := parse(t, "--log-level=loud").logger(nil)
	if env.Code(err) != env.Misused {
		t.Errorf("got %v", err)
	}
}
