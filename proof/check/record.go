package check

import (
	"slices"
	"sort"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file is a history in the orders in which rules ask for it: by object, by family, by pass. It is made once for
// each check of a history.

// moment is an object from one write on. It is nil from its end on.
type moment struct {
	rv     uint64
	object client.Object
}

type record struct {
	h *History
	// moments are all versions of what was there under one name, oldest first; keys says which name a UID had.
	moments map[Key][]moment
	keys    map[types.UID]Key
	// family are the indices of the events of a parent and of what it controls, by its UID.
	family map[types.UID][]int
	// requests are those of a pass, in their order, by its ID.
	requests map[string][]*Entry
}

func newRecord(h *History) *record {
	r := &record{
		h: h, moments: map[Key][]moment{}, keys: map[types.UID]Key{}, family: map[types.UID][]int{}, requests: map[string][]*Entry{},
	}
	for k, o := range h.Initial {
		r.keys[o.GetUID()] = k
		r.moments[k] = append(r.moments[k], moment{h.Origin, o})
	}
	for i, e := range h.Events {
		o := e.Object()
		r.keys[o.GetUID()] = e.Key
		r.moments[e.Key] = append(r.moments[e.Key], moment{e.RV, e.New})
		r.family[o.GetUID()] = append(r.family[o.GetUID()], i)
		owner := ownerUID(o)
		if owner != "" {
			r.family[owner] = append(r.family[owner], i)
		}
		if was := ownerUID(e.Old); was != "" && was != owner {
			r.family[was] = append(r.family[was], i)
		}
	}
	for _, e := range h.Requests {
		if e.Pass != nil {
			r.requests[e.Pass.ID] = append(r.requests[e.Pass.ID], e)
		}
	}
	return r
}

// at returns the object with that UID right after a write, nil if there was none.
func (r *record) at(uid types.UID, rv uint64) client.Object {
	all := r.moments[r.keys[uid]]
	i := sort.Search(len(all), func(i int) bool { return all[i].rv > rv })
	if i == 0 {
		return nil
	}
	if o := all[i-1].object; o != nil && o.GetUID() == uid {
		return o
	}
	return nil
}

// last returns the last version of an object before a write, nil if there was none.
func (r *record) last(uid types.UID, before uint64) client.Object {
	for _, m := range slices.Backward(r.moments[r.keys[uid]]) {
		if m.rv < before && m.object != nil && m.object.GetUID() == uid {
			return m.object
		}
	}
	return nil
}

// uidAt returns the UID of what had a name right after a write, "" if nothing had.
func (r *record) uidAt(k Key, rv uint64) types.UID {
	all := r.moments[k]
	i := sort.Search(len(all), func(i int) bool { return all[i].rv > rv })
	if i == 0 || all[i-1].object == nil {
		return ""
	}
	return all[i-1].object.GetUID()
}

// end returns the resource version from which on an object is going or gone, zero if that never comes.
func (r *record) end(uid types.UID) uint64 {
	lived := false
	for _, m := range r.moments[r.keys[uid]] {
		same := m.object != nil && m.object.GetUID() == uid
		if same && m.object.GetDeletionTimestamp() != nil || lived && !same {
			return m.rv
		}
		lived = lived || same
	}
	return 0
}

// born returns the event that made an object, nil if it was there from the start.
func (r *record) born(uid types.UID) *Event {
	for _, i := range r.family[uid] {
		if e := &r.h.Events[i]; e.Type == Added {
			return e
		}
	}
	return nil
}

// before returns the events of a family before a write, newest first.
func (r *record) before(parent types.UID, rv uint64) func(yield func(Event) bool) {
	return func(yield func(Event) bool) {
		for _, i := range slices.Backward(r.family[parent]) {
			if e := r.h.Events[i]; e.RV < rv && !yield(e) {
				return
			}
		}
	}
}

// reads returns the requests of a write's pass that were answered before it and changed nothing.
func (r *record) reads(by *Entry) []*Entry {
	var out []*Entry
	for _, e := range r.requests[by.Pass.ID] {
		if e == by {
			break
		}
		if e.Reads() {
			out = append(out, e)
		}
	}
	return out
}

// listed returns as of when the pass of a write has listed a resource past the caches, the last time before that write;
// zero if it has not.
func (r *record) listed(by *Entry, resource schema.GroupVersionResource, namespace string) uint64 {
	last := uint64(0)
	for _, read := range r.lists(by, resource, namespace) {
		last = max(last, read.RV)
	}
	return last
}

// shownBy returns as of when a list past the caches, by the pass of a write, has shown an object, the last time before
// that write; zero if none has. One that asks for labels does not show an object that does not have them.
func (r *record) shownBy(by *Entry, o client.Object, resource schema.GroupVersionResource) uint64 {
	last := uint64(0)
	for _, read := range r.lists(by, resource, o.GetNamespace()) {
		then := r.at(o.GetUID(), read.RV)
		if then != nil && (read.Labels == nil || read.Labels.Matches(labels.Set(then.GetLabels()))) {
			last = max(last, read.RV)
		}
	}
	return last
}

// lists returns the lists of a resource that the pass of a write got past the caches before it.
func (r *record) lists(by *Entry, resource schema.GroupVersionResource, namespace string) []*Entry {
	return slices.DeleteFunc(r.reads(by), func(read *Entry) bool {
		return read.Verb != "list" || !read.Of(resource, namespace) || !read.Succeeded()
	})
}
