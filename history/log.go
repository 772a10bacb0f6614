package history

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/revision"
)

// This file is the log itself: what it needs, and how one is made.

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
	// Matching lists only what the parent's selector matches, as kubectl does, where there is no index: of a namespace
	// with thousands of revisions those of one parent. What the parent controls beside that is not found.
	Matching bool
	// Mine reports whether a revision that a parent controls was made by this log, for a kind that may have a controller
	// with a history of its own. What is not is never adopted, released, counted or deleted: see [Log.Others]. Nil means
	// that all are.
	Mine func(o client.Object) bool
	// Reread, if set, is given each parent that was read past the cache because a revision of it is about to be recorded.
	// It has what a cache strips: managedFields. It may be another version than the parent that is recorded.
	Reread func(fresh client.Object)
	// AskServer allows rule E3: a server-side dry run on the parent, which needs the right to patch parents. Without
	// it, a snapshot that only lacks today's defaults counts as different.
	AskServer bool
	// Asks is how many of these one [Log.Resolve] sends at most; what it does not ask about counts as different. Zero is
	// no bound.
	Asks int
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

func (l *Log) owner(parent client.Object) ownership.Owner {
	return ownership.OwnerOf(parent, l.OwnerKind(parent).GroupKind())
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
		return s.(*revision.Snapshot), nil
	}
	s, err := l.Snapshot(parent)
	if err != nil {
		return nil, fmt.Errorf("take a snapshot of %s: %w", l.describe(parent), err)
	}
	l.opts.Cache.Add(parent.GetUID(), at, s, s.Size())
	return s, nil
}
