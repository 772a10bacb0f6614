package model

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// record is one object in the store. It never changes: a write makes a new one.
type record struct {
	object client.Object
	// wire is the object without its resource version in the storage format, if its kind has one. Two objects with the
	// same wire are the same.
	wire []byte
}

// table holds the objects of one kind, and their history.
type table struct {
	kind    Kind
	keys    []string // sorted, as in etcd
	records map[string]record
	events  []int // indexes in Server.events
	infos   map[string]*request.RequestInfo
}

func newTable(k Kind) *table {
	return &table{kind: k, records: map[string]record{}, infos: map[string]*request.RequestInfo{}}
}

// key is the name of an object in its table. Keys sort as the API server lists.
func key(namespace, name string) string { return namespace + "/" + name }

// info describes requests to the kind. The validation of some kinds looks at it.
func (t *table) info(subresource string) *request.RequestInfo {
	info := t.infos[subresource]
	if info == nil {
		r := t.kind.Resource
		info = &request.RequestInfo{
			IsResourceRequest: true, APIGroup: r.Group, APIVersion: r.Version, Resource: r.Resource, Subresource: subresource,
		}
		t.infos[subresource] = info
	}
	return info
}

// within returns the keys of a namespace; all keys if the namespace is empty.
func (t *table) within(namespace string) []string {
	if namespace == "" {
		return t.keys
	}
	prefix := namespace + "/"
	from, _ := slices.BinarySearch(t.keys, prefix)
	to := from
	for to < len(t.keys) && strings.HasPrefix(t.keys[to], prefix) {
		to++
	}
	return t.keys[from:to]
}

// wireFormat is how built-in objects are stored.
type wireFormat interface {
	Marshal() ([]byte, error)
	Unmarshal(data []byte) error
}

// encode brings an object into the form in which it is stored: as if it had gone to etcd and back.
func (t *table) encode(object client.Object) (record, error) {
	object.SetResourceVersion("")
	object.SetManagedFields(nil)
	written, ok := object.(wireFormat)
	if !ok || !t.kind.builtIn() {
		return record{object: object}, nil
	}
	wire, err := written.Marshal()
	if err != nil {
		return record{}, fmt.Errorf("encode %s %s: %w", t.kind.Kind.Kind, object.GetName(), err)
	}
	read := t.kind.newObject()
	if err := read.(wireFormat).Unmarshal(wire); err != nil {
		return record{}, fmt.Errorf("decode %s %s: %w", t.kind.Kind.Kind, object.GetName(), err)
	}
	t.kind.applyDefaults(read) // what the rules took away comes back as a default
	return record{object: read, wire: wire}, nil
}

// same tells whether a write would change nothing. The resource version of next is empty.
func same(stored, next record) bool {
	if stored.wire != nil {
		return bytes.Equal(stored.wire, next.wire)
	}
	next.object.SetResourceVersion(stored.object.GetResourceVersion())
	equal := apiequality.Semantic.DeepEqual(stored.object, next.object)
	next.object.SetResourceVersion("")
	return equal
}

// write stores an object and returns it as stored. A write that changes nothing is none: it returns the stored object.
// A dry run returns what would be stored.
func (s *Server) write(t *table, object client.Object, dryRun bool) (client.Object, error) {
	k := key(object.GetNamespace(), object.GetName())
	stored, exists := t.records[k]
	next, err := t.encode(object)
	if err != nil {
		return nil, err
	}
	switch {
	case exists && same(stored, next):
		return stored.object, nil
	case dryRun:
		if exists {
			next.object.SetResourceVersion(stored.object.GetResourceVersion())
		}
		return next.object, nil
	}
	s.rv++
	next.object.SetResourceVersion(formatRV(s.rv))
	t.records[k] = next
	event := Event{RV: s.rv, Type: watch.Modified, Resource: t.kind.Resource, Object: next.object, Old: stored.object}
	if !exists {
		at, _ := slices.BinarySearch(t.keys, k)
		t.keys = slices.Insert(t.keys, at, k)
		event.Type, event.Old = watch.Added, nil
	}
	s.record(t, event)
	return next.object, nil
}

// drop deletes an object from the store and returns its last state, which has the resource version of the delete. A dry
// run leaves it there.
func (s *Server) drop(t *table, stored client.Object, dryRun bool) client.Object {
	if dryRun {
		return stored
	}
	s.rv++
	k := key(stored.GetNamespace(), stored.GetName())
	last := t.kind.fork(stored)
	last.SetResourceVersion(formatRV(s.rv))
	delete(t.records, k)
	if at, found := slices.BinarySearch(t.keys, k); found {
		t.keys = slices.Delete(t.keys, at, at+1)
	}
	s.record(t, Event{RV: s.rv, Type: watch.Deleted, Resource: t.kind.Resource, Object: last, Old: stored})
	return last
}

// record appends an event to the history.
func (s *Server) record(t *table, event Event) {
	t.events = append(t.events, len(s.events))
	s.events = append(s.events, event)
}

// ListAt returns the objects of a resource in a namespace, or in all namespaces if it is empty, as they were at a
// resource version, in the order of a list. They are shared and must not be changed.
func (s *Server) ListAt(resource schema.GroupVersionResource, namespace string, rv uint64) ([]client.Object, error) {
	t, served := s.tables[resource]
	if !served {
		return nil, fmt.Errorf("list %s at %d: the server does not serve it", resource, rv)
	}
	if rv > s.rv {
		return nil, fmt.Errorf("list %s at %d: the server is at %d", resource, rv, s.rv)
	}
	var keys []string
	objects := map[string]client.Object{}
	for _, i := range t.events {
		event := s.events[i]
		if event.RV > rv {
			break
		}
		if namespace != "" && event.Object.GetNamespace() != namespace {
			continue
		}
		k := key(event.Object.GetNamespace(), event.Object.GetName())
		if event.Type == watch.Deleted {
			delete(objects, k)
			continue
		}
		objects[k] = event.Object
	}
	for k := range objects {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	items := make([]client.Object, 0, len(keys))
	for _, k := range keys {
		items = append(items, objects[k])
	}
	return items, nil
}
