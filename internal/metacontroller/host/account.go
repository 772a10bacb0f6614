package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/api/cairn/v1alpha1"
	"github.com/cairn-dev/cairn/internal/hosting"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
	"github.com/cairn-dev/cairn/internal/watching"
)

// This file gives a controller the rights of the ServiceAccount that it names, by impersonation: caches, clients and
// Secrets of their own for each account, so that nobody sees what another one was allowed to list. Connections are
// shared, and what is no secret: events, the answers of hooks, which are remembered by the UIDs of parents.

// Reasons of [hosting.Ready] for a controller whose account cannot be used. Package hosting has more.
const (
	// InvalidServiceAccount: what the annotation says is no name.
	InvalidServiceAccount = "InvalidServiceAccount"
	// NoServiceAccount: it names none, and only those that do are run.
	NoServiceAccount = "NoServiceAccount"
)

// accountLinger is for how long the caches of an account are kept after its last controller ended.
const accountLinger = 2 * time.Minute

// For returns the environment for the controller that o describes, until ctx ends: with the rights of the
// ServiceAccount that it names, and e itself if it names none. The error is a [*hosting.Error] with one of the reasons
// above, or the API server's: try again later.
func (e *Environment) For(ctx context.Context, o client.Object) (*Environment, error) {
	account, err := v1alpha1.ServiceAccountOf(o)
	switch {
	case err != nil:
		return nil, &hosting.Error{Reason: InvalidServiceAccount, Err: err}
	case account != types.NamespacedName{} && e.accounts == nil:
		return nil, &hosting.Error{Reason: InvalidServiceAccount, Err: errors.New("this manager acts for no other account")}
	case account != types.NamespacedName{}:
		return e.accounts.use(ctx, e, account)
	case e.named:
		return nil, &hosting.Error{Reason: NoServiceAccount, Err: fmt.Errorf("it names no ServiceAccount: annotate it with "+
			"%s=NAMESPACE/NAME, and apply what cairn roles prints; the manager's own account is used with --hosted-identity=shared only",
			v1alpha1.ServiceAccountAnnotation)}
	default:
		return e, nil
	}
}

// ServerFor is [Environment.For] for who needs no hooks.
func (e *Environment) ServerFor(ctx context.Context, o client.Object) (*watching.Server, error) {
	own, err := e.For(ctx, o)
	if err != nil {
		return nil, err
	}
	return own.Server, nil
}

// accounts are the environments of all accounts in use.
type accounts struct {
	config    *rest.Config
	namespace string
	// watched looks accounts up as the manager.
	watched *hook.WatchedSecrets
	// life is that of the manager.
	life context.Context //nolint:containedctx // a cache outlives the build that starts it

	mu   sync.Mutex
	open map[types.NamespacedName]*account
}

// account is an environment that has users, or had some until just now.
type account struct {
	env   *Environment
	end   context.CancelFunc
	users int
	idle  time.Time
}

// use returns the environment of an account until ctx ends.
func (a *accounts) use(ctx context.Context, shared *Environment, name types.NamespacedName) (*Environment, error) {
	a.mu.Lock()
	of := a.open[name]
	if of == nil {
		var err error
		if of, err = a.make(shared, name); err != nil { //nolint:contextcheck // it outlives ctx
			a.mu.Unlock()
			return nil, err
		}
		a.open[name] = of
	}
	of.users++
	a.mu.Unlock()
	context.AfterFunc(ctx, func() { a.release(name, of) })
	if err := a.exists(ctx, name); err != nil {
		return nil, err
	}
	// What is asked does not matter: whether it may be asked does.
	_, err := of.env.Authority.Allowed(ctx, "get", schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}, name.Namespace)
	if apierrors.IsForbidden(err) {
		return nil, &hosting.Error{Reason: hosting.ImpersonationForbidden, Err: fmt.Errorf(
			"the manager may not act as ServiceAccount %s: apply what cairn roles prints: %w", name, err)}
	}
	if err != nil {
		return nil, fmt.Errorf("act as ServiceAccount %s: %w", name, err)
	}
	return of.env, nil
}

// exists returns a [*hosting.Error] if an account does not exist, or if the manager may not find that out. Any other
// error means that it is not known.
func (a *accounts) exists(ctx context.Context, name types.NamespacedName) error {
	_, err := a.watched.ServiceAccount(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		return &hosting.Error{Reason: hosting.ServiceAccountNotFound, Err: fmt.Errorf(
			"ServiceAccount %s does not exist: create it, or apply what cairn roles prints", name)}
	case apierrors.IsForbidden(err):
		return &hosting.Error{Reason: hosting.ImpersonationForbidden, Err: fmt.Errorf(
			"the manager may not look up ServiceAccount %s: apply what cairn roles prints: %w", name, err)}
	case err != nil:
		return fmt.Errorf("look up ServiceAccount %s: %w", name, err)
	}
	return nil
}

// living sends requests as an account while it exists, as the API server accepts the tokens of an account. To
// impersonate an account that was deleted is allowed.
type living struct {
	http.RoundTripper

	accounts *accounts
	name     types.NamespacedName
}

// RoundTrip implements [http.RoundTripper].
func (l *living) RoundTrip(r *http.Request) (*http.Response, error) {
	err := l.accounts.exists(r.Context(), l.name)
	if err == nil {
		return l.RoundTripper.RoundTrip(r)
	}
	if r.Body != nil {
		_ = r.Body.Close() // the response is the error
	}
	refused, ok := errors.AsType[*hosting.Error](err)
	if !ok {
		return nil, err
	}
	// A status of the API, so that every caller knows that nothing was done.
	status := apierrors.NewUnauthorized(err.Error()).Status()
	status.Reason = metav1.StatusReason(refused.Reason)
	status.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("Status"))
	body, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusUnauthorized, Request: r,
		Header: http.Header{"Content-Type": {runtime.ContentTypeJSON}}, Body: io.NopCloser(bytes.NewReader(body)),
	}, nil
}

// release ends an account that nobody has used for a while.
func (a *accounts) release(name types.NamespacedName, of *account) {
	clock := of.env.Clock
	a.mu.Lock()
	of.users--
	of.idle = clock.Now()
	unused := of.users == 0
	a.mu.Unlock()
	if !unused {
		return
	}
	select {
	case <-clock.After(accountLinger):
	case <-a.life.Done():
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if of.users == 0 && clock.Since(of.idle) >= accountLinger && a.open[name] == of {
		of.end()
		delete(a.open, name)
	}
}

// make returns the environment of an account, whose caches run until the account ends or the manager does.
func (a *accounts) make(shared *Environment, name types.NamespacedName) (*account, error) {
	config := rest.CopyConfig(a.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + name.Namespace + ":" + name.Name}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &living{next, a, name} })
	by, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	asked, err := kubernetes.NewForConfigAndClient(config, by)
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(a.life)
	server, run, err := shared.As(watching.Options{
		Config: config, HTTPClient: by, Account: "ServiceAccount " + name.String(), Clock: shared.Clock,
		Authority: watching.AuthorityAs(asked, shared.Authority), Namespace: a.namespace,
		Begun: func() error { return nil }, Over: func() {},
	})
	if err != nil {
		end()
		return nil, err
	}
	env := *shared
	env.Host = &hosting.Host{Server: server, Recorder: shared.Recorder, Workers: shared.Workers}
	if env.Secrets, err = hook.NewWatchedSecrets(ctx, config, shared.Clock); err != nil {
		end()
		return nil, err
	}
	go func() { _ = run(ctx) }() // ends with ctx; what cannot be listed is told to whoever asks for it
	return &account{env: &env, end: end}, nil
}
