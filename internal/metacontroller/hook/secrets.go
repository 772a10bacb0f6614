package hook

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// This file reads the Secrets and ConfigMaps that hooks refer to, and the ServiceAccounts that controllers name. Each
// is watched by its name, so that the next call uses a rotated one. No other Secret is ever held in memory, and a role
// can name with resourceNames which ones the manager may see.

// idle is for how long an object is watched after it was asked for last.
const idle = 10 * time.Minute

// WatchedSecrets reads Secrets, ConfigMaps and ServiceAccounts by name from caches of one object each. It needs the
// right to get, list and watch those objects. It is safe for concurrent use. Make one with [NewWatchedSecrets].
type WatchedSecrets struct {
	client kubernetes.Interface
	clock  clock.Clock
	// begin returns the context of a watch, which outlives the call that starts it.
	begin func() (context.Context, context.CancelFunc)

	mu      sync.Mutex
	watched map[reference]*single
}

var _ Secrets = (*WatchedSecrets)(nil)

// reference is an object that is referred to.
type reference struct {
	types.NamespacedName

	resource string
}

// NewWatchedSecrets returns secrets that are read as the identity of config, until ctx ends. It returns an error if no
// client can be made of config; it makes no request yet.
func NewWatchedSecrets(ctx context.Context, config *rest.Config, clk clock.Clock) (*WatchedSecrets, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("read secrets of hooks: %w", err)
	}
	return newWatchedSecrets(ctx, client, clk), nil
}

func newWatchedSecrets(ctx context.Context, client kubernetes.Interface, clk clock.Clock) *WatchedSecrets {
	return &WatchedSecrets{
		client: client, clock: clk, watched: map[reference]*single{},
		begin: func() (context.Context, context.CancelFunc) { return context.WithCancel(ctx) },
	}
}

// Secret returns a Secret as the API server last said, which is not to be changed. The error is a NotFound of the API
// if there is none. It is a Forbidden, at once, if it may not be listed or watched: give the role what the error says.
// Until the API server has answered for the first time it waits, as long as ctx lets it.
func (s *WatchedSecrets) Secret(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error) {
	api := s.client.CoreV1().Secrets(key.Namespace)
	return readWatched[*corev1.Secret](ctx, s, reference{key, "secrets"}, func() *single {
		return newSingle(s.client, &corev1.Secret{}, key.Name, calls[*corev1.SecretList]{api.List, api.Watch})
	})
}

// ConfigMap is as [WatchedSecrets.Secret].
func (s *WatchedSecrets) ConfigMap(ctx context.Context, key types.NamespacedName) (*corev1.ConfigMap, error) {
	api := s.client.CoreV1().ConfigMaps(key.Namespace)
	return readWatched[*corev1.ConfigMap](ctx, s, reference{key, "configmaps"}, func() *single {
		return newSingle(s.client, &corev1.ConfigMap{}, key.Name, calls[*corev1.ConfigMapList]{api.List, api.Watch})
	})
}

// ServiceAccount is as [WatchedSecrets.Secret].
func (s *WatchedSecrets) ServiceAccount(ctx context.Context, key types.NamespacedName) (*corev1.ServiceAccount, error) {
	api := s.client.CoreV1().ServiceAccounts(key.Namespace)
	return readWatched[*corev1.ServiceAccount](ctx, s, reference{key, "serviceaccounts"}, func() *single {
		return newSingle(s.client, &corev1.ServiceAccount{}, key.Name, calls[*corev1.ServiceAccountList]{api.List, api.Watch})
	})
}

func readWatched[T runtime.Object](ctx context.Context, s *WatchedSecrets, r reference, observe func() *single) (out T, err error) {
	if r.Namespace == "" || r.Name == "" {
		return out, errors.New("a reference needs a name and a namespace") // or all namespaces would be listed
	}
	o, err := s.of(r, observe).get(ctx, r.String()) //nolint:contextcheck // the watch is for later callers as well
	if err != nil {
		return out, err
	}
	out, ok := o.(T)
	if !ok {
		return out, apierrors.NewNotFound(corev1.Resource(r.resource), r.Name)
	}
	return out, nil
}

// of returns the cache of one object, which is started if there is none.
func (s *WatchedSecrets) of(r reference, observe func() *single) *single {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.watched[r]
	if !ok {
		o = observe()
		s.watched[r] = o
		ctx, stop := s.begin()
		go o.informer.RunWithContext(ctx)
		go s.expire(ctx, stop, r, o)
	}
	o.asked = s.clock.Now()
	return o
}

// expire ends a watch when the object has not been asked for in a while.
func (s *WatchedSecrets) expire(ctx context.Context, stop context.CancelFunc, r reference, o *single) {
	defer stop()
	timer := s.clock.NewTimer(idle)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C():
		}
		left := s.left(r, o)
		if left <= 0 {
			return
		}
		timer.Reset(left)
	}
}

// left returns how much longer an object is to be watched. At 0 or less its watch ends.
func (s *WatchedSecrets) left(r reference, o *single) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := idle - s.clock.Since(o.asked)
	if left <= 0 {
		delete(s.watched, r)
	}
	return left
}
