package composite

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/history/metacontroller"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/revision"
)

// This file writes the log of a parent. What it is to hold is decided in log.go; all of it is stored before any
// child is touched.

// recorder writes the logs of parents.
type recorder struct {
	*settings

	log *history.Log
}

// record stores the log as a plan needs it, newest revision first.
func (r *recorder) record(ctx context.Context, o *gathered, d *decision) error {
	for _, w := range d.revisions {
		err := r.originalStays(ctx, o, w.entry)
		switch {
		case err != nil:
		case w.entry.object == nil:
			err = r.createRevision(ctx, o, d, w)
		default:
			err = r.updateRevision(ctx, o, w)
		}
		if err != nil {
			return err
		}
	}
	if o.log != nil && o.log.Change == revision.Rollback && len(d.revisions) > 0 {
		o.pass.Normal(nil, "RolledBack", "Record", "%s", o.log.Reason)
	}
	return nil
}

// createRevision stores a new revision with its children. One that exists was created by a request whose response was
// lost, and may list other children: the next pass goes on from it.
func (r *recorder) createRevision(ctx context.Context, o *gathered, d *decision, w revisionWrite) error {
	created, err := r.log.Create(ctx, o.parent, o.log.Verdict, o.log.collisions, d.hidden, func(object client.Object) {
		made := object.(*v1alpha1.ControllerRevision)
		made.Children = w.stored()
		if w.held != nil {
			made.Annotations[metacontroller.HeldAnnotation] = *w.held
		}
	})
	large, _ := errors.AsType[*history.TooLargeError](err)
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil
	case large != nil:
		return &faultError{Reason: "RevisionTooLarge", Err: fmt.Errorf("the versioned fields are more than the API server stores: %w", err)}
	case err != nil:
		return err
	case created.Existed:
		return fmt.Errorf("%w: revision %s exists, and the cache does not show it", ownership.ErrStale, created.Name)
	}
	w.entry.revision = created.Revision // the status of this pass names it
	log.FromContext(ctx).Info("Recorded", "revision", w.number, "name", created.Name, "reason", o.log.Reason)
	return nil
}

// updateRevision changes number and children of exactly the revision that was read. Its data is never written (H4).
func (r *recorder) updateRevision(ctx context.Context, o *gathered, w revisionWrite) error {
	children := w.stored()
	if children == nil {
		children = []v1alpha1.ControllerRevisionChildren{} // null would remove the field, and mean the same
	}
	c := history.Change{Fields: map[string]any{"children": children}}
	if w.number != w.entry.revision.Number {
		c.Number, c.Stamp = w.number, o.log.Stamp
		if w.entry == o.log.newest {
			c.Annotations = o.log.Annotations()
		}
	}
	if w.held != nil {
		if c.Annotations == nil {
			c.Annotations = map[string]any{}
		}
		c.Annotations[metacontroller.HeldAnnotation] = nil
		if *w.held != "" {
			c.Annotations[metacontroller.HeldAnnotation] = *w.held
		}
	}
	written, err := r.log.Change(ctx, o.parent, w.entry.revision, c)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: revision %s changed before it could be written", ownership.ErrStale, w.entry.revision.Name)
	}
	if err == nil {
		w.entry.revision = written // the rest of the pass uses this version
	}
	return err
}

// prune deletes the revisions beyond the limit.
func (r *recorder) prune(ctx context.Context, o *gathered, d *decision) error {
	if o.log == nil || d.plan.writes() {
		return nil
	}
	for _, e := range o.log.surplus(d.plan.belongsTo, r.limit, o.pass.Targets()...) {
		if err := r.originalStays(ctx, o, e); err != nil {
			return err
		}
		deleted, err := r.log.Delete(ctx, o.parent, e.revision)
		if err != nil {
			return err
		}
		if deleted {
			delete(o.memory.answers.wanted, e.revision.Name)
			log.FromContext(ctx).V(1).Info("Deleted a revision that nothing belongs to", "revision", e.revision.Number, "name", e.revision.Name)
		}
	}
	return nil
}

// originalStays checks that the revision still exists whose duplicate is about to lose its children, or to be deleted:
// without both, it would be lost what their children came from. It makes no request about a revision that is no
// duplicate.
func (r *recorder) originalStays(ctx context.Context, o *gathered, e *entry) error {
	original := o.log.original(e)
	if original == nil {
		return nil
	}
	return r.log.Stays(ctx, o.parent, original.revision)
}
