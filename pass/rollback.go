package pass

import (
	"context"
	"errors"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/rollback"
)

// This file rolls back a failed rollout if its parent is annotated so. It decides when to try, and reports the result.

// RollBack rolls the parent of a failed rollout, as the pass has read it, back to f.To, and returns a clause about what
// it did; inspect.RollBack is one. c writes with the permissions of the controller; live reads from the API server, not
// from a cache.
//
// Errors: a [*rollback.RefusedError]; an error that wraps [ownership.ErrStale] if the parent has changed since the
// failure; any other error is retried. With an error nothing was changed, unless a response was lost.
type RollBack func(
	ctx context.Context, c client.Client, live client.Reader, parent client.Object, f rollback.Failure,
) (did string, err error)

// refusal is a rollback that was refused, and the state of the parent and the last progress of its rollout then.
type refusal struct {
	why                 string
	generation          int64
	annotations, labels map[string]string
	progress            time.Time
	// again is the time of the next try; zero means not before the parent is edited. wait is the last delay.
	again time.Time
	wait  time.Duration
}

// refused returns the last refusal if it still applies, and nil otherwise: the parent was edited, or its rollout has
// made progress since.
func (p *Pass) refused() *refusal {
	r, is := p.memory.refused, p.memory.progress
	if r == nil || is == nil || !r.progress.Equal(is.At) || r.generation != p.Parent.GetGeneration() ||
		!maps.Equal(r.annotations, p.Parent.GetAnnotations()) || !maps.Equal(r.labels, p.Parent.GetLabels()) {
		return nil
	}
	return r
}

// notUndone returns the reason why the failed rollout was not rolled back, empty if no rollback was refused.
func (p *Pass) notUndone() string {
	if r := p.refused(); r != nil {
		return "; not rolled back: " + r.why
	}
	return ""
}

// refuse reports once why the rollout is not rolled back. The next pass stores the reason in the status.
func (p *Pass) refuse(why string) *refusal {
	was := p.refused()
	r := &refusal{
		why: why, generation: p.Parent.GetGeneration(), annotations: p.Parent.GetAnnotations(), labels: p.Parent.GetLabels(),
		progress: p.memory.progress.At,
	}
	if was != nil {
		r.wait = was.wait
	}
	p.memory.refused = r
	if was == nil || was.why != why {
		p.Warn(nil, "NotRolledBack", "Undo", "%s", why)
		p.RequeueAfter(statusEvery)
	}
	return r
}

// The delay after a rollback that the API server has rejected doubles, between these limits.
const firstAgain, lastAgain = time.Second, time.Minute

// Targets returns the names of the revisions that the parent may be rolled back to, which truncation keeps: those in
// the status that [Pass.NoteRollout] has returned, or else in the one that the pass has read. It is empty if the parent
// is not annotated for rollback.
func (p *Pass) Targets() []string {
	if p.Parent.GetAnnotations()[rollback.OnDeadlineAnnotation] == "" {
		return nil
	}
	if p.good != nil {
		return p.good.Names()
	}
	return rollback.GoodOf(p.Parent).Names()
}

// rollBack rolls back the failed rollout of the parent, if the parent is annotated so, once per edit.
func (p *Pass) rollBack(ctx context.Context) error {
	f, asks := p.failure, p.Parent.GetAnnotations()[rollback.OnDeadlineAnnotation]
	is, note := p.memory.progress, rollback.NoteOf(p.Parent)
	if f == nil || is == nil || asks == "" || is.Back { // with Back, it is the rollback itself that makes no progress
		return nil
	}
	if r := p.refused(); r != nil {
		if left := r.again.Sub(p.Now()); r.again.IsZero() || left > 0 {
			p.RequeueAfter(max(0, left))
			return nil
		}
	}
	err := f.Check(asks, *is, note)
	if err == nil && p.controller.RollBack == nil {
		err = &rollback.RefusedError{Why: "its controller does not support automatic rollback"}
	}
	var did string
	if err == nil {
		f.Anyway = asks == rollback.UndoAnyway
		did, err = p.controller.RollBack(ctx, p.controller.Client, p.controller.Live, p.Parent, *f)
	}
	refused, never := errors.AsType[*rollback.RefusedError](err)
	switch {
	case err == nil:
		is.RolledBack(f.To.Name)
		p.memory.refused = nil
		p.Warn(nil, "AutomaticRollback", "Undo", "%s", did)
	case never:
		p.refuse(refused.Error())
	case apierrors.ReasonForError(err) != metav1.StatusReasonUnknown && !errors.Is(err, ownership.ErrStale):
		r := p.refuse(FirstLine(err))
		r.wait = min(max(2*r.wait, firstAgain), lastAgain)
		r.again = p.Now().Add(r.wait)
		p.RequeueAfter(r.wait)
	default:
		return err
	}
	return nil
}
