package recording

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file is the linear history: what a recorder or a simulation hands to the rules.

// Key names one object. An object that was deleted and made again has the same key and another UID.
type Key struct {
	Resource  schema.GroupVersionResource
	Namespace string
	Name      string
}

// String is the key as people write it: resource namespace/name.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Resource.Resource + " " + k.Name
	}
	return k.Resource.Resource + " " + k.Namespace + "/" + k.Name
}

// KeyOf returns the key of an object of that resource.
func KeyOf(resource schema.GroupVersionResource, o client.Object) Key {
	return Key{Resource: resource, Namespace: o.GetNamespace(), Name: o.GetName()}
}

// EventType says what happened to an object.
type EventType string

// The three things that can happen to an object.
const (
	Added    EventType = "added"
	Modified EventType = "modified"
	Deleted  EventType = "deleted"
)

// Event is one write: the object before and after it. Nobody changes an event once it is in a history.
type Event struct {
	// RV is the resource version of the write; that of a delete is the delete's own.
	RV   uint64
	Type EventType
	Key  Key
	// Old is nil for Added, New is nil for Deleted.
	Old, New client.Object
	// By is who did it, nil if nobody knows. Attach fills it.
	By *Entry
}

// Object returns the object after the write, or what it was before it was deleted.
func (e Event) Object() client.Object {
	if e.New != nil {
		return e.New
	}
	return e.Old
}

// String is one line for a person.
func (e Event) String() string {
	s := fmt.Sprintf("%d %s %s", e.RV, e.Type, e.Key)
	if changed := changes(e.Old, e.New); changed != "" {
		s += ": " + changed
	}
	if e.By != nil {
		s += " (by " + e.By.who() + ")"
	}
	return s
}

// History is everything that happened to a set of resources, in the order in which the store took it.
type History struct {
	// Origin is the resource version from which on the history is complete. Rules look at nothing before it.
	Origin uint64
	// Complete is the resource version up to which it is complete.
	Complete uint64
	// Initial are the objects that existed at Origin.
	Initial map[Key]client.Object
	// Events have strictly rising resource versions, all above Origin.
	Events []Event
	// Audited is true if By is known for every write of the controllers: a write without it was somebody else's.
	Audited bool
	// Requests are those of the controllers, in the order in which they were answered. Reads is true if the reads that
	// went past their caches are among them. Attach fills both.
	Requests []*Entry
	Reads    bool
	// Notes are what no object shows.
	Notes []Note
	// Replay is how to make this history again: a command line, with seed or mode and number. Violations print it.
	Replay string
	// Refused are the requests that the server did not take, in the order in which they were made. Attach fills it.
	Refused []Refused
	// Calls are all that the controllers asked of anybody, in their order. Lasting are the times in which something failed
	// all along, and nobody but the controllers and the kubelets did anything; Resting is from when on nothing was left to
	// do, zero if never. Who directs the world fills them.
	Calls   []Call
	Lasting []Span
	Resting time.Time
	// Calm is from when on nothing fails and nothing is late. Zero if never, or if nobody knows.
	Calm time.Time
	// Clock is where the clocks by which controllers know what is due have stopped, for the rest. Zero if they go on, or
	// if nobody knows.
	Clock time.Time
	// Manager reports whether an entry was written by the controllers under test. Nil means that every one was.
	Manager func(*Entry) bool
}

// Change is what a watch tells: an object as it is after a write, or, deleted, as it last was.
type Change struct {
	Resource schema.GroupVersionResource
	Object   client.Object
	Deleted  bool
}

// NewHistory merges what was listed and watched, per resource in the order of the watches, into one history. Resources
// may have been listed at different moments; the history is complete from the last one on, which is origin.
func NewHistory(origin, complete uint64, listed, watched []Change) (*History, error) {
	h := &History{Origin: origin, Complete: complete, Initial: map[Key]client.Object{}}
	for _, c := range listed {
		h.Initial[KeyOf(c.Resource, c.Object)] = c.Object
	}
	type numbered struct {
		Change

		rv uint64
	}
	var all []numbered
	var errs []error
	for _, c := range watched {
		rv, err := VersionOf(c.Object)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, numbered{c, rv})
	}
	slices.SortStableFunc(all, func(a, b numbered) int { return cmp.Compare(a.rv, b.rv) })
	world := map[Key]client.Object{}
	maps.Copy(world, h.Initial)
	last := uint64(0)
	for _, c := range all {
		key := KeyOf(c.Resource, c.Object)
		old := world[key]
		switch {
		case c.rv == last:
			errs = append(errs, fmt.Errorf("%s: two writes have resource version %d", key, c.rv))
		case old == nil && c.Deleted:
			errs = append(errs, fmt.Errorf("%s: deleted at %d, and nobody saw it made", key, c.rv))
			continue
		}
		last = c.rv
		e := Event{RV: c.rv, Type: Modified, Key: key, Old: old, New: c.Object}
		switch {
		case c.Deleted:
			e.Type, e.New = Deleted, nil
			delete(world, key)
		case old == nil:
			e.Type = Added
		case old.GetUID() != c.Object.GetUID():
			errs = append(errs, fmt.Errorf("%s: another object at %d, and nobody saw the old one go", key, c.rv))
		}
		if !c.Deleted {
			world[key] = c.Object
		}
		if c.rv > origin {
			h.Events = append(h.Events, e)
			continue
		}
		if c.Deleted {
			delete(h.Initial, key)
		} else {
			h.Initial[key] = c.Object
		}
	}
	return h, errors.Join(errs...)
}

// Between returns the events after from, up to and including to.
func (h *History) Between(from, to uint64) []Event {
	var out []Event
	for _, e := range h.Events {
		if e.RV > from && e.RV <= to {
			out = append(out, e)
		}
	}
	return out
}

// ByManager reports whether the controllers under test did e, as far as one can know.
func (h *History) ByManager(e Event) bool {
	if e.By == nil {
		return !h.Audited
	}
	return h.Manager == nil || h.Manager(e.By)
}

// VersionOf is the resource version of an object as a number.
func VersionOf(o client.Object) (uint64, error) {
	rv, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s/%s: resource version %q: %w", o.GetNamespace(), o.GetName(), o.GetResourceVersion(), err)
	}
	return rv, nil
}
