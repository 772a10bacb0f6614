package ownership

import (
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// This file tells failures that changed nothing from those that may have.

// Unknown reports whether an error of a write leaves open what the API server has done: its answer was lost, or it failed
// itself. Of several errors, one is enough. After it a [Ledger] does not know what to wait for: the caller drops what its
// [Confirmer] knows of the parent, so that the next pass compares the cache with the API server before it acts.
func Unknown(err error) bool {
	switch e := err.(type) { //nolint:errorlint // it looks at every error there is inside
	case nil:
		return false
	case apierrors.APIStatus:
		return e.Status().Code >= http.StatusInternalServerError
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), Unknown)
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return Unknown(inner)
		}
	}
	return true
}
