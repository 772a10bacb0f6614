package composite

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/history/metacontroller"
	"github.com/cairn-dev/cairn/internal/anyobject"
	"github.com/cairn-dev/cairn/internal/metacontroller/children"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
	"github.com/cairn-dev/cairn/internal/metacontroller/taken"
	"github.com/cairn-dev/cairn/internal/metacontroller/watch"
	"github.com/cairn-dev/cairn/pass"
)

// This file is one pass, from the request to the report. setup.go wires it to a host.

const (
	// tidyAfter is how long a rollout stands still until older revisions say what they no longer have.
	tidyAfter = time.Minute
	// standstill is how long no step is taken until an event says what a rollout waits for.
	standstill = 10 * time.Second
	// statusEvery is how often the status is written at most, while nothing is new but details.
	statusEvery = time.Second
	// contestedEvery is how often a status is written at most that is what we wrote last, where somebody else who shares the
	// parent wants another one.
	contestedEvery = time.Minute
)

// relatedObjects are what a customize hook wants the others to be told.
type relatedObjects interface {
	GatherFor(ctx context.Context, q *hook.Question) ([]hook.Group, error)
	Forget(parent types.UID)
}

// reconciler runs passes over the parents of one CompositeController.
type reconciler struct {
	*settings
	*pass.Controller

	// sync is always there; finalize is nil if it is not declared.
	sync, finalize hook.Asker
	related        relatedObjects
	resync         watch.Resyncs
	// others lists all CompositeControllers, nil if nobody knows of others. clashes are those that were told of this one.
	others  others
	clashes sync.Map
	// owned claims and confirms children, by kind, and keeper compares and writes them. log holds the revisions.
	owned  map[schema.GroupKind]*pass.Children[*unstructured.Unstructured]
	keeper *children.Keeper
	log    *history.Log
	// parents keeps what is remembered of each, by UID.
	parents sync.Map
}

// memory is what is remembered of a parent from pass to pass. Losing it costs requests and nothing else. Passes over one
// parent come one after the other, so it needs no lock.
type memory struct {
	// quiet is until when the children were left to settle, awaits for which of them that is.
	quiet  time.Time
	awaits []awaited
	// confirmed is set once the parent was read past the cache, and revisionsConfirmed once its revisions were.
	confirmed, revisionsConfirmed bool
	// refused says that the last answer could not be used, by what we or the API server think of it. What is remembered of
	// the hook is no help then: it is asked again, although nothing that it is told has changed.
	refused bool
	// prepared are the last answers, by revision, ready for a plan.
	prepared map[string]prepared
	// changed is when children were changed in place, for minReadySeconds. A process that just started does not know, and may
	// change the next child a little sooner.
	changed changes
	// busy counts the passes in a row in which the hook wanted to be asked later.
	busy int
	// orphans match the selector, and nobody has said that they are wanted, as far as the last pass has seen.
	orphans []metacontroller.Child
	// pass is the one that runs, decided what it has decided, nil before.
	pass    *pass.Pass
	decided *decision
	// said is the status that the hook wants where the pass could not decide anything, nil if it was not asked.
	said map[string]any
	// told and own are resourceVersions of the parent: the one that the hook was told of, and the one that our own write of
	// the status made of it, unless that is news to the hook.
	told, own string
	status    statusMemory
	// sharers are other controllers of the parent.
	sharers []sharer
}

// Reconcile makes one pass over one parent: gather, decide, record, act, report. What begins and ends it is package pass's; a
// parent whose children were written a moment ago is left alone until they have settled.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	parent := &unstructured.Unstructured{}
	parent.SetGroupVersionKind(r.parent.Kind)
	unseen, err := r.Ledger.Read(ctx, r.Cache, req.NamespacedName, parent)
	if err != nil {
		if apierrors.IsNotFound(err) {
			r.resync.Forget(req.NamespacedName)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !r.matches(parent) && !r.finalized(parent) {
		return reconcile.Result{}, nil
	}
	m := r.memoryOf(parent.GetUID())
	if wait := m.quiet.Sub(r.Clock.Now()); wait > 0 && (unseen != "" || !r.settled(ctx, parent, m)) {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	return r.Make(ctx, req, parent, r.parent.Resource.GroupResource(), unseen)
}

// run is one pass over a parent that is ours.
func (r *reconciler) run(ctx context.Context, p *pass.Pass) error {
	parent := p.Parent.(*unstructured.Unstructured) //nolint:forcetypeassert // Reconcile reads one
	key, m := client.ObjectKeyFromObject(parent), r.memoryOf(parent.GetUID())
	m.pass = p
	resync := r.resync.Take(key)
	again, err := r.guarded(ctx, parent, m, resync || m.refused)
	p.Again(again)
	m.refused = refused(err)
	if _, waiting := taken.Only(err); err != nil && resync && !waiting { // what waits for a name has asked the hook
		r.resync.Put(key)
	}
	if err == nil {
		m.busy = 0
		return nil
	}
	if pass.Superseded(err) || errors.Is(err, watch.ErrNotSynced) {
		return err
	}
	if unpruned, ok := errors.AsType[*pruneError](err); ok {
		p.Warn(nil, "TruncateFailed", "Truncate", "Older revisions stay: %s", pass.FirstLine(unpruned.error))
		return err
	}
	soon, err := r.failed(ctx, parent, m, err)
	p.Again(soon.RequeueAfter)
	return err
}

// pruneError says why revisions that are more than the controller keeps are still there, after a pass that did all else: it is
// tried again, and the conditions stay what they are.
type pruneError struct{ error }

func (e *pruneError) Unwrap() error { return e.error }

func notPruned(err error) error {
	if err == nil || pass.Superseded(err) {
		return err
	}
	return &pruneError{err}
}

// refused reports whether a pass ended because of what the hook answered, so that only another answer can help.
func refused(err error) bool {
	fault, ok := errors.AsType[*faultError](err)
	return ok && fault.Reason == selectorMismatch || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

// guarded is a pass whose panic is an error of one parent, so that its condition says so. Package pass would retry it, but nobody
// would be told.
func (r *reconciler) guarded(
	ctx context.Context, parent *unstructured.Unstructured, m *memory, resync bool,
) (again time.Duration, err error) {
	defer func() {
		if what := recover(); what != nil {
			log.FromContext(ctx).Error(nil, "A pass panicked", "panic", what, "stack", string(debug.Stack()))
			err = &faultError{Reason: "Panic", Err: fmt.Errorf("the pass over %s panicked: %v", anyobject.Describe(parent), what)}
		}
	}()
	return r.pass(ctx, parent, m, resync)
}

// pass is one pass over a parent that is ours. It returns when to look again although nothing happened.
func (r *reconciler) pass(ctx context.Context, parent *unstructured.Unstructured, m *memory, resync bool) (time.Duration, error) {
	if done, err := r.setFinalizer(ctx, parent); done || err != nil {
		return 0, err
	}
	m.decided, m.said = nil, nil
	o, d, err := r.gatherAndDecide(ctx, parent, m, resync)
	if err != nil {
		return 0, err
	}
	m.decided = d
	if err := r.confirm(ctx, o, d); err != nil {
		return 0, err
	}
	if err := r.record(ctx, o, d); err != nil {
		m.pass.Uncertain(err)
		return 0, err
	}
	m.changed.note(d.plan, r.Clock.Now())
	actErr := r.act(ctx, o, d)
	m.pass.Uncertain(actErr)
	if d.plan.writes() && actErr == nil { // a retry that is told to wait would begin with the shortest delay each time
		m.quiet, m.awaits = r.Clock.Now().Add(settle), d.plan.awaits()
	}
	if actErr == nil {
		actErr = d.blocked
	}
	if pass.Superseded(actErr) {
		return 0, actErr
	}
	if actErr != nil {
		if err := r.prune(ctx, o, d); err != nil {
			actErr = errors.Join(actErr, err)
		}
		return 0, actErr
	}
	if d.done {
		return 0, r.letGo(ctx, o, d)
	}
	again, err := r.report(ctx, o, d)
	if err == nil {
		err = notPruned(r.prune(ctx, o, d))
	}
	if d.plan.writes() {
		again = soonest(again, settle)
	}
	return soonest(again, d.plan.again), err
}

// gatherAndDecide looks at what there is and decides what to do. Where the hook turns out to want an orphan, it looks again,
// and this time claims that one: an orphan that no parent wants is left alone.
func (r *reconciler) gatherAndDecide(
	ctx context.Context, parent *unstructured.Unstructured, m *memory, resync bool,
) (*observed, *decision, error) {
	for {
		o, err := r.gather(ctx, parent, m)
		if err != nil {
			r.count(ctx, o, err)
			return nil, nil, err
		}
		d, err := r.decide(ctx, o, resync)
		if err != nil || !o.wantsOrphan() {
			return o, d, err
		}
		resync = false // it was just asked
	}
}

// forgetConfirmed has the parent and its revisions read past the cache again before the next write.
func (r *reconciler) forgetConfirmed(uid types.UID) {
	if stored, ok := r.parents.Load(uid); ok {
		m := stored.(*memory) //nolint:forcetypeassert // only memoryOf stores
		m.confirmed, m.revisionsConfirmed = false, false
	}
}

func (r *reconciler) memoryOf(uid types.UID) *memory {
	m, _ := r.parents.LoadOrStore(uid, &memory{prepared: map[string]prepared{}, changed: changes{}})
	return m.(*memory) //nolint:forcetypeassert // only this method stores
}

// forget drops what is remembered of a parent that is gone, but for what package pass remembers.
func (r *reconciler) forget(uid types.UID) {
	r.related.Forget(uid)
	r.parents.Delete(uid)
}

// soonest returns the shorter of two waits, of which zero means for ever.
func soonest(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
