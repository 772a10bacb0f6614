package sandbox

// This file says what a caller can ask for, and turns the request into the complete one that the rest works with.

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// DefaultNodes is the number of simulated nodes of a new cluster when Options.Nodes is zero.
	DefaultNodes = 5
	// NoNodes asks for a cluster without nodes, as Options.Nodes.
	NoNodes = -1
)

// The kinds whose controllers can be run by the upstream code, by cairn, or by nobody.
const (
	CronJob               = "cronjob"
	DaemonSet             = "daemonset"
	StatefulSet           = "statefulset"
	ReplicaSet            = "replicaset"
	ReplicationController = "replicationcontroller"
)

// Kinds returns the kinds that Options.Upstream, Options.Replaced and RunUpstream know, in alphabetical order.
func Kinds() []string {
	return []string{CronJob, DaemonSet, ReplicaSet, ReplicationController, StatefulSet}
}

// Options says what Start should build. The zero value is a temporary cluster with DefaultNodes nodes, on a free port,
// with every kind served by the upstream controllers.
type Options struct {
	// Nodes is the number of simulated nodes. Zero means DefaultNodes for a new cluster, and "as many as there are" for
	// a DataDir that holds a cluster already. NoNodes means none.
	Nodes int

	// ReadyAfter is the time between the containers of a pod running and the pod being Ready, for pods without the
	// annotation sandbox.cairn.dev/ready-after: long enough to see the middle of a rollout. Zero means at once.
	ReadyAfter time.Duration

	// DataDir keeps the state of the cluster between runs: its objects, its certificate authority and its
	// service-account key. It is created when missing. Empty means a temporary directory that Stop removes.
	DataDir string

	// Port is the TCP port of the API server on 127.0.0.1. Zero means any free port.
	Port int

	// Kubeconfig is the file to write the administrator's credentials to, with mode 0600. Empty means "kubeconfig" in
	// the data directory. A file that describes other clusters too is left alone, and Start fails. The file of a
	// temporary cluster is removed by Stop, for its credentials are of no use afterwards.
	Kubeconfig string

	// Replaced lists the kinds that Manager serves, so that no upstream controller is started for them.
	Replaced []string

	// Upstream lists kinds to leave to the upstream controllers even when Replaced names them.
	Upstream []string

	// Manager, when not nil, runs in this process once the API server is ready. It gets a configuration with the rights
	// of the cluster's administrator and must return soon after ctx is done; when it returns earlier, the sandbox stops
	// with its error. Its context ends before the API server stops.
	Manager func(ctx context.Context, cfg *rest.Config) error

	// Binaries is a directory with kube-apiserver, kube-controller-manager and kube-scheduler of another version of
	// Kubernetes, which run as programs then ("make compat WITH=v1.36.3" builds such). Empty means the version of
	// KubernetesVersion, in this process. A cluster of another version is a temporary one: DataDir must be empty.
	Binaries string

	// FeatureGates turns features of Kubernetes on and off, in the syntax of the API server's flag --feature-gates:
	// "StatefulSetRecreateStrategy=true". In this process they hold until the process ends. Empty means the defaults.
	FeatureGates string

	// Requests, when not nil, is told of every request that the API server answers, whoever made it: of a watch when it
	// begins, of anything else shortly before or after its client has the whole answer. It is called from many goroutines
	// at once, and the server's worker waits for it.
	Requests func(Request)

	// Log receives what the components log. Nil means the file "sandbox.log" in the data directory, which each start
	// empties. Kubernetes libraries log through one logger for the whole process: Start takes it over.
	Log io.Writer

	// Progress receives one short line at each step of the start. Nil means no report.
	Progress func(step string)
}

// check reports the first thing in o that cannot be.
func (o *Options) check() error {
	if o.Nodes < NoNodes {
		return fmt.Errorf("%w: %d nodes; want 0 or more", ErrInvalidOptions, o.Nodes)
	}
	if o.Nodes > maxNodes {
		return fmt.Errorf("%w: %d nodes; the simulated address ranges hold %d", ErrInvalidOptions, o.Nodes, maxNodes)
	}
	if o.Binaries != "" && o.DataDir != "" {
		return fmt.Errorf("%w: the data in %s are for Kubernetes %s, and %s holds programs of another version",
			ErrInvalidOptions, o.DataDir, KubernetesVersion, o.Binaries)
	}
	if o.ReadyAfter < 0 {
		return fmt.Errorf("%w: ready after %s; want a duration of zero or more, for instance 5s", ErrInvalidOptions, o.ReadyAfter)
	}
	if o.Port < 0 || o.Port > 65535 {
		return fmt.Errorf("%w: port %d; want a number from 0 (any free port) to 65535", ErrInvalidOptions, o.Port)
	}
	for _, kind := range slices.Concat(o.Upstream, o.Replaced) {
		if !slices.Contains(Kinds(), kind) {
			return fmt.Errorf("%w: unknown kind %q; want one of %s", ErrInvalidOptions, kind, strings.Join(Kinds(), ", "))
		}
	}
	return nil
}

// upstreamKinds returns the kinds that Start runs the upstream controllers for.
func (o *Options) upstreamKinds() []string {
	return slices.DeleteFunc(Kinds(), func(kind string) bool {
		return slices.Contains(o.Replaced, kind) && !slices.Contains(o.Upstream, kind)
	})
}

func (o *Options) progress(step string) {
	if o.Progress != nil {
		o.Progress(step)
	}
}
