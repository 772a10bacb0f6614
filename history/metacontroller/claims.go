package metacontroller

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
)

// This file says which children belong to which revision.

// Child names one child of a parent. The version of its kind is no part of it: two versions show one object.
type Child struct {
	schema.GroupKind

	// Namespace is set only where the parent is in no namespace and the child is in one.
	Namespace, Name string
}

// String names the child as conditions and events show it: Pod web-0, and Pod team/web-0 if the parent is in no
// namespace.
func (c Child) String() string {
	if c.Namespace == "" {
		return c.Kind + " " + c.Name
	}
	return c.Kind + " " + c.Namespace + "/" + c.Name
}

// Compare orders children by group, kind, namespace and name.
func (c Child) Compare(other Child) int {
	return cmp.Or(cmp.Compare(c.Group, other.Group), cmp.Compare(c.Kind, other.Kind),
		cmp.Compare(c.Namespace, other.Namespace), cmp.Compare(c.Name, other.Name))
}

// Claims are the children that belong to one revision. The zero value has none and is ready for use. Claims are no
// safer for concurrent use than a map.
type Claims struct{ children sets.Set[Child] }

// ReadClaims returns the claims that a revision holds. Metacontroller writes names in random order and may write a kind
// twice; both mean the same.
func ReadClaims(stored []v1alpha1.ControllerRevisionChildren) *Claims {
	c := &Claims{}
	for _, group := range stored {
		for _, name := range group.Names {
			child := Child{GroupKind: schema.GroupKind{Group: group.APIGroup, Kind: group.Kind}, Name: name}
			if namespace, rest, qualified := strings.Cut(name, "/"); qualified {
				child.Namespace, child.Name = namespace, rest
			}
			c.Add(child)
		}
	}
	return c
}

// Add makes a child belong to the revision.
func (c *Claims) Add(child Child) {
	if c.children == nil {
		c.children = sets.New[Child]()
	}
	c.children.Insert(child)
}

// Remove makes a child belong to the revision no longer.
func (c *Claims) Remove(child Child) { c.children.Delete(child) }

// Move makes a child belong to another revision instead. Store that revision before this one: if two revisions list a
// child, [Settle] gives it to the newer one; if none does, it is lost which revision it came from.
func (c *Claims) Move(child Child, to *Claims) {
	to.Add(child)
	if c != to {
		c.Remove(child)
	}
}

// Has reports whether a child belongs to the revision.
func (c *Claims) Has(child Child) bool { return c.children.Has(child) }

// Len returns how many children belong to the revision.
func (c *Claims) Len() int { return c.children.Len() }

// Within reports whether all children that belong to the revision belong to the other one as well.
func (c *Claims) Within(other *Claims) bool { return other.children.IsSuperset(c.children) }

// Equal reports whether the same children belong to both.
func (c *Claims) Equal(other *Claims) bool { return c.children.Equal(other.children) }

// Clone returns a copy that can be changed by itself.
func (c *Claims) Clone() *Claims { return &Claims{children: c.children.Clone()} }

// Split returns the claims of some kinds, and the others.
func (c *Claims) Split(of func(schema.GroupKind) bool) (ours, others *Claims) {
	ours, others = &Claims{}, &Claims{}
	for child := range c.children {
		if of(child.GroupKind) {
			ours.Add(child)
		} else {
			others.Add(child)
		}
	}
	return ours, others
}

// Union returns the claims of both.
func (c *Claims) Union(other *Claims) *Claims {
	return &Claims{children: c.children.Union(other.children)}
}

// Sorted returns the children by group, kind, namespace and name.
func (c *Claims) Sorted() []Child {
	return slices.SortedFunc(slices.Values(c.children.UnsortedList()), Child.Compare)
}

// Stored returns the claims as a revision holds them: one entry for each kind, kinds and names sorted, so that equal
// claims are equal bytes. It is nil if there are none.
func (c *Claims) Stored() []v1alpha1.ControllerRevisionChildren {
	var out []v1alpha1.ControllerRevisionChildren
	for _, child := range c.Sorted() {
		name := child.Name
		if child.Namespace != "" {
			name = child.Namespace + "/" + name
		}
		if last := len(out) - 1; last >= 0 && out[last].APIGroup == child.Group && out[last].Kind == child.Kind {
			out[last].Names = append(out[last].Names, name)
			continue
		}
		out = append(out, v1alpha1.ControllerRevisionChildren{APIGroup: child.Group, Kind: child.Kind, Names: []string{name}})
	}
	return out
}

// Settle takes from each revision the children that a newer one claims as well. A child is in two revisions after an
// interrupted move, which it completes. newestFirst are all revisions of one parent.
func Settle(newestFirst ...*Claims) {
	claimed := sets.New[Child]()
	for _, c := range newestFirst {
		c.children = c.children.Difference(claimed)
		claimed.Insert(c.children.UnsortedList()...)
	}
}
