package fault

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/client-go/rest"
)

// This file keeps a manager running: whoever is killed is started again, as a kubelet would.

// keeper starts one manager, again and again.
type keeper struct {
	faults *Injector
	config *rest.Config
	run    func(context.Context, *rest.Config) error
	failed context.CancelCauseFunc // ends the run of the scenario

	mu      sync.Mutex
	wanted  bool
	stopped chan struct{} // closed when the last life is over; nil before the first
}

func (k *keeper) start(ctx context.Context) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.wanted {
		return
	}
	k.wanted = true
	stopped := make(chan struct{})
	k.stopped = stopped
	go func() {
		defer close(stopped)
		for k.live(ctx) {
		}
	}()
}

// live is one life of the manager. It returns whether there is to be another one.
func (k *keeper) live(ctx context.Context) bool {
	process := k.begin(ctx)
	if process == nil {
		return false
	}
	err := k.run(process.Context(), process.Config(k.config)) //nolint:contextcheck // the process ends with ctx, or earlier
	if process.Killed() {
		return ctx.Err() == nil
	}
	if ctx.Err() == nil {
		k.failed(fmt.Errorf("the manager ended by itself: %w", errors.Join(err, errors.New("nobody killed it"))))
	}
	return false
}

// begin starts a process unless stop came first.
func (k *keeper) begin(ctx context.Context) *Process {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.wanted || ctx.Err() != nil {
		return nil
	}
	return k.faults.Start(ctx)
}

func (k *keeper) stop() {
	k.mu.Lock()
	k.wanted = false
	stopped := k.stopped
	k.mu.Unlock()
	k.faults.Kill()
	if stopped != nil {
		<-stopped
	}
}
