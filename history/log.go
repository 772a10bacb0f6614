package history

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/revision"
)

// This file is the log itself: how to make one, and how to read it.

// Options are what a log needs besides its format.
type Options struct {
	// Client reads revisions and writes them. In a controller it is the manager's client, which reads from a cache.
	Client client.Client
	// Live reads past every cache. Nil means that Client does.
	Live client.Reader
	// Indexed says that Client reads from a cache with [ownership.ControllerIndex] on ControllerRevisions.
	Indexed bool
	// AskServer allows rule R3: a server-side dry run on the parent, which needs the right to patch parents. Without
	// it, a snapshot that only lacks today's defaults counts as different.
	AskServer bool
	// Cache holds what was decoded. Nil means one of [DefaultCacheBytes] that all logs of the process share.
	Cache *Cache
	// Wrote and Deleted, if set, are told of every revision written or deleted for a parent, and Wrote also of one that
	// somebody else wrote and the cache does not show. See [ownership.Ledger].
	Wrote   func(parent types.UID, o client.Object)
	Deleted func(parent types.UID, o client.Object)
}

// Log is the revision log of the parents of one kind. It is safe for concurrent use on different parents.
type Log struct {
	Format
	opts Options
}

// Forget drops what is kept in memory for a parent that is gone, once no pass over it is under way. A log that is told of no end
// keeps it until its cache is full.
func (l *Log) Forget(parent types.UID) { l.opts.Cache.Forget(parent) }

// New returns the log that format describes.
func New(format Format, opts Options) *Log {
	if format.Named == nil {
		format.Named = named
	}
	if opts.Live == nil {
		opts.Live = opts.Client
	}
	if opts.Wrote == nil {
		opts.Wrote = func(types.UID, client.Object) {}
	}
	if opts.Deleted == nil {
		opts.Deleted = func(types.UID, client.Object) {}
	}
	if opts.Cache == nil {
		opts.Cache = shared
	}
	return &Log{Format: format, opts: opts}
}

// Claim returns the revisions of parent, oldest first, after adopting orphans that match selector and releasing what
// matches no longer (ControllerRef proposal). Orphans of another kind's format are not adopted, even if the labels match.
// The error joins all that went wrong; the caller retries the pass and acts on nothing. It wraps [ErrStale] if a revision
// changed while it was being adopted or released.
func (l *Log) Claim(ctx context.Context, parent client.Object, selector labels.Selector) ([]revision.Revision, error) {
	var found []*appsv1.ControllerRevision
	if err := l.candidates(ctx, parent, selector, &found); err != nil {
		return nil, err
	}
	claimed, err := l.claim(ctx, parent, selector, found)
	if err != nil {
		return nil, err
	}
	return l.read(claimed), nil
}

func (l *Log) claim(
	ctx context.Context, parent client.Object, selector labels.Selector, found []*appsv1.ControllerRevision,
) ([]*appsv1.ControllerRevision, error) {
	claimer := &ownership.Claimer{
		Parent:    parent,
		Kind:      l.Parent,
		Selector:  selector,
		Writer:    l.opts.Client,
		Live:      l.opts.Live,
		Adoptable: l.adoptable,
		Wrote:     func(o client.Object) { l.opts.Wrote(parent.GetUID(), o) },
	}
	claimed, err := ownership.Claim(ctx, claimer, found)
	if err != nil {
		return nil, fmt.Errorf("claim the revisions of %s %s/%s: %w", l.Parent.Kind, parent.GetNamespace(), parent.GetName(), err)
	}
	if claimer.Lost {
		// An orphan may be ours by now, if the response to an earlier adoption was lost. A revision beside it would be one too
		// many.
		return nil, fmt.Errorf("%w: a revision of %s %s/%s changed while it was being adopted or released",
			ErrStale, l.Parent.Kind, parent.GetNamespace(), parent.GetName())
	}
	return claimed, nil
}

// adopt takes one revision that nobody owns, if the laws let parent have it. It returns nil if they do not.
func (l *Log) adopt(ctx context.Context, parent client.Object, o *appsv1.ControllerRevision) (*appsv1.ControllerRevision, error) {
	selector, err := l.Selector(parent)
	if err != nil {
		return nil, err
	}
	claimed, err := l.claim(ctx, parent, selector, []*appsv1.ControllerRevision{o})
	if len(claimed) == 0 || err != nil {
		return nil, err
	}
	return claimed[0], nil
}

// List returns the revisions that parent owns, oldest first. It writes nothing: it is for looking at a log.
func (l *Log) List(ctx context.Context, parent client.Object) ([]revision.Revision, error) {
	var found []*appsv1.ControllerRevision
	if err := l.candidates(ctx, parent, labels.Nothing(), &found); err != nil {
		return nil, err
	}
	return l.read(found), nil
}

func (l *Log) candidates(ctx context.Context, parent client.Object, selector labels.Selector, into *[]*appsv1.ControllerRevision) error {
	return ownership.Candidates(ctx, l.opts.Client, &appsv1.ControllerRevisionList{}, parent.GetNamespace(), parent.GetUID(), selector,
		l.opts.Indexed, func(o client.Object) error {
			*into = append(*into, o.(*appsv1.ControllerRevision)) //nolint:forcetypeassert // the items of that list
			return nil
		})
}

// adoptable keeps the logs of two kinds apart whose templates have the same labels.
func (l *Log) adoptable(child client.Object) error {
	if _, ours := child.GetLabels()[l.HashLabel]; ours {
		return nil
	}
	for _, foreign := range []string{appsv1.ControllerRevisionHashLabelKey, statefulSetHashLabel} {
		if _, ok := child.GetLabels()[foreign]; ok {
			return fmt.Errorf("its hash label is %s, so it is the revision of another kind", foreign)
		}
	}
	return nil
}

func (l *Log) read(objects []*appsv1.ControllerRevision) []revision.Revision {
	out := make([]revision.Revision, 0, len(objects))
	for _, o := range objects {
		out = append(out, l.revision(o))
	}
	return revision.Sorted(out)
}

// revision returns o as the core sees it. Data never changes, so decoding is done once for each object.
func (l *Log) revision(o *appsv1.ControllerRevision) revision.Revision {
	r := revision.Revision{
		Name:            o.Name,
		UID:             o.UID,
		ResourceVersion: o.ResourceVersion,
		Number:          o.Revision,
		Hash:            o.Labels[l.HashLabel],
		Stamp:           stampOf(o),
		Deleting:        o.DeletionTimestamp != nil,
	}
	kept := l.opts.Cache.Revision(l.Target, o, func() revision.Revision {
		s, err := l.decode(o)
		return revision.Revision{Snapshot: s, Err: err}
	})
	r.Snapshot, r.Err = kept.Snapshot, kept.Err
	return r
}

func (l *Log) decode(o *appsv1.ControllerRevision) (*revision.Snapshot, error) {
	s, err := l.Target.Decode(o.Data.Raw)
	if err != nil {
		if undecodable, ok := errors.AsType[*revision.UndecodableError](err); ok {
			err = undecodable.Err // it is said once, with the name
		}
		return nil, &revision.UndecodableError{Revision: o.Name, Err: err}
	}
	return s, nil
}

// stampOf reads the stamp of a revision. A malformed one is no stamp.
func stampOf(o metav1.Object) revision.Stamp {
	generation, err := strconv.ParseInt(o.GetAnnotations()[ParentGenerationAnnotation], 10, 64)
	uid := o.GetAnnotations()[ParentUIDAnnotation]
	if err != nil || uid == "" {
		return revision.Stamp{}
	}
	return revision.Stamp{ParentUID: types.UID(uid), Generation: generation}
}

// snapshot takes the parent's target object state, once for each version of it.
func (l *Log) snapshot(parent client.Object) (*revision.Snapshot, error) {
	type key struct {
		target     *revision.Target
		uid        types.UID
		version    string
		generation int64
	}
	at := key{target: l.Target, uid: parent.GetUID(), version: parent.GetResourceVersion()}
	if l.Generational {
		at = key{target: l.Target, uid: parent.GetUID(), generation: parent.GetGeneration()}
	}
	if s, ok := l.opts.Cache.Get(at); ok {
		return s.(*revision.Snapshot), nil //nolint:forcetypeassert // put in below
	}
	s, err := l.Target.Snapshot(parent)
	if err != nil {
		return nil, fmt.Errorf("take a snapshot of %s %s/%s: %w", l.Parent.Kind, parent.GetNamespace(), parent.GetName(), err)
	}
	l.opts.Cache.Add(parent.GetUID(), at, s, s.Size())
	return s, nil
}
