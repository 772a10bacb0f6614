package pass

import (
	"context"
	"errors"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/rollback"
)

// This file has a failed rollout rolled back, where its parent asks for that: when it is tried, and what is said of it.

// RollBack brings the parent of a failed rollout, as the pass has read it, back to f.To, and returns what it did in one
// clause: inspect.RollBack is one. c writes, with the rights of the controller; live reads past every cache. Errors: a
// [*rollback.RefusedError]; one that wraps [ownership.ErrStale] if the parent is not what the failure is about any
// more; any other error is retried. Nothing was changed then, unless a response was lost.
type RollBack func(
	ctx context.Context, c client.Client, live client.Reader, parent client.Object, f rollback.Failure,
) (did string, err error)

// refusal is a rollback that was not made, and the parent of which that is so.
type refusal struct {
	why                 string
	generation          int64
	annotations, labels map[string]string
	// again is when it is tried again, zero for not before somebody edits the parent; wait is how long that took.
	again time.Time
	wait  time.Duration
}

// about reports whether it is about parent as it is now.
func (r *refusal) about(parent client.Object) bool {
	return r != nil && r.generation == parent.GetGeneration() &&
		maps.Equal(r.annotations, parent.GetAnnotations()) && maps.Equal(r.labels, parent.GetLabels())
}

// notUndone says why the failed rollout of the parent was not rolled back, empty if it is not known to be so.
func (p *Pass) notUndone() string {
	if r := p.memory.refused; r.about(p.Parent) {
		return "; not rolled back: " + r.why
	}
	return ""
}

// refuse says once why nothing is rolled back; the next pass stores it.
func (p *Pass) refuse(why string) *refusal {
	was := p.memory.refused
	r := &refusal{why: why, generation: p.Parent.GetGeneration(), annotations: p.Parent.GetAnnotations(), labels: p.Parent.GetLabels()}
	if was.about(p.Parent) {
		r.wait = was.wait
	}
	p.memory.refused = r
	if !was.about(p.Parent) || was.why != why {
		p.Warn(nil, "NotRolledBack", "Undo", "%s", why)
		p.RequeueAfter(statusEvery)
	}
	return r
}

// The delay after a rollback that the API server has refused doubles, between these.
const firstAgain, lastAgain = time.Second, time.Minute

// Targets are the names of the revisions to which a rollout of the parent may be rolled back, if it asks for that: they
// are not deleted.
func (p *Pass) Targets() []string {
	if p.Parent.GetAnnotations()[rollback.OnDeadlineAnnotation] == "" {
		return nil
	}
	return append(p.good.Names(), rollback.GoodOf(p.Parent).Names()...)
}

// rollBack has the failed rollout of the parent rolled back, if that is asked for: once for each edit.
func (p *Pass) rollBack(ctx context.Context) error {
	f, asks := p.failure, p.Parent.GetAnnotations()[rollback.OnDeadlineAnnotation]
	is, note := p.memory.progress, rollback.NoteOf(p.Parent)
	if f == nil || is == nil || asks == "" || is.Back && note != nil { // else the way back makes no progress either
		return nil
	}
	if r := p.memory.refused; r.about(p.Parent) {
		if left := r.again.Sub(p.Now()); r.again.IsZero() || left > 0 {
			p.RequeueAfter(max(0, left))
			return nil
		}
	}
	err := f.Check(asks, *is, note)
	if err == nil && p.controller.RollBack == nil {
		err = &rollback.RefusedError{Why: "its controller rolls nothing back"}
	}
	var did string
	if err == nil {
		f.Anyway = asks == rollback.UndoAnyway
		did, err = p.controller.RollBack(ctx, p.controller.Client, p.controller.Live, p.Parent, *f)
	}
	refused, never := errors.AsType[*rollback.RefusedError](err)
	switch {
	case err == nil:
		is.Undone = f.Revision // admission may have removed the note
		p.memory.refused = nil
		p.Warn(nil, "AutomaticRollback", "Undo", "%s", did)
	case never:
		p.refuse(refused.Error())
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		r := p.refuse(FirstLine(err))
		r.wait = min(max(2*r.wait, firstAgain), lastAgain)
		r.again = p.Now().Add(r.wait)
		p.RequeueAfter(r.wait)
	default:
		return err
	}
	return nil
}
