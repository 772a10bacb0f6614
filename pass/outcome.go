package pass

import (
	"fmt"
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
// [ownership.ErrGone]. That is no failure: nothing can be created there any more, so the pass is to be dropped. It
// returns every other error as it is. It is for a single error, not for joined ones.
func AsNamespaceTerminating(err error) error {
	if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return err
	}
	return fmt.Errorf("%w: its namespace is being deleted: %w", ownership.ErrGone, err)
}
