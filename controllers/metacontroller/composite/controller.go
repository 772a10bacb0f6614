package composite

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cairn-dev/cairn/internal/anyobject"
	"github.com/cairn-dev/cairn/internal/metacontroller/children"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
	"github.com/cairn-dev/cairn/internal/watching"
	"github.com/cairn-dev/cairn/pass"
)

// This file is one pass, from the request to the report. setup.go wires it to a host.

// reconciler runs passes over the parents of one CompositeController. Its parts are the steps of a pass, in their
// order.
type reconciler struct {
	*settings
	*pass.Controller

	settler    settler
	finalizers finalizers
	gatherer   *gatherer
	asker      *asker
	decider    decider
	confirmer  confirmer
	recorder   recorder
	actor      actor
	reporter   reporter
	memories   *memories
}

// Reconcile makes one pass over one parent: gather, decide, record, act, report. Package pass begins and ends it; a
// parent whose children were written a moment ago is left alone until they have settled.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	parent := &unstructured.Unstructured{}
	parent.SetGroupVersionKind(r.parent.Kind)
	unseen, err := r.Consistency.Read(ctx, r.Cache, req.NamespacedName, parent)
	if err != nil {
		if apierrors.IsNotFound(err) {
			r.asker.resync.Forget(req.NamespacedName)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !r.matches(parent) && !r.finalized(parent) {
		return reconcile.Result{}, nil
	}
	m := r.memories.of(parent.GetUID())
	if wait := m.pause.until.Sub(r.Clock.Now()); wait > 0 && (unseen != "" || !r.settler.settled(ctx, parent, m)) {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	return r.ReconcileParent(ctx, req, parent, r.parent.Resource.GroupResource(), unseen)
}

// run is one pass over a parent of this controller.
func (r *reconciler) run(ctx context.Context, p *pass.Pass) error {
	parent := p.Parent.(*unstructured.Unstructured)
	key, m := client.ObjectKeyFromObject(parent), r.memories.of(parent.GetUID())
	o := &gathered{pass: p, parent: parent, memory: m}
	resync := r.asker.resync.Take(key)
	d, again, err := r.guarded(ctx, o, resync || m.answers.refused)
	p.RequeueAfter(again)
	m.answers.refused = badAnswer(err)
	if _, waiting := children.OnlyTaken(err); err != nil && resync && !waiting { // a pass that waits for a name has called the hook
		r.asker.resync.Put(key)
	}
	if err == nil {
		m.answers.busy = 0
		return nil
	}
	if pass.IsStale(err) || errors.Is(err, watching.ErrNotSynced) {
		return err
	}
	if unpruned, ok := errors.AsType[*pruneError](err); ok {
		p.Warn(nil, "TruncateFailed", "Truncate", "Older revisions stay: %s", pass.FirstLine(unpruned.error))
		return err
	}
	soon, err := r.reporter.failed(ctx, o, d, err)
	p.RequeueAfter(soon.RequeueAfter)
	return err
}

// pruneError says why revisions beyond the limit still exist, after a pass that did all else: the deletion is retried,
// and the conditions stay what they are.
type pruneError struct{ error }

func (e *pruneError) Unwrap() error { return e.error }

func notPruned(err error) error {
	if err == nil || pass.IsStale(err) {
		return err
	}
	return &pruneError{err}
}

// badAnswer reports whether a pass ended because of the hook's answer, so that only another answer can help.
func badAnswer(err error) bool {
	fault, ok := errors.AsType[*faultError](err)
	return ok && fault.Reason == selectorMismatch || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

// guarded is a pass whose panic becomes an error of one parent, so that its condition says so. Package pass would only
// retry it. It returns what was decided, nil if the pass did not get so far, and when to requeue even if no event
// comes.
func (r *reconciler) guarded(ctx context.Context, o *gathered, resync bool) (d *decision, again time.Duration, err error) {
	defer func() {
		if what := recover(); what != nil {
			log.FromContext(ctx).Error(nil, "A pass panicked", "panic", what, "stack", string(debug.Stack()))
			err = &faultError{Reason: "Panic", Err: fmt.Errorf("the pass over %s panicked: %v", anyobject.Describe(o.parent), what)}
		}
	}()
	if done, err := r.finalizers.set(ctx, o.parent); done || err != nil {
		return nil, 0, err
	}
	if d, err = r.gatherAndDecide(ctx, o, resync); err == nil {
		again, err = r.carryOut(ctx, o, d)
	}
	return d, again, err
}

// gatherAndDecide reads what exists and decides what to do. If the hook turns out to want an orphan, it reads again,
// and this time adopts it: an orphan that no parent wants is left alone.
func (r *reconciler) gatherAndDecide(ctx context.Context, o *gathered, resync bool) (*decision, error) {
	for {
		if err := r.gatherer.gather(ctx, o); err != nil {
			r.count(ctx, o, err)
			return nil, err
		}
		d, err := r.decider.decide(ctx, o, resync)
		if err != nil || !o.wantsOrphan() {
			return d, err
		}
		resync = false // the hook was just called
	}
}

// count has the hook count the children of a parent whose children or revisions cannot be claimed: its status needs
// none of the writes that fail. The children of the answer are ignored, and a status for a generation that was not
// acted on is not stored.
func (r *reconciler) count(ctx context.Context, o *gathered, failed error) {
	if o.selector == nil || o.ending || o.newGeneration() ||
		pass.IsStale(failed) || pass.OutcomeUnknown(failed) || errors.Is(failed, watching.ErrNotSynced) {
		return
	}
	groups, err := r.gatherer.shown(ctx, o)
	if err != nil {
		return
	}
	answer, err := r.asker.ask(ctx, o, o.question(groups), "")
	if err == nil && answer.StatusPresence == hook.Given {
		o.said = answer.Status
	}
}

// carryOut writes what was decided: confirm, record, act, report.
func (r *reconciler) carryOut(ctx context.Context, o *gathered, d *decision) (again time.Duration, err error) {
	if err := r.confirmer.confirm(ctx, o, d); err != nil {
		return 0, err
	}
	if err := r.recorder.record(ctx, o, d); err != nil {
		o.pass.NoteUnknownOutcome(err)
		return 0, err
	}
	d.plan.note(o.memory.changed, r.Clock.Now())
	actErr := r.actor.act(ctx, o, d)
	o.pass.NoteUnknownOutcome(actErr)
	if d.plan.writes() && actErr == nil { // after an error the pause would reset the back-off
		o.memory.pause = pause{r.Clock.Now().Add(settleTime), d.plan.awaits()}
	}
	if actErr == nil {
		actErr = d.blocked
	}
	if pass.IsStale(actErr) {
		return 0, actErr
	}
	if actErr != nil {
		if err := r.recorder.prune(ctx, o, d); err != nil {
			actErr = errors.Join(actErr, err)
		}
		return 0, actErr
	}
	if d.done {
		return 0, r.removeFinalizer(ctx, o, d)
	}
	again, err = r.reporter.report(ctx, o, d)
	if err == nil {
		err = notPruned(r.recorder.prune(ctx, o, d))
	}
	if d.plan.writes() {
		again = pass.Soonest(again, settleTime)
	}
	return pass.Soonest(again, d.plan.again), err
}

// removeFinalizer removes the finalizer of a parent whose finalize hook is done.
func (r *reconciler) removeFinalizer(ctx context.Context, o *gathered, d *decision) error {
	parent, err := r.reporter.reportLast(ctx, o, d)
	if err != nil {
		return err
	}
	return r.finalizers.remove(ctx, parent)
}

// forget drops what is remembered of a deleted parent, except by package pass.
func (r *reconciler) forget(uid types.UID) {
	r.asker.related.Forget(uid)
	r.memories.forget(uid)
}
