package fault

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// This file is what one run of a scenario has: a namespace of its own, and a manager that comes back when it is killed.

// poll is the pause between two looks at a condition.
const poll = 10 * time.Millisecond

// cleanup bounds how long the end of a run may take.
const cleanup = 10 * time.Second

// Env is one run of a scenario.
type Env struct {
	// Namespace is fresh, and gone after the run.
	Namespace string
	// User is how the scenario reaches the API server: without faults.
	User *rest.Config
	// Faults is the injector of the run's manager.
	Faults *Injector

	manager *rest.Config
	run     func(context.Context, *rest.Config) error
	failed  context.CancelCauseFunc // ends the run

	mu      sync.Mutex
	wanted  bool
	stopped chan struct{} // closed when the last life is over; nil before the first
}

// Until polls f until it returns nil. When the run is over first, the error is the last one of f.
func (*Env) Until(ctx context.Context, what string, f func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		err := f(ctx)
		if err != nil && ctx.Err() == nil {
			last = err
		}
		return err == nil, nil
	})
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w: %w", what, context.Cause(ctx), errors.Join(last))
}

// Start starts the manager with empty caches. From now on, whenever a fault kills it, it is started again. It does
// nothing if the manager runs.
func (e *Env) Start(ctx context.Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.wanted {
		return
	}
	e.wanted = true
	stopped := make(chan struct{})
	e.stopped = stopped
	go func() {
		defer close(stopped)
		for e.live(ctx) {
		}
	}()
}

// live is one life of the manager. It returns whether there is to be another one.
func (e *Env) live(ctx context.Context) bool {
	process := e.begin(ctx)
	if process == nil {
		return false
	}
	err := e.run(process.Context(), process.Config(e.manager)) //nolint:contextcheck // the process ends with ctx, or earlier
	if process.Killed() {
		return ctx.Err() == nil
	}
	if ctx.Err() == nil {
		e.failed(fmt.Errorf("the manager ended by itself: %w", errors.Join(err, errors.New("nobody killed it"))))
	}
	return false
}

// begin starts a process unless Stop came first.
func (e *Env) begin(ctx context.Context) *Process {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.wanted || ctx.Err() != nil {
		return nil
	}
	return e.Faults.Start(ctx)
}

// Stop kills the manager and waits until it is gone. [Env.Start] starts it again, with empty caches; the count of its
// requests goes on.
func (e *Env) Stop() {
	e.mu.Lock()
	e.wanted = false
	stopped := e.stopped
	e.mu.Unlock()
	e.Faults.Kill()
	if stopped != nil {
		<-stopped
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

// dropNamespace deletes a namespace and does not wait for it. Its pods go at once, whatever keeps them.
func dropNamespace(ctx context.Context, c kubernetes.Interface, name string) error {
	if name == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanup)
	defer cancel()
	if err := c.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete namespace %s: %w", name, err)
	}
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	if err := c.CoreV1().Pods(name).DeleteCollection(ctx, now, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("delete the pods of namespace %s: %w", name, err)
	}
	return nil
}
