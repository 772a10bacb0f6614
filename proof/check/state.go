package check

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file is the world at one resource version, and what of the past the rules must remember. Lists are kept in order
// and replaced when they change, so that reading one costs nothing and nobody sees it change.

// State is the world right after one write. The rules only read it, and what it returns.
type State struct {
	// RV is the resource version of the write.
	RV uint64

	objects map[Key]client.Object
	lists   map[schema.GroupVersionResource][]client.Object
	owned   map[belongings][]client.Object
	// identities holds, for every UID that was ever seen, what it was.
	identities map[types.UID]Key
	// versions are all objects with one UID that differ in generation, oldest first.
	versions map[types.UID][]client.Object
	// units are those of the parents that were asked for since the last write.
	units map[whole][]Unit
	// places outlive the writes.
	places *placements
}

// whole is a parent with children of one resource, which have their places.
type whole struct {
	children schema.GroupVersionResource
	parent   client.Object
}

// belongings are what one owner has of one resource.
type belongings struct {
	owner    types.UID
	resource schema.GroupVersionResource
}

func newState(h *History) *State {
	s := &State{
		RV: h.Origin, objects: map[Key]client.Object{}, lists: map[schema.GroupVersionResource][]client.Object{},
		owned: map[belongings][]client.Object{}, identities: map[types.UID]Key{}, versions: map[types.UID][]client.Object{},
		places: newPlacements(),
	}
	for k, o := range h.Initial {
		s.put(k, o)
	}
	return s
}

// worldAt returns the world right after the write with that resource version, or the last one before it.
func worldAt(h *History, rv uint64) *State {
	s := newState(h)
	for _, e := range h.Events {
		if e.RV > rv {
			break
		}
		s.apply(e)
	}
	return s
}

func (s *State) apply(e Event) {
	s.RV = e.RV
	s.put(e.Key, e.New)
}

// put stores an object, or, given none, ends the one with that key.
func (s *State) put(k Key, o client.Object) {
	s.units = nil
	if old := s.objects[k]; old != nil {
		s.lists[k.Resource] = without(s.lists[k.Resource], old)
		if uid := ownerUID(old); uid != "" {
			of := belongings{uid, k.Resource}
			s.owned[of] = without(s.owned[of], old)
		}
		delete(s.objects, k)
	}
	if o == nil {
		return
	}
	s.objects[k] = o
	s.lists[k.Resource] = with(s.lists[k.Resource], o)
	if uid := ownerUID(o); uid != "" {
		of := belongings{uid, k.Resource}
		s.owned[of] = with(s.owned[of], o)
	}
	s.identities[o.GetUID()] = k
	known := s.versions[o.GetUID()]
	if n := len(known); n > 0 && known[n-1].GetGeneration() == o.GetGeneration() {
		known[n-1] = o
		return
	}
	s.versions[o.GetUID()] = append(known, o)
}

// Placed reports whether a child of a parent is wanted at a place, and whether one may stay, asking if it was not asked
// before.
func (s *State) Placed(parent, place client.Object, ask func() (wanted, mayStay bool)) (wanted, mayStay bool) {
	return s.places.on(parent, place, ask)
}

// Selector compiles the selector of a parent. One that is wrong selects nothing.
func (s *State) Selector(parent client.Object, selector *metav1.LabelSelector) labels.Selector {
	return s.places.selector(parent, selector)
}

// Get returns an object, nil if it does not exist.
func (s *State) Get(k Key) client.Object { return s.objects[k] }

// List returns the objects of a resource in a namespace, all namespaces if it is empty, ordered by name.
func (s *State) List(resource schema.GroupVersionResource, namespace string) []client.Object {
	all := s.lists[resource]
	if namespace == "" {
		return all
	}
	from, _ := slices.BinarySearchFunc(all, namespace, func(o client.Object, ns string) int { return cmp.Compare(o.GetNamespace(), ns) })
	to := from
	for to < len(all) && all[to].GetNamespace() == namespace {
		to++
	}
	return all[from:to:to]
}

// Owned returns the objects of a resource whose ControllerRef has that UID, ordered by name.
func (s *State) Owned(resource schema.GroupVersionResource, owner types.UID) []client.Object {
	return s.owned[belongings{owner, resource}]
}

// ByUID returns the object with that UID, nil if it does not exist (any more).
func (s *State) ByUID(uid types.UID) client.Object {
	k, seen := s.identities[uid]
	if !seen {
		return nil
	}
	if o := s.Get(k); o != nil && o.GetUID() == uid {
		return o
	}
	return nil
}

// Identity returns what an object with that UID is or was, and whether there ever was one.
func (s *State) Identity(uid types.UID) (Key, bool) {
	k, ok := s.identities[uid]
	return k, ok
}

// Generations returns the versions of an object that differ in their generation, from the given one on, oldest first.
func (s *State) Generations(uid types.UID, from int64) []client.Object {
	all := s.versions[uid]
	i := slices.IndexFunc(all, func(o client.Object) bool { return o.GetGeneration() >= from })
	if i < 0 {
		return nil
	}
	return all[i:]
}

// Resources returns the resources that have, or had, objects, in a fixed order.
func (s *State) Resources() []schema.GroupVersionResource {
	return slices.SortedFunc(maps.Keys(s.lists), func(a, b schema.GroupVersionResource) int {
		return cmp.Compare(a.String(), b.String())
	})
}

// unitsBy asks for the units of a parent, once in each world.
func (s *State) unitsBy(ask func(*State, client.Object) []Unit, of whole) []Unit {
	units, known := s.units[of]
	if !known {
		units = ask(s, of.parent)
		if s.units == nil {
			s.units = map[whole][]Unit{}
		}
		s.units[of] = units
	}
	return units
}

// byName is the order of lists.
func byName(a, b client.Object) int {
	return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
}

// with returns a list with one object more.
func with(list []client.Object, o client.Object) []client.Object {
	i, _ := slices.BinarySearchFunc(list, o, byName)
	out := make([]client.Object, 0, len(list)+1)
	return append(append(append(out, list[:i]...), o), list[i:]...)
}

// without returns a list with one object less.
func without(list []client.Object, o client.Object) []client.Object {
	i, found := slices.BinarySearchFunc(list, o, byName)
	if !found {
		return list
	}
	out := make([]client.Object, 0, len(list)-1)
	return append(append(out, list[:i]...), list[i+1:]...)
}

// controllerOf returns the object's ControllerRef. If there are two, which is a violation of its own, the first.
func controllerOf(o client.Object) *metav1.OwnerReference {
	if o == nil {
		return nil
	}
	return metav1.GetControllerOfNoCopy(o)
}

// Unserved is a group that no API server serves. A ControllerRef to it names no parent, even with the UID of one.
const Unserved = "unserved.example.com"

// ownerUID returns the UID in the ControllerRef, "" if there is none, and a UID that no object has if its group is
// [Unserved].
func ownerUID(o client.Object) types.UID {
	ref := controllerOf(o)
	switch {
	case ref == nil:
		return ""
	case strings.HasPrefix(ref.APIVersion, Unserved+"/"):
		return "forged/" + ref.UID
	default:
		return ref.UID
	}
}
