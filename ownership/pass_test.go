package ownership

import (
	"errors"
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestDropped(t *testing.T) {
	unlisted := errors.New("not listed yet")
	soon := reconcile.Result{RequeueAfter: StaleRetry}
	for name, c := range map[string]struct {
		err     error
		again   reconcile.Result
		dropped bool
	}{
		"no error":                  {},
		"an old read":               {fmt.Errorf("%w: it changed", ErrStale), soon, true},
		"what the caller calls old": {fmt.Errorf("pods: %w", unlisted), soon, true},
		"a parent that is gone":     {fmt.Errorf("web: %w", ErrGone), reconcile.Result{}, true},
		"an old read of one gone":   {fmt.Errorf("%w: %w", ErrStale, ErrGone), soon, true},
		"what somebody has to mend": {errors.New("forbidden"), reconcile.Result{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if again, dropped := Dropped(t.Context(), c.err, unlisted); again != c.again || dropped != c.dropped {
				t.Errorf("%+v, %t, want %+v, %t", again, dropped, c.again, c.dropped)
			}
		})
	}
	if _, dropped := Dropped(t.Context(), unlisted); dropped {
		t.Error("dropped for what nobody calls old")
	}
	if again := Unseen(t.Context(), "the cache of pods is behind"); again.RequeueAfter != UnseenRetry {
		t.Errorf("%+v", again)
	}
}
