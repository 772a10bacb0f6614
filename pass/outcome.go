package pass

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/cairn-dev/cairn/ownership"
)

// This file says what an error of a write means.

// OutcomeUnknown reports whether an error of a write leaves open what the API server has done: its answer was lost, or
// it failed itself. Of several joined errors, one is enough. See [Pass.NoteUnknownOutcome].
func OutcomeUnknown(err error) bool {
	if err == ownership.ErrStale || err == ownership.ErrGone { //nolint:errorlint // as below
		return false // a response came
	}
	switch e := err.(type) { //nolint:errorlint // it looks at every error there is inside
	case nil:
		return false
	case apierrors.APIStatus:
		return e.Status().Code >= http.StatusInternalServerError
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), OutcomeUnknown)
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return OutcomeUnknown(inner)
		}
	}
	return true
}

// OverQuota reports whether a quota has no room for the object of a create request. The API has no reason for that, so
// the message decides. A webhook or a policy that mentions a quota has its own words before it.
func OverQuota(err error) bool {
	return apierrors.IsForbidden(err) &&
		(strings.Contains(err.Error(), "forbidden: exceeded quota: ") || strings.Contains(err.Error(), "forbidden: status unknown for quota: "))
}

// AsNamespaceTerminating turns the error of a create in a terminating namespace into one that wraps
// [ownership.ErrGone]: nothing can be created there again, so that the pass is not retried. It returns every other
// error unchanged. Call it with a single error.
func AsNamespaceTerminating(err error) error {
	if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return err
	}
	return &namespaceTerminatingError{err}
}

type namespaceTerminatingError struct{ err error }

func (e *namespaceTerminatingError) Error() string {
	return "its namespace is being deleted: " + e.err.Error()
}

func (e *namespaceTerminatingError) Unwrap() []error { return []error{ownership.ErrGone, e.err} }

// Unreported reports whether a pass whose writes failed must not write a status: see [IsStale]. A pass in a terminating
// namespace writes one, because the parent may stay there for a long time while its children are deleted.
func Unreported(failed error) bool {
	if _, ok := errors.AsType[*namespaceTerminatingError](failed); ok {
		return errors.Is(failed, ownership.ErrStale)
	}
	return IsStale(failed)
}
