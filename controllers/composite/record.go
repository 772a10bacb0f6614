package composite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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

// revisionResource is the resource of revisions.
var revisionResource = v1alpha1.SchemeGroupVersion.WithResource("controllerrevisions").GroupResource()

// record stores what a plan means for the log, newest revision first.
func (r *reconciler) record(ctx context.Context, o *observed, d *decision) error {
	for _, w := range d.revisions {
		err := r.kept(ctx, o.parent, o.log.original(w.entry))
		switch {
		case err != nil:
		case w.entry.object == nil:
			err = r.createRevision(ctx, o, w)
		default:
			err = r.updateRevision(ctx, o, w)
		}
		if err != nil {
			return err
		}
	}
	if o.log != nil && o.log.kind == revision.Rollback && len(d.revisions) > 0 {
		o.memory.pass.Normal(nil, "RolledBack", "Record", "%s", o.log.reason)
	}
	return nil
}

// createRevision stores a new revision with its claims. An object that has the name and is that revision was made by a
// request whose answer was lost; the next pass goes on from it.
func (r *reconciler) createRevision(ctx context.Context, o *observed, w revisionWrite) error {
	object, err := r.format.New(o.parent, o.log.snapshot, w.number, o.log.probe)
	if err != nil {
		return &faultError{Reason: "RevisionFailed", Err: err}
	}
	object.Children = w.stored()
	if w.held != nil {
		object.Annotations[metacontroller.HeldAnnotation] = *w.held
	}
	name := object.Name
	how, err := r.revisions.Create(ctx, o.parent, object, func(found client.Object) bool {
		stored, ok := found.(*v1alpha1.ControllerRevision)
		return ok && r.format.Holds(stored, o.parent.GetUID(), o.log.snapshot)
	})
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil
	case apierrors.IsRequestEntityTooLargeError(err):
		return &faultError{Reason: "RevisionTooLarge", Err: fmt.Errorf("the versioned fields are more than the API server stores: %w", err)}
	case err != nil:
		return fmt.Errorf("record revision %s: %w", name, err)
	case how == ownership.Taken:
		o.memory.taken[name] = true
		return fmt.Errorf("%w: the name %s of a revision is taken by another object", ownership.ErrStale, name)
	case how == ownership.Existed:
		return fmt.Errorf("%w: revision %s exists, and the cache does not show it", ownership.ErrStale, name)
	}
	log.FromContext(ctx).Info("Recorded", "revision", w.number, "name", name, "reason", o.log.reason)
	return nil
}

// updateRevision changes number and claims of exactly the revision that was read. Its data is never written (H4).
func (r *reconciler) updateRevision(ctx context.Context, o *observed, w revisionWrite) error {
	stored := w.entry.object
	metadata := map[string]any{"uid": stored.UID, "resourceVersion": stored.ResourceVersion}
	children := w.stored()
	if children == nil {
		children = []v1alpha1.ControllerRevisionChildren{} // null would remove the field, and mean the same
	}
	body := map[string]any{"metadata": metadata, "children": children}
	annotations := map[string]any{}
	if w.number != stored.Revision {
		body["revision"] = w.number
		annotations[history.ParentUIDAnnotation] = string(o.log.stamp.ParentUID)
		annotations[history.ParentGenerationAnnotation] = strconv.FormatInt(o.log.stamp.Generation, 10)
	}
	if w.held != nil {
		annotations[metacontroller.HeldAnnotation] = *w.held
		if *w.held == "" {
			annotations[metacontroller.HeldAnnotation] = nil
		}
	}
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	out := &v1alpha1.ControllerRevision{}
	out.Namespace, out.Name = stored.Namespace, stored.Name
	err = r.Client.Patch(ctx, out, client.RawPatch(types.MergePatchType, raw))
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return fmt.Errorf("%w: revision %s changed before it could be written", ownership.ErrStale, stored.Name)
	case err != nil:
		return fmt.Errorf("write revision %s: %w", stored.Name, err)
	}
	r.Ledger.Wrote(o.parent.GetUID(), revisionResource, out)
	return nil
}

// prune deletes the revisions that are more than the controller keeps.
func (r *reconciler) prune(ctx context.Context, o *observed, d *decision) error {
	if o.log == nil || d.plan.writes() {
		return nil
	}
	for _, e := range o.log.surplus(d.plan.claims, r.limit) {
		if err := r.kept(ctx, o.parent, o.log.original(e)); err != nil {
			return err
		}
		deleted, err := r.revisions.Delete(ctx, o.parent, e.object)
		if err != nil {
			return fmt.Errorf("delete revision %s: %w", e.revision.Name, err)
		}
		if deleted {
			delete(o.memory.prepared, e.revision.Name)
			log.FromContext(ctx).V(1).Info("Deleted a revision that nothing belongs to", "revision", e.revision.Number, "name", e.revision.Name)
		}
	}
	return nil
}

// kept makes sure that the revision is still there whose duplicate is about to lose its children, or to go: with both gone,
// nobody knows what their children were made from. original is nil for what is no duplicate.
func (r *reconciler) kept(ctx context.Context, parent client.Object, original *entry) error {
	if original == nil {
		return nil
	}
	fresh, err := ownership.Reread(ctx, r.Live, original.object)
	switch {
	case errors.Is(err, ownership.ErrGone):
		return fmt.Errorf("%w: %w", ownership.ErrStale, err)
	case err != nil:
		return err
	case !metav1.IsControlledBy(fresh, parent), !maps.Equal(fresh.GetLabels(), original.object.GetLabels()):
		r.Ledger.Wrote(parent.GetUID(), revisionResource, fresh) // until the cache shows it there is no point in asking again
		return fmt.Errorf("%w: revision %s is not ours any more, or is about to be let go", ownership.ErrStale, original.revision.Name)
	}
	return nil
}
