package fault

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// This file keeps a manager running: whoever is killed is started again, as a kubelet would.

// Keeper starts one manager, again and again.
type Keeper struct {
	// Faults is what kills it, and what all of its lives have in common.
	Faults *Injector
	// Config is what it runs with, without the faults.
	Config *rest.Config
	// Run runs the manager until its context ends, and builds everything afresh each time, caches included. It logs to the
	// logger of its context.
	Run func(context.Context, *rest.Config) error
	// Failed is told of a manager that ended although nobody killed it. It is not started again.
	Failed func(error)

	mu      sync.Mutex
	wanted  bool
	stopped chan struct{} // closed when the last life is over; nil before the first
}

// Start starts the manager unless it is to run already. Its last life ends with ctx at the latest.
func (k *Keeper) Start(ctx context.Context) {
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
func (k *Keeper) live(ctx context.Context) bool {
	process := k.begin(ctx)
	if process == nil {
		return false
	}
	life := klog.NewContext(process.Context(), process.Logger(klog.FromContext(ctx)))
	err := k.Run(life, process.Config(k.Config)) //nolint:contextcheck // the process ends with ctx, or earlier
	if process.Killed() {
		return ctx.Err() == nil
	}
	if ctx.Err() == nil {
		k.Failed(fmt.Errorf("the manager ended by itself: %w", errors.Join(err, errors.New("nobody killed it"))))
	}
	return false
}

// begin starts a process unless stop came first.
func (k *Keeper) begin(ctx context.Context) *Process {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.wanted || ctx.Err() != nil {
		return nil
	}
	return k.Faults.Start(ctx)
}

// Stop kills the manager and waits until it is gone. Start starts it again.
func (k *Keeper) Stop() {
	k.mu.Lock()
	k.wanted = false
	stopped := k.stopped
	k.mu.Unlock()
	k.Faults.Kill()
	if stopped != nil {
		<-stopped
	}
}

// Starting reports whether the manager is to run and has no caches yet, so that it asks for nothing whatever there is
// to do.
func (k *Keeper) Starting() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.wanted && k.Faults.Starts()
}
