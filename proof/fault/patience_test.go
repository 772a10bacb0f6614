package fault

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestPatient: a run ends after its time, or with its caller.
func TestPatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, done := patient(t.Context(), 5*time.Second)
		defer done()
		<-ctx.Done()
		if took := time.Since(began); took != 5*time.Second || !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			t.Errorf("it ends after %s: %v", took, context.Cause(ctx))
		}
		ctx, done = patient(t.Context(), time.Hour)
		done()
		if !errors.Is(context.Cause(ctx), context.Canceled) {
			t.Error(context.Cause(ctx))
		}
	})
}
