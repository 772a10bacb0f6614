package manager

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
)

// starting is a manager whose Start does what it is told.
type starting struct {
	ctrl.Manager

	start func(ctx context.Context) error
}

func (s starting) Start(ctx context.Context) error { return s.start(ctx) }

// TestStart: a manager that is stopped ends, also if controller-runtime's never does, as when its caches are not filled
// yet; and not before one that is writing has had its time.
func TestStart(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		start func(context.Context) error
		want  error
		after time.Duration
	}{
		"it ends by itself": {func(context.Context) error { return broken }, broken, 0},
		"it is stopped":     {func(ctx context.Context) error { <-ctx.Done(); <-time.After(drain); return nil }, nil, time.Second + drain},
		"it ends badly":     {func(ctx context.Context) error { <-ctx.Done(); return broken }, broken, time.Second},
		"it never ends":     {func(context.Context) error { <-time.After(time.Hour); return broken }, nil, time.Second + drain + slack},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithTimeout(t.Context(), time.Second)
				defer stop()
				began := time.Now()
				if err := start(ctx, starting{start: c.start}); !errors.Is(err, c.want) || c.want == nil && err != nil {
					t.Errorf("got %v, want %v", err, c.want)
				}
				if took := time.Since(began); took != c.after {
					t.Errorf("it took %s, want %s", took, c.after)
				}
				<-time.After(time.Hour) // the bubble waits for all
			})
		})
	}
}
