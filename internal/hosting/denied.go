package hosting

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// This file finds passes of a hosted controller that fail because a permission is missing. Meanwhile the
// condition Ready is False.

// Reasons of [Ready] when a permission is missing. Those about the account are also the reasons of the 401 with which
// its requests are answered.
const (
	// Forbidden: the controller runs but its passes fail because a permission is missing.
	Forbidden = "Forbidden"
	// ServiceAccountNotFound: the account that it names does not exist.
	ServiceAccountNotFound = "ServiceAccountNotFound"
	// ImpersonationForbidden: the manager may not act as that account, or not find out whether it exists.
	ImpersonationForbidden = "ImpersonationForbidden"
)

// denials makes the passes of one hosted controller and keeps the last refusal of each parent. It is safe for
// concurrent use.
type denials struct {
	reconcile.Reconciler

	// changed is called when the reported refusal has changed.
	changed func()

	mu sync.Mutex
	of map[reconcile.Request]error
	// shown is the parent whose refusal is reported. It changes only when that parent is no longer refused, so that
	// parents that fail in turn cause no writes.
	shown reconcile.Request
}

// Reconcile makes a pass and notes whether a permission was missing. The last pass over each parent counts.
func (d *denials) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	result, err := d.Reconciler.Reconcile(ctx, req)
	if d.note(req, denial(err)) {
		d.changed()
	}
	return result, err
}

// note keeps the refusal of a parent, nil for none. It returns true if another refusal is reported now.
func (d *denials) note(req reconcile.Request, denied error) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	was := d.reportedLocked()
	if denied == nil {
		delete(d.of, req)
	} else {
		d.of[req] = denied
	}
	if _, still := d.of[d.shown]; !still {
		for d.shown = range d.of {
			break
		}
	}
	now := d.reportedLocked()
	return (was == nil) != (now == nil) || was != nil && was.Error() != now.Error()
}

// reported returns the error to report, nil if no pass lacks a permission.
func (d *denials) reported() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.reportedLocked()
}

func (d *denials) reportedLocked() error {
	denied := d.of[d.shown]
	if denied == nil {
		return nil
	}
	reason := reasonOf(denied)
	return &Error{Reason: reason, Event: reason, Err: fmt.Errorf("pass over %s: %w", d.shown, denied)}
}

// reasonOf returns the reason of [Ready] for a refusal.
func reasonOf(denied error) string {
	switch r := string(apierrors.ReasonForError(denied)); {
	case r == ServiceAccountNotFound, r == ImpersonationForbidden:
		return r
	case strings.Contains(denied.Error(), `" cannot impersonate`):
		return ImpersonationForbidden
	default:
		return Forbidden
	}
}

// refusals are parts of the messages of a 403 because a permission is missing. They come from the authorizers, from the
// admission plugin OwnerReferencesPermissionEnforcement, and from the check of new roles. Quotas, policies and webhooks
// have the same code and reason, and other messages.
var refusals = []string{`" cannot `, "cannot set blockOwnerDeletion if", "is attempting to grant RBAC permissions"}

// denial returns the first error in err about a missing permission, nil if there is none.
func denial(err error) error {
	switch e := err.(type) { //nolint:errorlint // it looks at every error there is inside
	case apierrors.APIStatus:
		names := func(part string) bool { return strings.Contains(e.Status().Message, part) }
		if apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) && slices.ContainsFunc(refusals, names) {
			return err
		}
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			if found := denial(inner); found != nil {
				return found
			}
		}
	default:
		if inner := errors.Unwrap(err); inner != nil {
			return denial(inner)
		}
	}
	return nil
}
