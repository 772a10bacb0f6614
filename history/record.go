package history

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/revision"
)

// This file makes a verdict durable, before any child is touched.

// MaxData is the largest snapshot that is stored, in bytes. The API server stores somewhat more, but a template of this
// size would fill its store with a handful of revisions.
const MaxData = 1 << 20

// maxProbes bounds the search for a free name. Sixteen collisions of a 32-bit hash in one namespace are no accident.
const maxProbes = 16

// TooLargeError says that a snapshot cannot be stored. The caller reports it on the parent and starts no rollout.
type TooLargeError struct {
	// Bytes is the size of the snapshot.
	Bytes int
	// Err is what the API server said, nil if it was not asked.
	Err error
}

// Error says how large the snapshot is, and how large it may be.
func (e *TooLargeError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("the snapshot of %d bytes cannot be stored: %v", e.Bytes, e.Err)
	}
	return fmt.Sprintf("the snapshot has %d bytes, and at most %d can be stored; make the template smaller", e.Bytes, MaxData)
}

// Unwrap returns what the API server said.
func (e *TooLargeError) Unwrap() error { return e.Err }

// Recorded is the log after a verdict has been made durable.
type Recorded struct {
	// Update is the revision that is equivalent to the parent, as it is stored now. Children are built from it.
	Update revision.Revision
	// Deleted are the duplicates that are gone.
	Deleted []revision.Revision
	// CollisionCount is the count under which the revision got its name. It differs from the one given only if names
	// had to be skipped; the caller then writes it to the parent's status.
	CollisionCount *int32
}

// Relabel points the children that carry the label of one revision at another. It is called before a duplicate is
// deleted; an error keeps the duplicate.
type Relabel func(ctx context.Context, from, to revision.Revision) error

// Record carries a verdict out: it labels revisions that have no hash label, removes duplicates, and creates, renumbers
// or stamps the update revision. It does nothing if nothing is to be written. collisionCount is that of the parent's
// status, nil if it has none.
//
// It may be repeated after any error: a write whose response was lost is found again and not made twice. Errors:
// [ErrStale] (drop the pass), [*TooLargeError] (report it; there is no point in retrying before the parent changes), a
// [*revision.NumberError] that [Log.Resolve] gave already, or an API error (retry). After an error no child may be written.
func (l *Log) Record(ctx context.Context, parent client.Object, v *Verdict, collisionCount *int32, relabel Relabel) (*Recorded, error) {
	if v.Update == nil && v.Full != nil {
		return nil, v.Full // under no number
	}
	out := &Recorded{CollisionCount: collisionCount}
	hidden := ""
	if v.Update == nil || v.Renumber() {
		var err error
		if hidden, err = l.fence(ctx, parent, v, collisionCount); err != nil {
			return nil, err
		}
	}
	if err := l.label(ctx, parent, v.Relabel); err != nil {
		return nil, err
	}
	var err error
	if out.Deleted, err = l.merge(ctx, parent, v, relabel); err != nil {
		return nil, err
	}
	switch {
	case v.Update == nil:
		out.Update, out.CollisionCount, err = l.create(ctx, parent, v, collisionCount, hidden)
	case v.Renumber() || v.Restamp():
		out.Update, err = l.patch(ctx, parent, *v.Update, change{number: v.Number, stamp: v.Stamp})
	default:
		out.Update = *v.Update
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// merge points the children of duplicates at the revisions that they equal, deletes the duplicates and returns them.
func (l *Log) merge(ctx context.Context, parent client.Object, v *Verdict, relabel Relabel) ([]revision.Revision, error) {
	var deleted []revision.Revision
	for _, d := range v.Duplicates {
		if err := l.stays(ctx, parent, d.Of); err != nil {
			return nil, err
		}
		if err := relabel(ctx, d.Revision, d.Of); err != nil {
			return nil, fmt.Errorf("point the children of revision %s at its equal %s: %w", d.Revision.Name, d.Of.Name, err)
		}
		if err := l.delete(ctx, parent, d.Revision); err != nil {
			return nil, err
		}
		deleted = append(deleted, d.Revision)
	}
	return deleted, nil
}

// label gives a hash label to revisions that have none, and ends the pass if there were any: the versions that the verdict
// knows are outdated by our own writes, and the next pass has the rest to do.
func (l *Log) label(ctx context.Context, parent client.Object, unlabelled []revision.Revision) error {
	for _, r := range unlabelled {
		if _, err := l.patch(ctx, parent, r, change{label: revision.LabelValue(r.Name)}); err != nil {
			return err
		}
	}
	if len(unlabelled) > 0 {
		return fmt.Errorf("%w: %d of its revisions were labelled just now", ErrStale, len(unlabelled))
	}
	return nil
}

// fence checks past every cache what a new number rests on: that the parent is still as it was read (H7), and that the
// number is new, because one that was counted from an old list would be given twice (H2, kubernetes#80698). The revision
// that is to be written is left to readBack, and its name returned: it may be there because a response was lost.
func (l *Log) fence(ctx context.Context, parent client.Object, v *Verdict, collisionCount *int32) (hidden string, err error) {
	if err := l.confirm(ctx, parent); err != nil {
		return "", err
	}
	stored, err := l.stored(ctx, parent)
	if err != nil {
		return "", err
	}
	var wanted string
	if v.Update != nil {
		wanted = v.Update.Name
	} else {
		wanted, _ = l.Named(parent, v.Snapshot.Data(), collisionCount)
	}
	for _, o := range stored {
		if o.Revision < v.Number {
			continue
		}
		if r := l.revision(o); o.Name != wanted || r.Deleting || r.Err != nil || revision.Compare(v.Snapshot, r.Snapshot) == revision.RuleNone {
			l.opts.Wrote(parent.GetUID(), o) // until the cache shows it there is no point in asking again
			return "", fmt.Errorf("%w: revision %s has number %d already, and the cache does not show it", ErrStale, o.Name, o.Revision)
		}
		hidden = o.Name
	}
	return hidden, nil
}

// Complete checks, past every cache, that entries are all revisions of parent, and costs a request. The error wraps [ErrStale] if
// there is one more: drop the pass.
func (l *Log) Complete(ctx context.Context, parent client.Object, entries []revision.Revision) error {
	stored, err := l.stored(ctx, parent)
	if err != nil {
		return err
	}
	for _, o := range stored {
		if !slices.ContainsFunc(entries, func(r revision.Revision) bool { return r.UID == o.UID }) {
			l.opts.Wrote(parent.GetUID(), o) // until the cache shows it there is no point in asking again
			return fmt.Errorf("%w: it does not show revision %s", ErrStale, o.Name)
		}
	}
	return nil
}

// stored lists the revisions that parent owns past every cache.
func (l *Log) stored(ctx context.Context, parent client.Object) ([]*appsv1.ControllerRevision, error) {
	selector, err := l.Selector(parent)
	if err != nil {
		return nil, err
	}
	var list appsv1.ControllerRevisionList
	err = l.opts.Live.List(ctx, &list, client.InNamespace(parent.GetNamespace()), client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return nil, fmt.Errorf("list the revisions of %s %s/%s past the cache: %w", l.Parent.Kind, parent.GetNamespace(), parent.GetName(), err)
	}
	var out []*appsv1.ControllerRevision
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], parent) {
			out = append(out, &list.Items[i])
		}
	}
	return out, nil
}

// stays checks past the cache that a revision is still what was read whose duplicate is about to go: with both, what the
// children came from would be lost. One whose labels somebody takes away is soon let go of.
func (l *Log) stays(ctx context.Context, parent client.Object, r revision.Revision) error {
	var o appsv1.ControllerRevision
	err := l.opts.Live.Get(ctx, types.NamespacedName{Namespace: parent.GetNamespace(), Name: r.Name}, &o)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: revision %s is gone, and the cache does not show it", ErrStale, r.Name)
	case err != nil:
		return fmt.Errorf("read revision %s past the cache: %w", r.Name, err)
	case o.UID != r.UID || o.ResourceVersion != r.ResourceVersion:
		l.opts.Wrote(parent.GetUID(), &o) // until the cache shows it there is no point in asking again
		return fmt.Errorf("%w: revision %s has changed, and the cache does not show it", ErrStale, r.Name)
	}
	return nil
}

// create stores the parent's snapshot under the first free name. A name that is taken is read back: if it is this very
// snapshot of this very parent, then an earlier response was lost, and the collision count stays (H5). hidden is the name
// that the fence found so; if it is somebody else's by now, its number counts all the same.
func (l *Log) create(
	ctx context.Context, parent client.Object, v *Verdict, count *int32, hidden string,
) (revision.Revision, *int32, error) {
	data := v.Snapshot.Data()
	if len(data) > MaxData {
		return revision.Revision{}, nil, &TooLargeError{Bytes: len(data)}
	}
	for range maxProbes {
		o := l.object(parent, v, count)
		err := l.opts.Client.Create(ctx, o)
		switch {
		case err == nil:
			l.opts.Wrote(parent.GetUID(), o)
			return l.revision(o), count, nil
		case tooLarge(err):
			return revision.Revision{}, nil, &TooLargeError{Bytes: len(data), Err: err}
		case !apierrors.IsAlreadyExists(err):
			return revision.Revision{}, nil, fmt.Errorf("record revision %s: %w", o.Name, err)
		}
		mine, err := l.readBack(ctx, parent, v, o.Name)
		if err != nil {
			return revision.Revision{}, nil, err
		}
		if mine != nil {
			return *mine, count, nil
		}
		if o.Name == hidden {
			return revision.Revision{}, nil, fmt.Errorf("%w: revision %s is not ours any more", ErrStale, o.Name)
		}
		next := int32(1)
		if count != nil {
			next = *count + 1
		}
		count = &next
	}
	return revision.Revision{}, nil, fmt.Errorf(
		"record a revision of %s %s/%s: %d names in a row are taken by other objects; delete the strangers among its ControllerRevisions",
		l.Parent.Kind, parent.GetNamespace(), parent.GetName(), maxProbes)
}

// readBack looks at the object that has the name we want. It returns nil if that is somebody else's. One that is nobody's and
// holds the very snapshot is adopted, as if it had been seen before: it is no reason to raise the collision count.
func (l *Log) readBack(ctx context.Context, parent client.Object, v *Verdict, name string) (*revision.Revision, error) {
	var o appsv1.ControllerRevision
	err := l.opts.Live.Get(ctx, types.NamespacedName{Namespace: parent.GetNamespace(), Name: name}, &o)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("record revision %s: it existed and is gone again: %w", name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("read back revision %s: %w", name, err)
	}
	r := l.revision(&o)
	if r.Deleting || r.Snapshot == nil || revision.Compare(v.Snapshot, r.Snapshot) == revision.RuleNone {
		return nil, nil
	}
	if ref := metav1.GetControllerOfNoCopy(&o); ref == nil {
		adopted, err := l.adopt(ctx, parent, &o)
		if adopted == nil || err != nil {
			return nil, err
		}
		o, r = *adopted, l.revision(adopted)
	} else if ref.UID != parent.GetUID() {
		return nil, nil
	}
	// The cache has not shown it yet, or we would not have tried to create it. Wait for it before the next pass.
	l.opts.Wrote(parent.GetUID(), &o)
	if r.Number < v.Number {
		var err error
		if r, err = l.patch(ctx, parent, r, change{number: v.Number, stamp: v.Stamp}); err != nil {
			return nil, err
		}
	}
	return &r, nil
}

// object builds the revision object for the parent's snapshot.
func (l *Log) object(parent client.Object, v *Verdict, count *int32) *appsv1.ControllerRevision {
	name, hash := l.Named(parent, v.Snapshot.Data(), count)
	labels := map[string]string{}
	maps.Copy(labels, l.Labels(parent))
	labels[l.HashLabel] = hash
	var copied map[string]string
	if l.Annotations != nil {
		copied = l.Annotations(parent)
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name:            name,
			Namespace:       parent.GetNamespace(),
			Labels:          labels,
			Annotations:     annotations(copied, v.Stamp),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(parent, l.Parent)},
		},
		Data:     runtime.RawExtension{Raw: v.Snapshot.Data()},
		Revision: v.Number,
	}
}

// tooLarge reports whether the API server, or the store behind it, refused an object for its size. The store's refusal
// has no reason of its own, only a text.
func tooLarge(err error) bool {
	return apierrors.IsRequestEntityTooLargeError(err) || err != nil && strings.Contains(err.Error(), "request is too large")
}
