package sim

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/sim/model"
)

// This file is what there is now, in an order: the server's own is that of a map.

// shelf is what there is of one resource, in the order of names.
type shelf struct {
	keys    []string
	objects map[string]client.Object
}

func (s *shelf) put(e model.Event) {
	key := storeKey(client.ObjectKeyFromObject(e.Object))
	at, there := slices.BinarySearch(s.keys, key)
	if e.Type == deletedEvent {
		delete(s.objects, key)
		if there {
			s.keys = slices.Delete(s.keys, at, at+1)
		}
		return
	}
	s.objects[key] = e.Object
	if !there {
		s.keys = slices.Insert(s.keys, at, key)
	}
}

// all returns what there is of a resource, by name.
func (w *world) all(resource schema.GroupVersionResource) []client.Object {
	s := w.shelves[resource]
	out := make([]client.Object, 0, len(s.keys))
	for _, key := range s.keys {
		out = append(out, s.objects[key])
	}
	return out
}

// get returns an object, nil if there is none.
func (w *world) get(resource schema.GroupVersionResource, ns, name string) client.Object {
	key := name
	if ns != "" {
		key = ns + "/" + name
	}
	return w.shelves[resource].objects[key]
}
