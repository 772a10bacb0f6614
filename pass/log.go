package pass

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/revision"
	"github.com/cairn-dev/cairn/rollback"
)

// This file is the revision log's part of a pass: what is recorded before any child is touched, how a pass goes on that
// could not record it, and how the log is truncated.

// NewLog returns the revision log of a controller's parents. The resource of its revisions must be among those of the
// consistency store, and indexed by [ownership.ControllerIndex]. askServer is that of [history.Options].
func NewLog(c *Controller, f history.Format, askServer bool) *history.Log {
	out := history.New(f, history.Options{
		Client: c.Client, Live: c.Live, Lists: c.Cache, Indexed: true, AskServer: askServer,
		Consistency: c.Consistency,
	})
	c.OnForget(out.Forget)
	return out
}

// duplicateKept is the reason of events and conditions about a duplicate that could not be deleted.
const duplicateKept = "DuplicateKept"

// labelRefused is the reason of events and conditions about a revision that could not be given its hash label.
const labelRefused = "LabelRefused"

// defaultLimit is how many revisions are kept where the spec does not say (apps/v1; the API server fills it in).
const defaultLimit = 10

// Recorded is the log of a parent after it was brought up to date, or why it could not be.
type Recorded struct {
	// Update is the revision that the spec asks for, as it is stored. It is nil if it could not be stored; then no child
	// may be made from what the spec asks for, and none replaced for it.
	Update *revision.Revision
	// Entries are the revisions that are there, oldest first.
	Entries []revision.Revision
	// Snapshot is what the spec asks for, nil if it could not be taken.
	Snapshot *revision.Snapshot
	// Collisions is the count for the status.
	Collisions *int32
	// Undecodable are the revisions that cannot be read. They are kept.
	Undecodable []revision.Revision
	// Failed says why there is no Update.
	Failed error
	// Kept is the error of a duplicate that could not be deleted, and Unlabelled that of a revision that could not be
	// labelled. Nothing waits for either.
	Kept, Unlabelled error

	// keep is the revision that is never truncated; unsure says that there are duplicates that were not looked at.
	keep   revision.Revision
	unsure bool
	// full says why there is no number for a revision after Update, nil if there is one.
	full *revision.NumberError
}

// Record finds the revision that the spec asks for among entries, as [history.Log.Claim] returned them, and records it
// if there is none. Events say so. collisions is the count in the status.
//
// An error ends the pass: the parent or the log that was read is stale. If the revision cannot be stored, the error is
// in [Recorded.Failed] instead: children stay as they are, lost ones are recreated from the revision that they had, and
// the status is written.
func Record(
	ctx context.Context, p *Pass, l *history.Log, entries []revision.Revision, collisions *int32, relabel history.Relabel,
) (*Recorded, error) {
	out := &Recorded{Entries: entries, Collisions: collisions}
	verdict, err := l.Resolve(ctx, p.Parent, entries)
	if verdict != nil {
		out.Snapshot, out.Undecodable, out.unsure = verdict.Snapshot, verdict.Undecodable, len(verdict.Duplicates) > 0
		out.full = verdict.Full
		for _, refused := range verdict.Refused {
			p.Warn(nil, "RestoreRefused", "Resolve", "%v", refused)
		}
		if verdict.Update != nil {
			out.keep = *verdict.Update
		}
	}
	if err != nil {
		out.unsure = true
		return out.failed(p, err)
	}
	recorded, err := l.Record(ctx, p.Parent, verdict, collisions, relabel)
	if err != nil {
		return out.failed(p, err)
	}
	if verdict.Update == nil || recorded.Update.ResourceVersion != verdict.Update.ResourceVersion {
		log.FromContext(ctx).Info("Recorded", "revision", recorded.Update.Number, "name", recorded.Update.Name, "reason", verdict.Reason)
	}
	if verdict.Change == revision.Rollback {
		p.Normal(nil, "RolledBack", "Record", "%s", verdict.Reason)
	}
	out.Update, out.Collisions, out.keep, out.unsure = &recorded.Update, recorded.CollisionCount, recorded.Update, recorded.Kept != nil
	out.Entries = history.Without(entries, recorded.Deleted)
	if out.Kept = recorded.Kept; out.Kept != nil {
		p.Warn(nil, duplicateKept, "Record", "%v", out.Kept)
	}
	if out.Unlabelled = recorded.Unlabelled; out.Unlabelled != nil {
		p.Warn(nil, labelRefused, "Record", "%v", out.Unlabelled)
	}
	return out, nil
}

// UpdateName is the name of [Recorded.Update], empty if there is none.
func (r *Recorded) UpdateName() string {
	if r.Update == nil {
		return ""
	}
	return r.Update.Name
}

// updateRevision identifies [Recorded.Update], zero if there is none.
func (r *Recorded) updateRevision() rollback.Revision {
	if r.Update == nil {
		return rollback.Revision{}
	}
	return rollback.Revision{Name: r.Update.Name, UID: r.Update.UID}
}

// failed sorts out which errors end the pass, and which leave it with a log that is not up to date.
func (r *Recorded) failed(p *Pass, err error) (*Recorded, error) {
	if apierrors.IsConflict(err) && !IsStale(err) {
		err = fmt.Errorf("%w: %w", ownership.ErrStale, err)
	}
	if err = AsNamespaceTerminating(err); IsStale(err) {
		return nil, err // another writer was first; the history is as healthy as before
	}
	r.Failed = err
	p.Warn(nil, "RecordFailed", "Record", "%v", err)
	return r, nil
}

func (r *Recorded) reason() string {
	_, large := errors.AsType[*history.TooLargeError](r.Failed)
	_, full := errors.AsType[*revision.NumberError](r.Failed)
	switch {
	case large:
		return "SnapshotTooLarge"
	case full:
		return "HistoryFull"
	default:
		return "RecordFailed"
	}
}

// Retry returns the error with which a pass ends that could not record, delete a duplicate or label a revision. It is
// nil if a retry cannot help. A snapshot that is too large needs an edit of the parent. A log that is out of numbers
// needs an edit of a revision.
func (r *Recorded) Retry() error {
	if r.Failed != nil && r.reason() == "RecordFailed" {
		return r.Failed
	}
	return errors.Join(r.Kept, r.Unlabelled)
}

// Healthy returns the condition [HistoryHealthy] for the status. It should be left out while it is True and was never
// there: see [Recorded.SetHealthy].
func (r *Recorded) Healthy(limit *int32) metav1.Condition {
	c := metav1.Condition{Type: HistoryHealthy, Status: metav1.ConditionFalse}
	switch {
	case r.Failed != nil:
		c.Reason, c.Message = r.reason(), r.Failed.Error()
	case r.Kept != nil:
		c.Reason, c.Message = duplicateKept, fmt.Sprintf("%v; a revision that holds the same is used", r.Kept)
	case r.Unlabelled != nil:
		c.Reason, c.Message = labelRefused, r.Unlabelled.Error()
	case r.full != nil:
		c.Reason, c.Message = "HistoryFull", r.full.Error()
	case len(r.Undecodable) > 0:
		c.Reason = "RevisionUnreadable"
		c.Message = fmt.Sprintf("%v; it is kept and ignored; delete it if it is not needed", r.Undecodable[0].Err)
	case limit != nil && *limit < 0:
		c.Reason = "NegativeHistoryLimit"
		c.Message = fmt.Sprintf("spec.revisionHistoryLimit is %d, which keeps every revision for ever; set 0 or more", *limit)
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, "Recorded", "the revision history is recorded and readable"
	}
	return c
}

// SetHealthy sets the condition [HistoryHealthy] in a list, unless it is True and was never False, and sends an event
// when the history turns unhealthy.
func (r *Recorded) SetHealthy(p *Pass, conditions *[]metav1.Condition, limit *int32, now time.Time) {
	c := r.Healthy(limit)
	c.LastTransitionTime = metav1.NewTime(now)
	was := find(*conditions, HistoryHealthy)
	if was == nil && c.Status == metav1.ConditionTrue {
		return
	}
	if c.Status == metav1.ConditionFalse && r.Failed == nil && r.Kept == nil && r.Unlabelled == nil && (was == nil || was.Reason != c.Reason) {
		p.Warn(nil, c.Reason, "Report", "%s", c.Message)
	}
	SetCondition(conditions, c)
}

func find(conditions []metav1.Condition, kind string) *metav1.Condition {
	for i := range conditions {
		if conditions[i].Type == kind {
			return &conditions[i]
		}
	}
	return nil
}

// Truncate deletes the oldest revisions beyond limit that nothing depends on. live are those that children or the
// status name; confirm makes sure that no child is missing among them ([Children.Confirm]). A negative limit keeps them
// all: the API server says so when it accepts one.
//
// It runs also if the update revision could not be stored, because a full log or quota may be the cause
// (kubernetes#85690). But then not while there are duplicates: it is unknown which of them still exists, and the one
// that stays must not be deleted as an old one (H3).
func (r *Recorded) Truncate(
	ctx context.Context, p *Pass, l *history.Log, live revision.InUse, limit *int32, confirm func(context.Context) error,
) error {
	keep := defaultLimit
	if limit != nil {
		keep = int(*limit)
	}
	if keep < 0 || r.unsure || len(revision.Prune(r.Entries, r.keep, live, keep)) == 0 {
		return nil
	}
	// A child that the cache does not show may need one of them. Its event will enqueue the parent.
	if err := confirm(ctx); err != nil {
		log.FromContext(ctx).V(1).Info("Not truncating the history", "reason", err.Error())
		if errors.Is(err, ownership.ErrStale) {
			return nil
		}
		return err
	}
	err := l.Truncate(ctx, p.Parent, r.Entries, r.keep, live, keep)
	if errors.Is(err, ownership.ErrStale) {
		p.NoteConflict()
		return nil
	}
	return err
}

// Complete checks, past the cache, that the log shows the revisions that children come from, if one of live is not
// among them: a process that just started may have read a stale log, and would take up-to-date children for outdated
// ones. A pass calls it before it deletes any child. The error wraps [ownership.ErrStale] if a revision is not shown;
// it is an API error if the API server could not be read (retry). It costs no request if the log shows all of them.
func (r *Recorded) Complete(ctx context.Context, p *Pass, l *history.Log, live revision.InUse) error {
	known := r.Entries
	if r.Update != nil {
		known = append(slices.Clip(known), *r.Update)
	}
	if !live.Beside(known) {
		return nil
	}
	return l.Confirm(ctx, p.Parent, known)
}

// Newest returns the newest readable revision that children come from. Without one it is the newest genuine revision,
// and nil if there is none. Lost children are recreated from it if the update revision cannot be stored. genuine is
// [history.Log.Genuine], for instance: a user may have planted a revision that has no children. A nil genuine accepts
// all. No child is made from a revision whose label is not stored yet, unless others come from it.
func (r *Recorded) Newest(children []Family, genuine func(revision.Revision) bool) *revision.Revision {
	live := Live(children)
	var newest *revision.Revision
	for i := len(r.Entries) - 1; i >= 0; i-- {
		e := &r.Entries[i]
		switch {
		case e.Snapshot == nil || e.Deleting:
		case slices.ContainsFunc(children, func(f Family) bool { return live.Names(f.value(*e)) }):
			return e
		case newest == nil && !e.Unlabelled && (genuine == nil || genuine(*e)):
			newest = e
		}
	}
	return newest
}
