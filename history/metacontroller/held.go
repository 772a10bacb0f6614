package metacontroller

import (
	"encoding/json"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
)

// This file says which children are held at an older revision, in a second place: the newest revision. Anyone may
// delete the older one with its claims; a held child that is lost after that must not come from another revision.

// HeldAnnotation is the annotation of the newest revision of a parent that holds a [Held].
const HeldAnnotation = "cairn.dev/held-children"

// maxHeld is how long the annotation may be. All annotations of an object have 256 KiB together.
const maxHeld = 128 << 10

// Held are the children that are held at other revisions than the newest, by the names of those. Held children that no
// revision lists are under the empty name.
type Held map[string]*Claims

// ReadHeld returns what a revision says about held children. An annotation that cannot be read says nothing.
func ReadHeld(o *v1alpha1.ControllerRevision) Held {
	var stored map[string][]v1alpha1.ControllerRevisionChildren
	if text := o.Annotations[HeldAnnotation]; text == "" || json.Unmarshal([]byte(text), &stored) != nil {
		return nil
	}
	h := Held{}
	for name, children := range stored {
		h[name] = ReadClaims(children)
	}
	return h
}

// Add says that a child is held at a revision.
func (h Held) Add(revision string, child Child) {
	if h[revision] == nil {
		h[revision] = &Claims{}
	}
	h[revision].Add(child)
}

// Only returns the part that is about some kinds.
func (h Held) Only(of func(schema.GroupKind) bool) Held {
	out := Held{}
	for name, claims := range h {
		for child := range claims.children {
			if of(child.GroupKind) {
				out.Add(name, child)
			}
		}
	}
	return out
}

// With returns what both say.
func (h Held) With(other Held) Held {
	out := Held{}
	for _, part := range []Held{h, other} {
		for name, claims := range part {
			for child := range claims.children {
				out.Add(name, child)
			}
		}
	}
	return out
}

// Annotation returns the value of [HeldAnnotation]: empty if nothing is held. Equal values hold the same. What does not
// fit into the annotation is left out; if its revision is lost, it is then unknown that it was held there.
func (h Held) Annotation() string {
	stored := map[string][]v1alpha1.ControllerRevisionChildren{}
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if children := h[name].Stored(); children != nil {
			stored[name] = children
		}
	}
	if len(stored) == 0 {
		return ""
	}
	text, err := json.Marshal(stored) // strings only, so that this cannot fail
	if err != nil || len(text) > maxHeld {
		return ""
	}
	return string(text)
}
