package builder

import (
	"fmt"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
)

// This file refuses a second history of one kind in one manager: each of the two would count what the other one records
// as an undo.

// histories are the kinds that have a history, for the managers of this process.
var histories sync.Map

// managed is a kind in a manager, which is known by its HTTP client: there is one for each, and it can be compared.
type managed struct {
	manager *http.Client
	kind    schema.GroupKind
}

// claimKind notes that a kind has a history.
func claimKind(mgr ctrl.Manager, kind schema.GroupKind) error {
	if mgr.GetHTTPClient() == nil {
		return nil // a manager without an API server
	}
	if _, taken := histories.LoadOrStore(managed{mgr.GetHTTPClient(), kind}, true); taken {
		return fmt.Errorf("%s has a history in this manager already; there is one Controller or Attach for a kind", kind.Kind)
	}
	return nil
}
