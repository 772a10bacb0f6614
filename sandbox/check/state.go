package check

import (
	"cmp"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file is the world at one resource version, and what of the past the rules must remember.

// State is the world right after one write. The rules only read it.
type State struct {
	// RV is the resource version of the write.
	RV uint64

	objects map[schema.GroupVersionResource]map[Key]client.Object
	owned   map[types.UID]map[Key]bool
	// identities holds, for every UID that was ever seen, what it was.
	identities map[types.UID]Key
	// versions are all objects with one UID that differ in generation, oldest first.
	versions map[types.UID][]client.Object
}

func newState(h *History) *State {
	s := &State{
		RV: h.Origin, objects: map[schema.GroupVersionResource]map[Key]client.Object{}, owned: map[types.UID]map[Key]bool{},
		identities: map[types.UID]Key{}, versions: map[types.UID][]client.Object{},
	}
	for k, o := range h.Initial {
		s.put(k, nil, o)
	}
	return s
}

func (s *State) apply(e Event) {
	s.RV = e.RV
	s.put(e.Key, e.Old, e.New)
}

func (s *State) put(k Key, old, o client.Object) {
	if old != nil {
		if ref := controllerOf(old); ref != nil {
			delete(s.owned[ref.UID], k)
		}
		delete(s.objects[k.Resource], k)
	}
	if o == nil {
		return
	}
	if s.objects[k.Resource] == nil {
		s.objects[k.Resource] = map[Key]client.Object{}
	}
	s.objects[k.Resource][k] = o
	if ref := controllerOf(o); ref != nil {
		if s.owned[ref.UID] == nil {
			s.owned[ref.UID] = map[Key]bool{}
		}
		s.owned[ref.UID][k] = true
	}
	s.identities[o.GetUID()] = k
	known := s.versions[o.GetUID()]
	if n := len(known); n > 0 && known[n-1].GetGeneration() == o.GetGeneration() {
		known[n-1] = o
		return
	}
	s.versions[o.GetUID()] = append(known, o)
}

// Get returns an object, nil if it does not exist.
func (s *State) Get(k Key) client.Object { return s.objects[k.Resource][k] }

// List returns the objects of a resource in a namespace, all namespaces if it is empty, ordered by name.
func (s *State) List(resource schema.GroupVersionResource, namespace string) []client.Object {
	var out []client.Object
	for k, o := range s.objects[resource] {
		if namespace == "" || k.Namespace == namespace {
			out = append(out, o)
		}
	}
	return sorted(out)
}

// Owned returns the objects of a resource whose ControllerRef has that UID, ordered by name.
func (s *State) Owned(resource schema.GroupVersionResource, owner types.UID) []client.Object {
	var out []client.Object
	for k := range s.owned[owner] {
		if k.Resource == resource {
			out = append(out, s.objects[resource][k])
		}
	}
	return sorted(out)
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

// Resources returns the resources that have objects, in a fixed order.
func (s *State) Resources() []schema.GroupVersionResource {
	return slices.SortedFunc(maps.Keys(s.objects), func(a, b schema.GroupVersionResource) int {
		return cmp.Compare(a.String(), b.String())
	})
}

func sorted(objects []client.Object) []client.Object {
	slices.SortFunc(objects, func(a, b client.Object) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return objects
}

// controllerOf returns the object's ControllerRef. If there are two, which is a violation of its own, the first.
func controllerOf(o client.Object) *metav1.OwnerReference {
	if o == nil {
		return nil
	}
	return metav1.GetControllerOfNoCopy(o)
}

// ownerUID returns the UID in the ControllerRef, "" if there is none.
func ownerUID(o client.Object) types.UID {
	if ref := controllerOf(o); ref != nil {
		return ref.UID
	}
	return ""
}
