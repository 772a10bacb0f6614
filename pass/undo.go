package pass

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
)

// This file has a failed rollout undone, where its parent asks for that: when, how often, and what is said of it. What
// an undo is, package rollback knows.

// Values of [history.OnDeadlineAnnotation].
const (
	onDeadlineUndo   = "undo"
	onDeadlineAnyway = "undo-anyway"
)

// Failure is a rollout that has exceeded its deadline, and is to be undone.
type Failure struct {
	// Client writes, with the rights of the controller. Live reads past every cache.
	Client client.Client
	Live   client.Reader
	// Parent is as the pass has read it.
	Parent client.Object
	// Revision is the name of the revision that it goes to, Reason why it has failed, in one clause.
	Revision, Reason string
	// Available is how many children of that revision were available at once, at most.
	Available int
	// Complete is the last revision before to which a rollout was complete, empty if that is not known.
	Complete string
	// Anyway says that it is to be undone also where somebody else will take that back.
	Anyway bool
	Now    time.Time
}

// Undo brings the parent of a failed rollout back, and returns what it did in one clause: package rollback has one.
// Errors: a [*NotUndoneError]; one that wraps [ownership.ErrStale] if the parent is not what the failure is about any
// more; any other error is retried. Nothing was changed then, unless a response was lost.
type Undo func(ctx context.Context, f Failure) (did string, err error)

// NotUndoneError says why nothing was undone, and will not be before somebody edits the parent.
type NotUndoneError struct{ Why string }

// Error says why.
func (e *NotUndoneError) Error() string { return e.Why }

// refusal is an undo that was not made, and the parent of which that is so.
type refusal struct {
	why                 string
	generation          int64
	annotations, labels map[string]string
}

// about reports whether it is about parent as it is now.
func (r *refusal) about(parent client.Object) bool {
	return r != nil && r.generation == parent.GetGeneration() &&
		maps.Equal(r.annotations, parent.GetAnnotations()) && maps.Equal(r.labels, parent.GetLabels())
}

// notUndone says why the failed rollout of the parent was not undone, empty if it is not known to be so.
func (p *Pass) notUndone() string {
	if r := p.memory.refused; r.about(p.Parent) {
		return "; not undone: " + r.why
	}
	return ""
}

// refuse says once why nothing is undone; the next pass stores it.
func (p *Pass) refuse(reason, why string) {
	p.memory.refused = &refusal{why, p.Parent.GetGeneration(), p.Parent.GetAnnotations(), p.Parent.GetLabels()}
	p.Warn(nil, reason, "Undo", "%s", why)
	p.RequeueAfter(statusEvery)
}

// undo has the failed rollout of the parent undone, if that is asked for: once for each edit.
func (p *Pass) undo(ctx context.Context) error {
	f, does := p.failure, p.Parent.GetAnnotations()[history.OnDeadlineAnnotation]
	if f == nil || does == "" || p.memory.refused.about(p.Parent) {
		return nil
	}
	back := history.RolledBackOf(p.Parent)
	switch {
	case back.Stands(p.Parent, f.Revision): // the way back does not get on either
		return nil
	case does != onDeadlineUndo && does != onDeadlineAnyway:
		p.refuse("InvalidOnDeadline", fmt.Sprintf("annotation %s: there is no %q; there are: %s, %s",
			history.OnDeadlineAnnotation, does, onDeadlineUndo, onDeadlineAnyway))
		return nil
	case back != nil && back.From == f.Revision: // somebody takes it back each time
		p.refuse("NotRolledBack", fmt.Sprintf("revision %s was asked for again after the rollback at %s",
			f.Revision, back.At.UTC().Format(time.RFC3339)))
		return nil
	case p.controller.Undo == nil:
		p.refuse("NotRolledBack", "its controller undoes nothing")
		return nil
	}
	f.Anyway = does == onDeadlineAnyway
	did, err := p.controller.Undo(ctx, *f)
	if not, ok := errors.AsType[*NotUndoneError](err); ok {
		p.refuse("NotRolledBack", not.Why)
		return nil
	}
	if err != nil {
		return err
	}
	p.Warn(nil, "AutomaticRollback", "Undo", "%s", did)
	return nil
}
