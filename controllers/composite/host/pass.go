package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cairn-dev/cairn/controllers/composite/hook"
	"github.com/cairn-dev/cairn/ownership"
)

// This file holds what passes of both kinds of controllers have in common: what they ask, and how those end that could not
// begin or that came to nothing through nobody's fault.

const (
	// UnseenRetry is how long a pass waits for the caches to show our own writes if no event comes first.
	UnseenRetry = 100 * time.Millisecond
	// StaleRetry is how long a pass waits after it was found to rest on an old read.
	StaleRetry = 200 * time.Millisecond
)

// Asker is a sync or finalize hook: see [hook.Hook.Ask].
type Asker interface {
	Ask(ctx context.Context, q *hook.Question) (*hook.Answer, error)
}

// Resources finds resources by the name that the API server serves them under: see [Environment.Resource].
type Resources interface {
	Resource(apiVersion, resource string) (Resource, error)
}

// Declared finds a resource that a controller names as that of its parents or children. It is an error to name the revisions
// of composite parents: they are the manager's own, and no event of one would wake anybody. Other errors are those of
// [Environment.Resource].
func Declared(r Resources, apiVersion, resource string) (Resource, error) {
	found, err := r.Resource(apiVersion, resource)
	if err == nil && found.Kind == Revisions.Kind {
		return Resource{}, fmt.Errorf("%s are what this manager records of parents; nothing can be made of them, or attached to them", found)
	}
	return found, err
}

// Resyncs wake parents although nothing happened: see [Resync].
type Resyncs interface {
	After(key types.NamespacedName, d time.Duration)
	Take(key types.NamespacedName) bool
	Put(key types.NamespacedName)
	Forget(key types.NamespacedName)
}

// Unseen ends a pass that must not begin yet: the caches do not show what was written last. reason says which of it.
func Unseen(ctx context.Context, reason string) reconcile.Result {
	log.FromContext(ctx).V(1).Info("Waiting for our own writes", "reason", reason)
	return reconcile.Result{RequeueAfter: UnseenRetry}
}

// Dropped reports whether err is nobody's fault, so that the pass that it ended is to be dropped, and when it is to be
// made again: soon after an old read ([ownership.ErrStale], [ErrNotSynced]), and not at all if the parent is gone.
func Dropped(ctx context.Context, err error) (again reconcile.Result, dropped bool) {
	switch {
	case errors.Is(err, ownership.ErrStale), errors.Is(err, ErrNotSynced):
		again = reconcile.Result{RequeueAfter: StaleRetry}
	case errors.Is(err, ownership.ErrGone): // the cache will show it, and that wakes us if there is a new one
	default:
		return reconcile.Result{}, false
	}
	log.FromContext(ctx).V(1).Info("Dropped a pass", "reason", err.Error())
	return again, true
}
