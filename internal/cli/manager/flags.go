package manager

import (
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"

	"github.com/cairn-dev/cairn/api/cairn/v1alpha1"
	"github.com/cairn-dev/cairn/deploy"
	"github.com/cairn-dev/cairn/internal/cli/env"
	"github.com/cairn-dev/cairn/internal/manager"
)

// This file says what can be set, and the defaults. The defaults suit a machine that runs something else as well: what
// a pod needs is in its manifest.

type flags struct {
	controllers                         []string
	workers                             int
	askServer                           bool
	leaderElect                         bool
	leaderElectNamespace, leaderElectID string
	leaseDuration, renewDeadline        time.Duration
	retryPeriod                         time.Duration
	metrics, probes, profiles           string
	metricsSecure                       *bool // nil: unless the address is a loopback one
	metricsCertDir                      string
	watchNamespace                      string
	targets                             string
	hookAllow                           []string
	hookAllowAPIServer                  bool
	qps                                 float32
	burst                               int
	logLevel, logFormat                 string
	verbosity                           int
	identity                            string
	allowSkew                           bool
	serverSide                          bool
	progressDeadline                    time.Duration
	fieldManager                        string
}

// The values of --hosted-identity.
const (
	shared = "shared"
	none   = "none"
)

func (f *flags) add(fs *pflag.FlagSet) {
	fs.SortFlags = false
	fs.StringSliceVar(&f.controllers, "controllers", nil, "controllers to run: "+strings.Join(manager.Names(), ", "))
	fs.IntVar(&f.workers, "workers", 0, "maximum concurrent reconciles of each controller (0: its own default)")
	fs.BoolVar(&f.askServer, "ask-server", true,
		"ask the API server, by a dry run, whether an old snapshot equals its object where only it can tell; "+
			"needs the right to patch these objects")
	fs.BoolVar(&f.leaderElect, "leader-elect", true, "let one of several managers act")
	fs.StringVar(&f.leaderElectNamespace, "leader-elect-namespace", "", "namespace of the lease (default: the pod's, or "+deploy.Namespace+")")
	fs.StringVar(&f.leaderElectID, "leader-elect-id", deploy.LeaseName, "name of the lease")
	fs.DurationVar(&f.leaseDuration, "leader-elect-lease-duration", manager.DefaultLeaseDuration,
		"duration that non-leaders wait before they acquire a lease that is not renewed, in whole seconds")
	fs.DurationVar(&f.renewDeadline, "leader-elect-renew-deadline", manager.DefaultRenewDeadline,
		"how long a leader that cannot renew its lease goes on writing; less than the lease")
	fs.DurationVar(&f.retryPeriod, "leader-elect-retry-period", manager.DefaultRetryPeriod,
		"pause between two tries to take or renew the lease")
	// Probes say no more than "ok", and the kubelet asks from outside the pod, without credentials.
	fs.StringVar(&f.metrics, "metrics-bind-address", "127.0.0.1:8080", "where to serve /metrics; port 0: a free one, off: nowhere")
	fs.BoolFunc("metrics-secure",
		"serve /metrics over TLS, and only to those whom the API server lets get it (default: unless the address is a loopback one)",
		func(text string) error {
			secure, err := strconv.ParseBool(text)
			f.metricsSecure = &secure
			return err
		})
	fs.StringVar(&f.metricsCertDir, "metrics-cert-path", "",
		"folder with the tls.crt and tls.key for /metrics, which are read again when they change (default: a self-signed certificate)")
	fs.StringVar(&f.probes, "health-probe-bind-address", ":8081", "where to serve /healthz and /readyz; port 0: a free one, off: nowhere")
	// Profiles hold what is in memory.
	fs.StringVar(&f.profiles, "pprof-bind-address", "off",
		"where to serve /debug/pprof, unauthenticated; port 0: a free one, off: nowhere")
	fs.Float32Var(&f.qps, "kube-api-qps", -1, "requests per second to the API server at most (-1: its own priority and fairness rules)")
	fs.IntVar(&f.burst, "kube-api-burst", 0, "requests that may exceed --kube-api-qps for a moment (0: the client library's default)")
	fs.StringVar(&f.watchNamespace, "watch-namespace", "",
		"the only namespace to look at (default: all); for roles that \"cairn roles --namespace\" made")
	fs.DurationVar(&f.progressDeadline, "progress-deadline", 0,
		"daemonset, statefulset and composite: after how long without progress a rollout has failed, as in 10m, unless its object says so "+
			"(annotation cairn.dev/progress-deadline; 0: never)")
	fs.StringVar(&f.targets, "target-label-selector", "",
		"composite and decorator: labels that a controller must have to be run here (default: all are)")
	fs.Func("apply-strategy", "composite and decorator: how children are changed, dynamic-apply or server-side-apply (default dynamic-apply)",
		f.applyStrategy)
	fs.StringVar(&f.fieldManager, "apply-strategy-ssa-field-manager", "metacontroller",
		"composite and decorator: who owns the fields of children with server-side-apply")
	fs.StringSliceVar(&f.hookAllow, "hook-allow-address", nil,
		"composite and decorator: address, or CIDR, that a webhook may have although it is loopback or link-local; can be repeated")
	fs.BoolVar(&f.hookAllowAPIServer, "hook-allow-api-server", false,
		"composite and decorator: let webhooks be at the API server's own address")
	fs.StringVar(&f.identity, "hosted-identity", none,
		"composite, decorator and recorder: what a controller or policy gets that names no ServiceAccount (annotation "+
			v1alpha1.ServiceAccountAnnotation+"): none, so that it is not run, or shared, "+
			"all rights of the manager: whoever may create one has them")
	fs.BoolVar(&f.allowSkew, "allow-version-skew", false,
		"start controllers also on an API server that is more than one minor version newer than cairn, or older than any that is supported")
	fs.StringVar(&f.logLevel, "log-level", "info", "error, warn, info or debug")
	fs.IntVarP(&f.verbosity, "v", "v", 0, "more of --log-level=info; debug is 4")
	fs.StringVar(&f.logFormat, "log-format", "text", "text or json")
	f.addMetacontroller(fs)
}

// secure says whether metrics are served over TLS. Plain HTTP, which asks nobody who he is, does not leave the machine.
func (f *flags) secure(address string) (bool, error) {
	host, _, _ := net.SplitHostPort(address)
	ip, _ := netip.ParseAddr(host)
	local := host == "localhost" || ip.IsLoopback()
	switch {
	case address == manager.Off:
		return false, nil
	case f.metricsSecure == nil:
		return !local, nil
	case !*f.metricsSecure && !local:
		return false, env.Usagef("--metrics-secure=false needs a loopback --metrics-bind-address such as 127.0.0.1:8080: "+
			"at %s anybody could read the metrics", address)
	default:
		return *f.metricsSecure, nil
	}
}

// prefixes reads the addresses that webhooks may have.
func prefixes(texts []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if addr, plain := netip.ParseAddr(text); plain == nil {
			prefix, err = addr.Prefix(addr.BitLen())
		}
		if err != nil {
			return nil, env.Usagef("--hook-allow-address=%s is no address and no CIDR; 127.0.0.1 or 169.254.0.0/16 are", text)
		}
		out = append(out, prefix)
	}
	return out, nil
}

// logger returns a structured logger that writes to w.
func (f *flags) logger(w io.Writer) (logr.Logger, error) {
	var level slog.Level
	switch f.logLevel {
	case "error", "warn", "info", "debug":
		if err := level.UnmarshalText([]byte(f.logLevel)); err != nil {
			return logr.Logger{}, err
		}
	default:
		return logr.Logger{}, env.Usagef("there is no --log-level=%s; there are: error, warn, info, debug", f.logLevel)
	}
	if f.verbosity < 0 {
		return logr.Logger{}, env.Usagef("-v=%d: 0 or more", f.verbosity)
	}
	if f.verbosity > 0 {
		level = min(level, slog.Level(-f.verbosity)) // logr's V(n) is slog's level -n
	}
	o := &slog.HandlerOptions{Level: level}
	switch f.logFormat {
	case "text":
		return logr.FromSlogHandler(slog.NewTextHandler(w, o)), nil
	case "json":
		return logr.FromSlogHandler(slog.NewJSONHandler(w, o)), nil
	default:
		return logr.Logger{}, env.Usagef("there is no --log-format=%s; there are: text, json", f.logFormat)
	}
}
