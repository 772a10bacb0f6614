package sim

import (
	"context"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cairn-dev/cairn/sandbox/check"
	"github.com/cairn-dev/cairn/sandbox/sim/model"
)

// This file separates what a controller did wrong from what it could not know. Between the moment at which a pass begins
// and the moment at which its write arrives, others act. A write that breaks a promise only because of that is nobody's
// fault, and no controller can prevent it.
//
// So a broken promise counts if it is broken in the world that the pass could know, too. That is what its caches showed
// when it began, and what it has read past them; what was true when it began, where the promise is to look past the
// caches (adopting, recording); and in any case all that this process wrote, and all that the managers wrote that ended
// before it started. Of what another active manager wrote before the pass began, it counts what two managers promise.

// pass is what a controller could know when it began a pass.
type pass struct {
	// began is the server's resource version, seen those up to which the caches were filled.
	began uint64
	seen  map[schema.GroupVersionResource]uint64
	// looks are what it has read past the caches.
	looks []look
	// from is the process whose pass it is.
	from *process
}

// twoManagers are the promises that hold although another manager is active (F13 of the failure modes). P1 is not among
// them: the same revision gives the same names, so that two managers make one pod; but if one of them has seen an edit and
// the other has not, each makes its own, until either sees both.
var twoManagers = []string{"H1", "H2", "H5", "R1"}

// look is one read past the caches: of one object, or, without a name, of all.
type look struct {
	key check.Key
	rv  uint64
}

type passKey struct{}

// knowing wraps a reconciler so that the requests of a pass say which pass they are from.
type knowing struct {
	reconcile.Reconciler

	process *process
}

func (k knowing) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	p := &pass{
		began: k.process.world.version.Load(),
		seen:  map[schema.GroupVersionResource]uint64{},
		from:  k.process,
	}
	for _, i := range k.process.manager.caches.order {
		p.seen[i.resource], _ = strconv.ParseUint(i.store.LastStoreSyncResourceVersion(), 10, 64)
	}
	return k.Reconciler.Reconcile(context.WithValue(ctx, passKey{}, p), r)
}

// blamed returns the violations that are left when what nobody could know is taken off.
func (w *world) blamed(found []check.Violation, kinds []check.Kind) []check.Violation {
	return slices.DeleteFunc(found, func(v check.Violation) bool {
		c := w.writers[v.RV]
		if c == nil || c.pass == nil {
			return false
		}
		at := slices.IndexFunc(w.history.Events, func(e check.Event) bool { return e.RV == v.RV })
		e := w.history.Events[at]
		known := w.known(c, e, v.Invariant, kinds)
		for _, again := range check.Check(known, kinds...) {
			if again.Invariant == v.Invariant {
				return false
			}
		}
		w.stats.count("excused " + v.Invariant)
		return true
	})
}

// looked takes down that a pass has read past the caches.
func (p *pass) looked(r model.Request, rv uint64) {
	if p != nil && (r.Verb == model.VerbGet || r.Verb == model.VerbList) {
		p.looks = append(p.looks, look{check.Key{Resource: r.Resource, Namespace: r.Namespace, Name: r.Name}, rv})
	}
}

// known is the history of one write, in the world that its pass could know.
func (w *world) known(c *call, e check.Event, invariant string, kinds []check.Kind) *check.History {
	revision := slices.ContainsFunc(kinds, func(k check.Kind) bool { return e.Key.Resource == k.Revisions })
	checked := adopts(e) || revision && e.New != nil && e.New.GetDeletionTimestamp() == nil
	objects := map[check.Key]client.Object{}
	for _, past := range w.history.Events {
		if past.RV >= e.RV {
			break
		}
		if past.RV > c.saw(past.Key, checked) && !c.pass.remembers(w.writers[past.RV], past.RV, invariant) {
			continue
		}
		if past.New == nil {
			delete(objects, past.Key)
		} else {
			objects[past.Key] = past.New
		}
	}
	if was := objects[e.Key]; was != nil && e.Old != nil && was.GetUID() == e.Old.GetUID() {
		e.Old = was
	}
	return &check.History{
		Origin: e.RV - 1, Complete: e.RV, Initial: objects, Events: []check.Event{e}, Audited: true, Manager: isManager,
	}
}

// saw is the resource version up to which the pass of a request knew an object. checked says that the write had to be
// checked past the caches.
func (c *call) saw(key check.Key, checked bool) uint64 {
	seen, watched := c.pass.seen[key.Resource]
	if checked || !watched {
		seen = c.pass.began
	}
	for _, l := range c.pass.looks {
		if l.rv <= c.asked && (l.key == key || l.key.Name == "" && l.key.Resource == key.Resource) {
			seen = max(seen, l.rv)
		}
	}
	return seen
}

// remembers reports whether a pass must know of a write that its caches do not show, because of who made it.
func (p *pass) remembers(by *call, rv uint64, invariant string) bool {
	switch {
	case by == nil:
		return false
	case by.from == p.from, by.from.ended > 0 && by.from.ended <= p.from.born:
		return true
	default:
		return rv <= p.began && slices.Contains(twoManagers, invariant)
	}
}

// adopts reports whether a write gives an object a controller.
func adopts(e check.Event) bool {
	return e.Old != nil && e.New != nil && ownerOf(e.Old) == "" && ownerOf(e.New) != ""
}
