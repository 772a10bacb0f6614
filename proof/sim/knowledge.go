package sim

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cairn-dev/cairn/proof/check"
)

// This file takes down what a pass could know: how far the caches were when it began, and which requests it made.
// Package check judges by that, and nothing here takes a violation off.

type passKey struct{}

// passOf is the pass that a request belongs to, nil if it belongs to none.
func passOf(ctx context.Context) *check.Pass {
	p, _ := ctx.Value(passKey{}).(*check.Pass)
	return p
}

// knowing wraps the reconciler of one controller so that the requests of a pass say which pass they are from.
type knowing struct {
	reconcile.Reconciler

	process *process
	// number is which of the controllers of the process it is.
	number int

	// mu guards passes: how many there were for each parent. The passes of one parent have an order, those of two do not.
	mu     sync.Mutex
	passes map[reconcile.Request]int
}

func (k *knowing) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	return k.Reconciler.Reconcile(context.WithValue(ctx, passKey{}, k.begin(r)), r)
}

// begin says what a pass that begins now can know.
func (k *knowing) begin(r reconcile.Request) *check.Pass {
	k.mu.Lock()
	k.passes[r]++
	nth := k.passes[r]
	k.mu.Unlock()
	p := &check.Pass{
		Instance: fmt.Sprintf("%s-%d", k.process.name, k.process.run), Views: map[schema.GroupVersionResource]uint64{},
		Born: k.process.born, At: k.process.world.clock.Now(),
	}
	if clock := k.process.clock; clock != nil {
		p.Clock = clock.Now()
	}
	p.For = fmt.Sprintf("controller %d of %s", k.number, r)
	p.ID = fmt.Sprintf("%s/%d/%s/%d", p.Instance, k.number, r, nth)
	for _, i := range k.process.manager.caches.order {
		p.Views[i.resource] = i.version()
	}
	return p
}
