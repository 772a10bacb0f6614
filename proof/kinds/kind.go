package kinds

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// This file says what an entry of the table is.

// Object is one kind of object.
type Object struct {
	// Word is what people call it: "daemonset".
	Word string
	GVK  schema.GroupVersionKind
	GVR  schema.GroupVersionResource
	// Cluster is true if it is in no namespace.
	Cluster bool
	// New is what a user begins with who creates one. Nil if nobody makes it like this.
	New func(name string) map[string]any
	// Options are the paths of what users set, by the names that they have for it.
	Options map[string]string
	// Image is where one without options has its image, a revision that of a parent with a pod template.
	Image string
}

// Kind is one kind of parent.
type Kind struct {
	// Controller is its name in the manager's registry, and the word for its parents. It is empty for a kind whose
	// controllers people describe.
	Controller string
	// Parent is the kind as ControllerRefs name it.
	Parent schema.GroupVersionKind
	// Parents, Children and Revisions are the resources. A kind without revisions leaves Revisions empty.
	Parents, Children, Revisions schema.GroupVersionResource
	// Claims are made for children and outlive them, mostly without an owner: PersistentVolumeClaims.
	Claims schema.GroupVersionResource
	// Reads are the resources that the controller watches besides those.
	Reads []schema.GroupVersionResource
	// Selector is the path of the labels by which parents select their children.
	Selector string
	// New and Options are those of an [Object].
	New     func(name string) map[string]any
	Options map[string]string
}

// Object is the entry of the parents.
func (k Kind) Object() Object {
	return Object{Word: k.Controller, GVK: k.Parent, GVR: k.Parents, New: k.New, Options: k.Options}
}

// HasRevisions reports whether parents of the kind have a history.
func (k Kind) HasRevisions() bool { return !k.Revisions.Empty() }

// Resources are all that the controller watches: parents, children, revisions, and what else there is.
func (k Kind) Resources() []schema.GroupVersionResource {
	all := append([]schema.GroupVersionResource{k.Parents, k.Children, k.Revisions, k.Claims}, k.Reads...)
	return slices.DeleteFunc(all, schema.GroupVersionResource.Empty)
}

// Namespaced are the names of the resources that are in namespaces.
func (k Kind) Namespaced() []string {
	var out []string
	for _, r := range k.Resources() {
		if !Cluster(r) {
			out = append(out, r.Resource)
		}
	}
	return out
}

// Cluster reports whether a resource of the table is in no namespace.
func Cluster(r schema.GroupVersionResource) bool {
	return slices.ContainsFunc(Objects(), func(o Object) bool { return o.GVR == r && o.Cluster })
}
