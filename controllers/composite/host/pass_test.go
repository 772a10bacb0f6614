package host

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cairn-dev/cairn/ownership"
)

// TestDropped: what is nobody's fault is dropped, also where it comes with something else, and all the rest is not.
func TestDropped(t *testing.T) {
	other := errors.New("no more pods")
	for _, c := range []struct {
		err     error
		dropped bool
		again   time.Duration
	}{
		{fmt.Errorf("%w: it shows the past", ownership.ErrStale), true, StaleRetry},
		{errors.Join(other, ownership.ErrStale), true, StaleRetry},
		{fmt.Errorf("Pod of v1: %w", ErrNotSynced), true, StaleRetry},
		{fmt.Errorf("CatSet cats: %w", ownership.ErrGone), true, 0},
		{other, false, 0},
		{nil, false, 0},
	} {
		again, dropped := Dropped(t.Context(), c.err)
		if dropped != c.dropped || again != (reconcile.Result{RequeueAfter: c.again}) {
			t.Errorf("%v: %v, %+v", c.err, dropped, again)
		}
	}
}
