package manager

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/cairn-dev/cairn/internal/manager/skew"
)

// This file decides what is started on an API server that is newer, or older, than the types that were compiled in. See
// docs/versions.md.

// typed are the controllers that read objects into Go types, by what they read. The others keep unknown fields.
var typed = map[string]skew.Kind{
	"cronjob":    {GroupVersion: batchv1.SchemeGroupVersion, Kind: "CronJob", Type: reflect.TypeFor[batchv1.CronJob]()},
	"daemonset":  {GroupVersion: appsv1.SchemeGroupVersion, Kind: "DaemonSet", Type: reflect.TypeFor[appsv1.DaemonSet]()},
	"replicaset": {GroupVersion: appsv1.SchemeGroupVersion, Kind: "ReplicaSet", Type: reflect.TypeFor[appsv1.ReplicaSet]()},
	"replicationcontroller": {
		GroupVersion: corev1.SchemeGroupVersion, Kind: "ReplicationController",
		Type: reflect.TypeFor[corev1.ReplicationController](),
	},
	"statefulset": {GroupVersion: appsv1.SchemeGroupVersion, Kind: "StatefulSet", Type: reflect.TypeFor[appsv1.StatefulSet]()},
}

var versionSkew = prometheus.NewGauge(prometheus.GaugeOpts{
	Name: "cairn_manager_version_skew",
	Help: "Minor versions by which the API server is newer than the Kubernetes types that were compiled in; below zero it is older.",
})

func init() { //nolint:gochecknoinits // how metrics are registered
	metrics.Registry.MustRegister(versionSkew)
}

// SkewError says that controllers are not started, because the API server is too new or too old for them. Upgrade
// cairn, or set [Options].AllowVersionSkew.
type SkewError struct {
	Skew skew.Skew
	// Controllers are those that are not started.
	Controllers []string
	// Lost are the fields that they would lose. They are known only if Unknown is nil.
	Lost    []string
	Unknown error
}

func (e *SkewError) Error() string {
	not := fmt.Sprintf("controllers %s are not started: the API server is Kubernetes 1.%d, ", strings.Join(e.Controllers, ", "), e.Skew.Server)
	if e.Skew.TooOld() {
		return not + fmt.Sprintf("and 1.%d is the oldest that is supported; --allow-version-skew starts them all the same", skew.Oldest)
	}
	return not + fmt.Sprintf("their types are of 1.%d, so that they would make pods without what is newer: %s; upgrade cairn; "+
		"--allow-version-skew starts them all the same", e.Skew.Types, lostText(e.Lost, e.Unknown))
}

// maxLost is how many fields are listed.
const maxLost = 40

func lostText(lost []string, unknown error) string {
	switch {
	case unknown != nil:
		return fmt.Sprintf("which fields cannot be said (%v)", unknown)
	case len(lost) == 0:
		return "no field of their objects, as far as the API server's schema tells"
	case len(lost) > maxLost:
		return fmt.Sprintf("%s and %d more", strings.Join(lost[:maxLost], ", "), len(lost)-maxLost)
	}
	return strings.Join(lost, ", ")
}

// refusal returns what is not started on an API server, nil if everything is. It only decides; the caller adds the
// fields that would be lost.
func refusal(s skew.Skew, controllers []string) *SkewError {
	out := &SkewError{Skew: s}
	for _, name := range controllers {
		if _, loses := typed[name]; s.TooOld() || s.TooNew() && loses {
			out.Controllers = append(out.Controllers, name)
		}
	}
	if len(out.Controllers) == 0 {
		return nil
	}
	return out
}

// versions is what is known about the API server's version while a manager runs.
type versions struct {
	options Options
	server  rest.Interface
	// seen is the skew that was logged.
	seen skew.Skew
	// refused are the controllers that were not started, nil if all were.
	refused *SkewError
}

// versionTimeout is how long an API server may take to say its version, when the manager starts.
const versionTimeout = time.Minute

// fit reads the version of the API server, and removes the controllers that it is too new or too old for. With none
// left the error is a [*SkewError].
func fit(ctx context.Context, o *Options) (*versions, error) {
	client, err := discovery.NewDiscoveryClientForConfig(o.Config)
	if err != nil {
		return nil, err
	}
	v := &versions{options: *o, server: client.RESTClient()}
	var last error
	err = wait.PollUntilContextTimeout(ctx, time.Second, versionTimeout, true, func(ctx context.Context) (bool, error) {
		v.seen, last = skew.Of(ctx, v.server)
		return last == nil || apierrors.IsForbidden(last), nil
	})
	switch {
	case apierrors.IsForbidden(last):
		o.Logger.Error(last, "The API server's version cannot be read, so it is not known whether it is too new; "+
			"grant it system:public-info-viewer")
		return v, nil
	case err != nil:
		return nil, fmt.Errorf("ask the API server for its version: %w", errors.Join(last, context.Cause(ctx)))
	}
	v.refused = v.judge(ctx)
	if v.refused == nil {
		return v, nil
	}
	o.Controllers = slices.DeleteFunc(slices.Clone(o.Controllers), func(name string) bool {
		return slices.Contains(v.refused.Controllers, name)
	})
	if len(o.Controllers) == 0 {
		return nil, v.refused
	}
	o.Logger.Error(v.refused, "Only some controllers are started", "started", o.Controllers)
	return v, nil
}

// judge says what a skew means, and which controllers must not run because of it.
func (v *versions) judge(ctx context.Context) *SkewError {
	versionSkew.Set(float64(v.seen.Newer()))
	refused := refusal(v.seen, v.options.Controllers)
	if v.seen.Newer() == 0 && refused == nil {
		return nil
	}
	lost, unknown := v.lost(ctx)
	if refused != nil && !v.options.AllowVersionSkew {
		refused.Lost, refused.Unknown = lost, unknown
		return refused
	}
	if v.seen.Newer() < 0 && refused == nil && unknown == nil && len(lost) == 0 {
		return nil
	}
	v.options.Logger.Info("The API server is not of the version that the types are of", "server", fmt.Sprintf("1.%d", v.seen.Server),
		"types", fmt.Sprintf("1.%d", v.seen.Types), "lost", lostText(lost, unknown))
	return nil
}

// lost finds the fields that the requested controllers would lose.
func (v *versions) lost(ctx context.Context) ([]string, error) {
	if v.seen.Newer() == 0 {
		return nil, nil
	}
	var kinds []skew.Kind
	for _, name := range v.options.Controllers {
		if kind, ok := typed[name]; ok {
			kinds = append(kinds, kind)
		}
	}
	return skew.Lost(ctx, v.server, kinds...)
}

// ready is the check of /readyz: a manager that does not run all requested controllers is not ready.
func (v *versions) ready() error {
	if v.refused == nil {
		return nil
	}
	return v.refused
}

// again is how often the version is read while a manager runs: an API server may be upgraded meanwhile.
const again = 10 * time.Minute

// Start reads the version from time to time, until ctx ends. If the running controllers would not be started on that
// version, the manager ends.
func (v *versions) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(again):
		}
		is, err := skew.Of(ctx, v.server)
		if err != nil || is == v.seen {
			continue // unreachable: every other request fails as well
		}
		v.seen = is
		if refused := v.judge(ctx); refused != nil && v.refused == nil {
			return refused
		}
	}
}

// NeedLeaderElection is false: a manager that waits may lead later.
func (v *versions) NeedLeaderElection() bool { return false }
