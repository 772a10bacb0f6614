// Package env is what every verb is given: streams, a clock, the way to the cluster, and the exit codes.
//
// What may not come in: a verb, and anything that package inspect could answer.
package env

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/inspect"
	"github.com/cairn-dev/cairn/internal/printable"
)

// Env is given to every verb. Make one with [New]; tests put their own streams, clock and cluster into it.
type Env struct {
	genericiooptions.IOStreams

	// Clock says how old things are.
	Clock clock.PassiveClock
	// Name is how the program is called: cairn, or "kubectl cairn".
	Name string
	// Version is what "cairn version" says.
	Version string
	// Cluster holds kubectl's flags: --kubeconfig, --context, --namespace and so on.
	Cluster *genericclioptions.ConfigFlags
	// Quiet is called before a verb talks to the cluster that prints what a user should know. Nil means that logs stay as
	// they are.
	Quiet func()
	// Objects finds the objects that args and flags mean, and an inspector to ask about them: see [Env.Open] and
	// [Env.Select].
	Objects func(args []string, s *Selection) (*inspect.Inspector, []client.Object, error)
	// Connect returns an inspector without an object, and the namespace that the flags say.
	Connect func() (*inspect.Inspector, string, error)
	// Where says which cluster, context and namespace the flags mean, for questions; empty if that is not known.
	Where func() string
	// Interactive reports whether somebody can be asked: input and error stream are terminals.
	Interactive func() bool
	// Kinds returns the kinds whose objects can be listed: those in namespaces or, if namespaced is false, all.
	Kinds func(namespaced bool) ([]schema.GroupVersionKind, error)
	// Resources returns what the cluster's resources are called, and Names the names of the objects of one. Both are for
	// completion.
	Resources func() ([]string, error)
	Names     func(ctx context.Context, resource string) ([]string, error)

	out *printable.Writer
	// everything says that objects of all kinds are listed.
	everything atomic.Bool
}

// New returns what a process needs that talks to a cluster. What is written to its streams is made safe for terminals.
func New(streams genericiooptions.IOStreams, version string) *Env {
	out := &printable.Writer{W: streams.Out}
	streams.Out, streams.ErrOut = out, &printable.Writer{W: streams.ErrOut}
	e := &Env{
		IOStreams: streams,
		Clock:     clock.RealClock{},
		Name:      "cairn",
		Version:   version,
		Cluster:   genericclioptions.NewConfigFlags(true).WithWarningPrinter(streams),
		out:       out,
	}
	e.Cluster.WrapConfigFn = func(cfg *rest.Config) *rest.Config { // also for what kubectl's libraries ask
		cfg.UserAgent = e.userAgent()
		return cfg
	}
	e.Connect = e.connect
	e.Interactive = func() bool { return isTerminal(e.In) && isTerminal(e.ErrOut) }
	e.Objects, e.Kinds, e.Resources, e.Names, e.Where = e.objects, e.listable, e.resources, e.names, e.where
	return e
}

// where is kubectl's context, cluster and namespace.
func (e *Env) where() string {
	loader := e.Cluster.ToRawKubeConfigLoader()
	raw, err := loader.RawConfig()
	cfg, unknown := e.Cluster.ToRESTConfig()
	namespace, _, nowhere := loader.Namespace()
	if errors.Join(err, unknown, nowhere) != nil {
		return ""
	}
	name := raw.CurrentContext
	if given := *e.Cluster.Context; given != "" {
		name = given
	}
	out := "cluster " + cfg.Host + ", namespace " + namespace
	if name != "" {
		out = "context " + name + ", " + out
	}
	return out
}

func (e *Env) userAgent() string { return "cairn/" + e.Version }

// Written returns an error if something that was printed did not arrive, because a disk is full for instance. Whoever
// ends the process asks: functions that print tables and help do not say.
func (e *Env) Written() error {
	if err := e.out.Err(); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return nil
}

// Config returns the cluster and the credentials that flags, KUBECONFIG or the pod say, without a limit on the client's
// side. Warnings of the API server go to the error stream.
func (e *Env) Config() (*rest.Config, error) {
	cfg, err := e.Cluster.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	if e.nowhere(cfg) {
		return nil, noCluster()
	}
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = e.userAgent()
	cfg.QPS = -1 // the API server's priority and fairness rules
	cfg.WarningHandler = &warnings{WarningHandler: rest.NewWarningWriter(e.ErrOut, rest.WarningWriterOptions{Deduplicate: true}), env: e}
	return cfg, nil
}

// nowhere reports whether cfg is what remains if nothing is configured: port 8080 of this machine, where no API server
// has listened for years.
func (e *Env) nowhere(cfg *rest.Config) bool {
	raw, err := e.Cluster.ToRawKubeConfigLoader().RawConfig()
	said := *e.Cluster.APIServer != "" || err != nil || !clientcmdapi.IsConfigEmpty(&raw)
	return !said && cfg.Host == clientcmd.ClusterDefaults.Server && strings.HasPrefix(cfg.Host, "http://localhost:")
}

// noCluster says what to do about it.
func noCluster() error {
	if files := os.Getenv(clientcmd.RecommendedConfigPathEnvVar); files != "" {
		return fmt.Errorf("there is no cluster to talk to: KUBECONFIG is %s, where there is no file; correct it, or give --kubeconfig", files)
	}
	return errors.New("there is no cluster to talk to: give --kubeconfig, set KUBECONFIG, or run in a pod")
}

func (e *Env) connect() (*inspect.Inspector, string, error) {
	ctrl.SetLogger(logr.Discard()) // what a user should know is printed, not logged
	if e.Quiet != nil {
		e.Quiet()
	}
	namespace, _, err := e.Cluster.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("find the namespace: %w", err)
	}
	c, err := e.client()
	if err != nil {
		return nil, "", err
	}
	return inspect.New(c), namespace, nil
}

// client returns a client that reads past caches, and knows kinds from the discovery that is kept on the disk.
func (e *Env) client() (client.Client, error) {
	cfg, err := e.Config()
	if err != nil {
		return nil, err
	}
	mapper, err := e.Cluster.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	return client.New(cfg, client.Options{Scheme: scheme, Mapper: mapper})
}

// Warn writes sentences to the error stream.
func (e *Env) Warn(sentences ...string) {
	for _, s := range sentences {
		fmt.Fprintln(e.ErrOut, "Warning:", s)
	}
}

// OneObject checks that args name one object, as TYPE/NAME or as TYPE NAME.
func OneObject(args []string) error {
	wrong := func(why string) error {
		return &UsageError{Err: fmt.Errorf("%s; name one object as TYPE/NAME or TYPE NAME, for instance ds/web", why)}
	}
	for _, arg := range args {
		if strings.Contains(arg, ",") {
			return wrong(fmt.Sprintf("%q names several", arg))
		}
	}
	switch {
	case len(args) == 0:
		return wrong("no object is named")
	case len(args) == 1 && strings.Count(args[0], "/") != 1:
		return wrong(fmt.Sprintf("%q is no TYPE/NAME", args[0]))
	case len(args) == 2 && (strings.Contains(args[0], "/") || strings.Contains(args[1], "/")), len(args) > 2:
		return wrong(fmt.Sprintf("%q is more than one object", strings.Join(args, " ")))
	}
	return nil
}

// Revision reads the value of a flag that names a revision: by its number or, where two have one number, by the name of
// its object.
func Revision(flag, value string) (number int64, name string, err error) {
	if number, err := strconv.ParseInt(value, 10, 64); err == nil {
		if number < 0 {
			return 0, "", Usagef("--%s=%d: revisions are numbered from 1", flag, number)
		}
		return number, "", nil
	}
	return 0, value, nil
}

// Find returns how to find the one revision that a flag names, by its number or by the name of its object.
func Find(flag, value string) (inspect.Find, error) {
	number, name, err := Revision(flag, value)
	switch {
	case err != nil:
		return nil, err
	case name != "":
		return func(h *inspect.History) (inspect.Entry, error) { return h.FindName(name) }, nil
	case number == 0 || value == "":
		return nil, Usagef("--%s=%s: revisions are numbered from 1", flag, value)
	default:
		return func(h *inspect.History) (inspect.Entry, error) { return h.Find(number) }, nil
	}
}
