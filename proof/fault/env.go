package fault

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/cairn-dev/cairn/proof/check/recording"
)

// This file is what one run of a scenario has: a namespace of its own, and managers that come back when they are
// killed.

const (
	// poll is the least pause between two looks at a condition, and look the longest one, if nothing happens meanwhile. A
	// sweep does many runs at once, and what it asks the API server is time that the managers do not have.
	poll = 150 * time.Millisecond
	look = 450 * time.Millisecond
)

// cleanup bounds how long the end of a run may take. It is as generous as [patience], and for the same reason: beside
// the other runs and the tests of other packages a deletion has taken more than ten seconds.
const cleanup = 2 * time.Minute

// Env is one run of a scenario.
type Env struct {
	// Namespace is fresh. Nothing else is ever in it.
	Namespace string
	// User is how the scenario reaches the API server: without faults.
	User *rest.Config
	// Faults is the injector of the run's manager; of several, the first one's. No fault touches the others.
	Faults *Injector

	// Client is one for User.
	Client kubernetes.Interface

	managers []*Keeper
	changed  func() <-chan struct{}
	wire     *recording.Wire // what all managers wrote
}

// patient returns a context that ends after a time, in which a time that the machine is suspended counts as a second.
func patient(ctx context.Context, most time.Duration) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	go func() {
		second := time.NewTicker(time.Second)
		defer second.Stop()
		for left := most; left > 0; left -= time.Second {
			select {
			case <-second.C:
			case <-ctx.Done():
				return
			}
		}
		end(context.DeadlineExceeded)
	}()
	return ctx, func() { end(nil) }
}

// Until calls f, at the beginning and whenever something has changed in the namespace, until it returns nil. When the
// run is over first, the error is the last one of f.
func (e *Env) Until(ctx context.Context, what string, f func(context.Context) error) error {
	var last error
	for {
		changed := e.changed()
		err := f(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		pause(ctx, poll) // several changes come at once
		select {
		case <-changed:
		case <-time.After(look):
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %w", what, context.Cause(ctx), last)
		}
	}
}

type namespaceKey struct{}

// NamespaceOf returns the namespace of the run that a manager belongs to, by the context that it got; "" if it belongs
// to none. All of its lives have the same.
func NamespaceOf(ctx context.Context) string {
	namespace, _ := ctx.Value(namespaceKey{}).(string)
	return namespace
}

// managerIn is the sweep's manager in a run.
func (r *run) managerIn(namespace string) func(context.Context, *rest.Config) error {
	return func(ctx context.Context, cfg *rest.Config) error {
		return r.Manager(context.WithValue(ctx, namespaceKey{}, namespace), cfg)
	}
}

// pause waits, but not longer than ctx.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// Start starts the managers with empty caches. From now on, whenever a fault kills one, it is started again. It does
// nothing to one that runs.
func (e *Env) Start(ctx context.Context) {
	for _, k := range e.managers {
		k.Start(ctx)
	}
}

// Stop kills the managers and waits until they are gone. [Env.Start] starts them again, with empty caches; the count of
// requests goes on.
func (e *Env) Stop() {
	for _, k := range e.managers {
		k.Stop()
	}
}

// makeNamespace creates a namespace in which pods can be created at once.
func makeNamespace(ctx context.Context, c kubernetes.Interface, why string) (string, error) {
	ns, err := c.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "fault-",
		Annotations:  map[string]string{"sandbox.cairn.dev/run": why},
	}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("create a namespace: %w", err)
	}
	err = wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		_, err := c.CoreV1().ServiceAccounts(ns.Name).Get(ctx, "default", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return ns.Name, fmt.Errorf("wait for the default service account of namespace %s: %w", ns.Name, err)
	}
	return ns.Name, nil
}

// emptyNamespace deletes the pods of a namespace at once, whatever keeps them: nodes hold only so many. The namespace
// itself stays. Its deletion asks for every resource that there is, which takes longer than the run did.
func emptyNamespace(ctx context.Context, c kubernetes.Interface, name string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanup)
	defer cancel()
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	if err := c.CoreV1().Pods(name).DeleteCollection(ctx, now, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("delete the pods of namespace %s: %w", name, err)
	}
	return nil
}
