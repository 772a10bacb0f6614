package manager

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/cairn-dev/cairn/cli/env"
	"github.com/cairn-dev/cairn/manager"
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
				Controllers: []string{"daemonset"}, AskServer: true,
				LeaderElect: true, LeaderElectionNamespace: "cairn-system", LeaderElectionID: "cairn-manager",
				MetricsBindAddress: "127.0.0.1:8080", HealthProbeBindAddress: ":8081",
			},
		},
		"all set": {
			args: []string{
				"--controllers=daemonset,daemonset", "--workers=9", "--ask-server=false", "--leader-elect=false",
				"--leader-elect-namespace=ns", "--leader-elect-id=id", "--metrics-bind-address=off", "--health-probe-bind-address=0",
			},
			want: manager.Options{
				Controllers: []string{"daemonset"}, Workers: 9,
				LeaderElectionNamespace: "ns", LeaderElectionID: "id",
				MetricsBindAddress: manager.Off, HealthProbeBindAddress: manager.Off,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parse(t, c.args...).options()
			if d := cmp.Diff(c.want.Controllers, got.Controllers); err != nil || d != "" {
				t.Errorf("%v %s", err, d)
			}
			got.Controllers, c.want.Controllers = nil, nil
			if g, w := summary(got), summary(c.want); g != w {
				t.Errorf("got  %s\nwant %s", g, w)
			}
		})
	}
	if f := parse(t); f.qps != -1 {
		t.Errorf("the client limits itself to %v requests a second", f.qps)
	}
}

func summary(o manager.Options) string {
	return strings.Join([]string{
		slog.IntValue(o.Workers).String(), slog.BoolValue(o.AskServer).String(), slog.BoolValue(o.LeaderElect).String(),
		o.LeaderElectionNamespace, o.LeaderElectionID, o.MetricsBindAddress, o.HealthProbeBindAddress,
	}, " ")
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
