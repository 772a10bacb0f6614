package ownership

import (
	"context"
	"errors"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// This file ends passes that could not begin, or that came to nothing through nobody's fault.

const (
	// UnseenRetry is how long a pass waits for the caches to show our own writes if no event comes first.
	UnseenRetry = 100 * time.Millisecond
	// StaleRetry is how long a pass waits after it was found to rest on an old read.
	StaleRetry = 200 * time.Millisecond
)

// Unseen ends a pass that must not begin yet: the caches do not show what was written last. reason says which of it: see
// [Ledger.Read].
func Unseen(ctx context.Context, reason string) reconcile.Result {
	log.FromContext(ctx).V(1).Info("Waiting for our own writes", "reason", reason)
	return reconcile.Result{RequeueAfter: UnseenRetry}
}

// Dropped reports whether err is nobody's fault, so that the pass that it ended is to be dropped, and when it is to be made
// again: soon after an old read, and not at all if the parent is gone ([ErrGone]). Of an old read tell [ErrStale] and
// whatever else the caller names.
func Dropped(ctx context.Context, err error, stale ...error) (again reconcile.Result, dropped bool) {
	switch {
	case errors.Is(err, ErrStale), slices.ContainsFunc(stale, func(s error) bool { return errors.Is(err, s) }):
		again = reconcile.Result{RequeueAfter: StaleRetry}
	case errors.Is(err, ErrGone): // the cache will show it, and that wakes us if there is a new one
	default:
		return reconcile.Result{}, false
	}
	log.FromContext(ctx).V(1).Info("Dropped a pass", "reason", err.Error())
	return again, true
}
