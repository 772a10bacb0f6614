package ownership

import (
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// This file tells errors that say what the API server did from those that do not.

// OutcomeUnknown reports whether an error of a write leaves open what the API server has done: its answer was lost, or it
// failed itself. Of several joined errors, one is enough. A [Ledger] cannot wait for such a write, so that the caller
// tells its [Confirmer] to forget the parent, and the next step waits for a consistent list.
func OutcomeUnknown(err error) bool {
	if err == ErrStale || err == ErrGone { //nolint:errorlint // as below
		return false // it says what there is
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
