package history

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	// Lists lists revisions. Nil means that Client does. Indexed says that it is a cache with [ownership.ControllerIndex]
	// on them.
	Lists   client.Reader
	Indexed bool
	// Mine reports whether a revision that a parent controls was made by this log, for a kind that may have a controller
	// with a history of its own. What is not is never adopted, released, counted or deleted: see [Log.Others]. Nil means
	// that all are.
	Mine func(o client.Object) bool
	// AskServer allows rule E3: a server-side dry run on the parent, which needs the right to patch parents. Without
	// it, a snapshot that only lacks today's defaults counts as different.
	AskServer bool
	// Cache holds what was decoded. Nil means one of [DefaultCacheBytes] that all logs of the process share.
	Cache *Cache
	// Consistency, if set, learns of every revision that is written, deleted, or not as the cache shows it.
	Consistency Consistency
}

// Consistency is an [ownership.ConsistencyStore], as a log needs it.
type Consistency interface {
	WroteAt(parent types.UID, resource schema.GroupResource, o client.Object)
	Deleted(parent types.UID, resource schema.GroupResource, o client.Object)
	Outdated(parent types.UID, resource schema.GroupResource, o client.Object)
}

// Log is the revision log of the parents of one kind. It is safe for concurrent use on different parents.
type Log struct {
	Format
	opts Options
}

// Genuine reports whether the name of a stored revision follows from what it holds, as that of each that a controller
// has made does: see [Apps.Genuine]. It is false where that cannot be said or read, and true for formats whose names
// say nothing.
func (l *Log) Genuine(ctx context.Context, parent client.Object, r revision.Revision) bool {
	apps, ok := l.Format.(*Apps)
	if !ok {
		return true
	}
	stored := &appsv1.ControllerRevision{}
	if err := l.opts.Lists.Get(ctx, client.ObjectKey{Namespace: parent.GetNamespace(), Name: r.Name}, stored); err != nil {
		return false
	}
	genuine, _ := apps.Genuine(parent, stored)
	return genuine
}

// Forget drops what is kept in memory for a deleted parent, once no pass over it is under way. Without it, that is kept
// until the cache is full.
func (l *Log) Forget(parent types.UID) { l.opts.Cache.Forget(parent) }

// New returns the log that format describes. It panics without a format or a client, which every other method needs.
func New(format Format, opts Options) *Log {
	if format == nil || opts.Client == nil {
		panic("history.New needs a Format and Options.Client")
	}
	if opts.Live == nil {
		opts.Live = opts.Client
	}
	if opts.Lists == nil {
		opts.Lists = opts.Client
	}
	if opts.Consistency == nil {
		opts.Consistency = ownership.NewConsistencyStore(nil) // without stores it waits for nothing
	}
	if opts.Cache == nil {
		opts.Cache = shared
	}
	return &Log{Format: format, opts: opts}
}

// Claim returns the revisions of parent, oldest first, after adopting orphans that match selector and releasing what no
// longer matches (ControllerRef proposal). Orphans of another kind's format are not adopted, even if the labels match.
// The error joins all that went wrong; the caller retries the pass and acts on nothing. It wraps [ErrStale] if a
// revision changed while it was being adopted or released.
func (l *Log) Claim(ctx context.Context, parent client.Object, selector labels.Selector) ([]revision.Revision, error) {
	claimed, err := l.ClaimObjects(ctx, parent, selector)
	if err != nil {
		return nil, err
	}
	return l.read(claimed), nil
}

// ClaimObjects is [Log.Claim] for a caller who needs more of the stored objects than their revisions, which
// [Log.Revision] says. It returns them in no particular order. They come from a cache and are not to be changed.
func (l *Log) ClaimObjects(ctx context.Context, parent client.Object, selector labels.Selector) ([]client.Object, error) {
	found, err := l.candidates(ctx, parent, selector)
	if err != nil {
		return nil, err
	}
	claimed, err := l.claim(ctx, parent, selector, found)
	if err == nil {
		err = l.follow(ctx, parent, claimed)
	}
	if err != nil {
		return nil, err
	}
	return claimed, nil
}

func (l *Log) claim(
	ctx context.Context, parent client.Object, selector labels.Selector, found []client.Object,
) ([]client.Object, error) {
	claimer := &ownership.Claimer{
		Parent:   parent,
		Kind:     l.OwnerKind(parent),
		Selector: selector,
		Writer:   l.opts.Client,
		Live:     l.opts.Live,
		Adoptable: func(orphan client.Object) error { // asked about orphans only, so that nothing is sorted out where there are none
			owned := slices.DeleteFunc(slices.Clone(found), func(o client.Object) bool { return !metav1.IsControlledBy(o, parent) })
			return l.Adoptable(parent, orphan, owned)
		},
		Wrote: func(o client.Object) { l.opts.Consistency.WroteAt(parent.GetUID(), l.Resource(), o) },
	}
	claimed, err := ownership.Claim(ctx, claimer, found)
	if err != nil {
		return nil, fmt.Errorf("claim the revisions of %s: %w", l.describe(parent), err)
	}
	if claimer.Lost {
		// An orphan may be ours by now, if the response to an earlier adoption was lost. A revision beside it would be one
		// too many.
		return nil, fmt.Errorf("%w: a revision of %s changed while it was being adopted or released", ErrStale, l.describe(parent))
	}
	return claimed, nil
}

// adopt adopts one orphaned revision, if the laws let parent have it. It returns nil if they do not.
func (l *Log) adopt(ctx context.Context, parent, o client.Object) (client.Object, error) {
	selector, err := l.Selector(parent)
	if err != nil {
		return nil, err
	}
	claimed, err := l.claim(ctx, parent, selector, []client.Object{o})
	if len(claimed) == 0 || err != nil {
		return nil, err
	}
	return claimed[0], nil
}

// List returns the revisions that parent owns, oldest first. It writes nothing: it is for commands that show a log.
func (l *Log) List(ctx context.Context, parent client.Object) ([]revision.Revision, error) {
	found, err := l.ListObjects(ctx, parent)
	if err != nil {
		return nil, err
	}
	return l.read(found), nil
}

// ListObjects is [Log.List] for a caller who needs more of the stored objects than their revisions, which
// [Log.Revision] says.
func (l *Log) ListObjects(ctx context.Context, parent client.Object) ([]client.Object, error) {
	found, err := l.candidates(ctx, parent, labels.Nothing())
	slices.SortFunc(found, func(a, b client.Object) int { return revision.CompareByNumber(l.Revision(a), l.Revision(b)) })
	return found, err
}

// candidates returns the revisions that parent owns, and the orphans that selector matches.
func (l *Log) candidates(ctx context.Context, parent client.Object, selector labels.Selector) ([]client.Object, error) {
	namespace, err := l.Namespace(parent)
	if err != nil {
		return nil, fmt.Errorf("find the revisions of %s: %w", l.describe(parent), err)
	}
	var out []client.Object
	found := func(o client.Object) error {
		if l.opts.Mine == nil || l.opts.Mine(o) {
			out = append(out, o)
		}
		return nil
	}
	err = ownership.Candidates(ctx, l.opts.Lists, l.EmptyList(), namespace, parent.GetUID(), selector, l.opts.Indexed, found)
	return out, err
}

// Others returns the revisions that parent controls and that this log did not make: see [Options.Mine]. They come from
// a cache and are not to be changed.
func (l *Log) Others(ctx context.Context, parent client.Object) ([]client.Object, error) {
	all := *l
	all.opts.Mine = func(o client.Object) bool { return l.opts.Mine != nil && !l.opts.Mine(o) }
	return all.candidates(ctx, parent, labels.Nothing())
}

func (l *Log) read(objects []client.Object) []revision.Revision {
	out := make([]revision.Revision, 0, len(objects))
	for _, o := range objects {
		out = append(out, l.Revision(o))
	}
	return revision.Sorted(out)
}

// Revision returns a stored object as the core sees it. It is decoded once.
func (l *Log) Revision(o client.Object) revision.Revision {
	return l.opts.Cache.Revision(l.Target(), o, func() revision.Revision { return l.Read(o) })
}

// describe says which parent this is, for errors.
func (l *Log) describe(parent client.Object) string {
	if parent.GetNamespace() == "" {
		return l.OwnerKind(parent).Kind + " " + parent.GetName()
	}
	return fmt.Sprintf("%s %s/%s", l.OwnerKind(parent).Kind, parent.GetNamespace(), parent.GetName())
}

// tracksGeneration reports whether the API server counts the edits of what is versioned of a parent. A format may
// promise it for a kind that has no generation: ConfigMaps, Secrets and others of the core.
func (l *Log) tracksGeneration(parent client.Object) bool {
	return l.Generational() && parent.GetGeneration() > 0
}

// state names a state of what is versioned of one parent. One of the two is set.
type state struct {
	generation int64
	version    string
}

func (l *Log) state(parent client.Object) state {
	if l.tracksGeneration(parent) {
		return state{generation: parent.GetGeneration()}
	}
	return state{version: parent.GetResourceVersion()}
}

// snapshot takes the parent's target object state, once for each version of it.
func (l *Log) snapshot(parent client.Object) (*revision.Snapshot, error) {
	type key struct {
		target *revision.Target
		uid    types.UID
		state  state
	}
	at := key{l.Target(), parent.GetUID(), l.state(parent)}
	if s, ok := l.opts.Cache.Get(at); ok {
		return s.(*revision.Snapshot), nil //nolint:forcetypeassert // put in below
	}
	s, err := l.Snapshot(parent)
	if err != nil {
		return nil, fmt.Errorf("take a snapshot of %s: %w", l.describe(parent), err)
	}
	l.opts.Cache.Add(parent.GetUID(), at, s, s.Size())
	return s, nil
}
