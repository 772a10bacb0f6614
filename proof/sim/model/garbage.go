package model

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// GarbageCollector is the user of the requests that Garbage returns.
const GarbageCollector = "system:serviceaccount:kube-system:generic-garbage-collector"

// Garbage returns what the garbage collector has to do now, in a fixed order: by kind, namespace and name of the
// object. Each request can be served at once; they are all made from this one state, so one may be refused or do
// nothing after another. When there are none, the collector rests.
func (s *Server) Garbage() []Request {
	if s.garbage.at == s.rv {
		return s.garbage.requests
	}
	c := s.collector()
	var requests []Request
	for _, t := range s.order {
		for _, k := range t.keys {
			requests = append(requests, c.visit(item{t, t.records[k].object})...)
		}
	}
	s.garbage.at, s.garbage.requests = s.rv, requests
	return requests
}

// item is an object with its table.
type item struct {
	table  *table
	object client.Object
}

// collector knows who depends on whom.
type collector struct {
	server     *Server
	kinds      map[schema.GroupVersionKind]*table
	dependents map[types.UID][]item
}

func (s *Server) collector() *collector {
	c := &collector{server: s, kinds: s.kinds, dependents: map[types.UID][]item{}}
	for _, t := range s.order {
		for _, k := range t.keys {
			object := t.records[k].object
			for _, owner := range object.GetOwnerReferences() {
				c.dependents[owner.UID] = append(c.dependents[owner.UID], item{t, object})
			}
		}
	}
	return c
}

// visit returns what is to be done about one object.
func (c *collector) visit(i item) []Request {
	if i.object.GetDeletionTimestamp() != nil {
		switch {
		case slices.Contains(i.object.GetFinalizers(), metav1.FinalizerOrphanDependents):
			return c.orphan(i)
		case slices.Contains(i.object.GetFinalizers(), metav1.FinalizerDeleteDependents):
			return c.finishForeground(i)
		}
		return nil
	}
	return c.collect(i)
}

// orphan takes the dependents off an object that is deleted without them, then lets it go.
func (c *collector) orphan(i item) []Request {
	var requests []Request
	for _, dependent := range c.dependents[i.object.GetUID()] {
		requests = append(requests, disown(dependent, i.object.GetUID()))
	}
	return append(requests, dropFinalizer(i, metav1.FinalizerOrphanDependents))
}

// finishForeground lets an object go that waits for its dependents, once none is left that blocks it.
func (c *collector) finishForeground(i item) []Request {
	for _, dependent := range c.dependents[i.object.GetUID()] {
		if blocks(dependent.object, i.object.GetUID()) {
			return nil
		}
	}
	return []Request{dropFinalizer(i, metav1.FinalizerDeleteDependents)}
}

// blocks tells whether an object holds up the deletion of an owner.
func blocks(object client.Object, owner types.UID) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), func(o metav1.OwnerReference) bool {
		return o.UID == owner && o.BlockOwnerDeletion != nil && *o.BlockOwnerDeletion
	})
}

// collect deletes an object that has owners of which none is left, or takes off those that are not.
func (c *collector) collect(i item) []Request {
	var solid, gone, waiting []types.UID
	for _, owner := range i.object.GetOwnerReferences() {
		switch c.look(i, owner) {
		case ownerSolid:
			solid = append(solid, owner.UID)
		case ownerGone:
			gone = append(gone, owner.UID)
		case ownerWaiting:
			waiting = append(waiting, owner.UID)
		case ownerUnknown:
			return nil
		}
	}
	switch {
	case len(gone)+len(waiting) == 0:
		return nil
	case len(solid) > 0:
		return []Request{disown(i, append(gone, waiting...)...)}
	case len(waiting) > 0 && len(c.dependents[i.object.GetUID()]) > 0:
		return c.collectInForeground(i)
	default:
		return []Request{remove(i, ownPolicy(i.object))}
	}
}

// collectInForeground deletes an object together with its own dependents. If one of these waits for its dependents as
// well there may be a circle, which is broken here.
func (c *collector) collectInForeground(i item) []Request {
	var requests []Request
	for _, dependent := range c.dependents[i.object.GetUID()] {
		if deletesDependents(dependent.object) {
			requests = append(requests, unblock(i))
			break
		}
	}
	return append(requests, remove(i, metav1.DeletePropagationForeground))
}

// ownPolicy is the propagation that an object's finalizers ask for.
func ownPolicy(object client.Object) metav1.DeletionPropagation {
	switch {
	case slices.Contains(object.GetFinalizers(), metav1.FinalizerOrphanDependents):
		return metav1.DeletePropagationOrphan
	case slices.Contains(object.GetFinalizers(), metav1.FinalizerDeleteDependents):
		return metav1.DeletePropagationForeground
	default:
		return metav1.DeletePropagationBackground
	}
}

// What the collector sees of an owner.
type ownerState int

const (
	ownerSolid   ownerState = iota // it is there
	ownerGone                      // there is none of this name and UID
	ownerWaiting                   // it is being deleted and waits for its dependents
	ownerUnknown                   // its kind is not served, or cannot own: the collector keeps off
)

// look finds an owner where an owner reference can point to: in the namespace of the object, or outside of namespaces.
func (c *collector) look(i item, owner metav1.OwnerReference) ownerState {
	kind := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
	t, served := c.kinds[kind]
	if !served || (t.kind.Namespaced && !i.table.kind.Namespaced) {
		return ownerUnknown
	}
	namespace := ""
	if t.kind.Namespaced {
		namespace = i.object.GetNamespace()
	}
	found, exists := t.records[key(namespace, owner.Name)]
	switch {
	case !exists || found.object.GetUID() != owner.UID:
		return ownerGone
	case deletesDependents(found.object):
		return ownerWaiting
	default:
		return ownerSolid
	}
}

// deletesDependents tells whether an object is being deleted and waits for its dependents.
func deletesDependents(object client.Object) bool {
	return object.GetDeletionTimestamp() != nil && slices.Contains(object.GetFinalizers(), metav1.FinalizerDeleteDependents)
}

// request starts a request of the collector about an object.
func (i item) request(verb string) Request {
	return Request{
		Verb: verb, Resource: i.table.kind.Resource, Namespace: i.object.GetNamespace(), Name: i.object.GetName(),
		User: GarbageCollector,
	}
}

// remove deletes an object as it is now.
func remove(i item, policy metav1.DeletionPropagation) Request {
	r := i.request(VerbDelete)
	uid, rv := i.object.GetUID(), i.object.GetResourceVersion()
	r.Preconditions = &metav1.Preconditions{UID: &uid, ResourceVersion: &rv}
	r.Propagation = &policy
	return r
}

// patchMeta changes one field of the metadata of an object as it is now.
func patchMeta(i item, field string, value any) Request {
	r := i.request(VerbPatch)
	r.PatchType = types.MergePatchType
	r.Patch, _ = json.Marshal(map[string]any{fieldMetadata: map[string]any{ //nolint:errchkjson // metadata always encodes
		"uid": i.object.GetUID(), "resourceVersion": i.object.GetResourceVersion(), field: value,
	}})
	return r
}

// disown takes owner references off an object.
func disown(i item, owners ...types.UID) Request {
	left := slices.DeleteFunc(slices.Clone(i.object.GetOwnerReferences()), func(o metav1.OwnerReference) bool {
		return slices.Contains(owners, o.UID)
	})
	return patchMeta(i, "ownerReferences", left)
}

// unblock makes an object block none of its owners.
func unblock(i item) Request {
	owners := slices.Clone(i.object.GetOwnerReferences())
	for n := range owners {
		owners[n].BlockOwnerDeletion = new(false)
	}
	return patchMeta(i, "ownerReferences", owners)
}

// dropFinalizer takes a finalizer off an object.
func dropFinalizer(i item, name string) Request {
	left := slices.DeleteFunc(slices.Clone(i.object.GetFinalizers()), func(f string) bool { return f == name })
	return patchMeta(i, "finalizers", left)
}
