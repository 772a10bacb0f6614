package tree

import (
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/inspect/object"
	"github.com/cairn-dev/cairn/inspect/status"
	"github.com/cairn-dev/cairn/ownership"
)

// This file makes a tree of objects by their ControllerRefs, as the ControllerRef proposal groups objects without
// knowing their kinds. It needs no client; treeread.go reads.

// Node is one object of a [Tree].
type Node struct {
	object.Parent

	// Created is when the object was made, the zero time if it does not exist.
	Created time.Time
	// State is a [status.State], [Terminating], or [NotFound] if the object does not exist. It is [status.Unknown] if the
	// object could not be read.
	State string
	// Message is the reason of a state other than [status.Done].
	Message string
	// Revision is the number of the revision that the object is or was made from, 0 if there is none, or it is not known.
	Revision int64
	// Children are the objects that this one controls, by kind and name.
	Children []*Node
}

// States of a [Node] in addition to the states of package status.
const (
	Terminating = "Terminating"
	NotFound    = "NotFound"
)

// Tree is what an object controls, directly and indirectly, or what controls it.
type Tree struct {
	// Root is the uppermost object.
	Root *Node
	// Warnings are sentences about what could not be looked at.
	Warnings []string
}

// found is an object of which the metadata is known, and perhaps the rest.
type found struct {
	meta *metav1.PartialObjectMetadata
	// whole is nil if only the metadata was read.
	whole *unstructured.Unstructured
}

// owner is the identity by which other objects name f as their controller.
func (f *found) owner() ownership.Owner {
	return ownership.OwnerOf(f.meta, f.meta.GroupVersionKind().GroupKind())
}

// grow makes the tree below root of all objects that were found. An object that would control itself is shown once.
func grow(root *found, all []*found, now time.Time) *Node {
	below := map[ownership.Owner][]*found{}
	for _, f := range all {
		owner := ownership.ControllerOf(f.meta)
		below[owner] = append(below[owner], f)
	}
	seen := map[types.UID]bool{}
	var add func(f *found, siblings []*found) *Node
	add = func(f *found, siblings []*found) *Node {
		seen[f.meta.UID] = true
		n := node(f, now)
		n.Revision = revisionNumber(f, siblings)
		children := below[f.owner()]
		slices.SortFunc(children, byKindAndName)
		for _, child := range children {
			if !seen[child.meta.UID] {
				n.Children = append(n.Children, add(child, children))
			}
		}
		return n
	}
	return add(root, nil)
}

// byKindAndName puts revisions first: they say what the numbers behind the others mean.
func byKindAndName(a, b *found) int {
	if x, y := isRevision(a), isRevision(b); x != y {
		if x {
			return -1
		}
		return 1
	}
	return strings.Compare(a.meta.Kind+"/"+a.meta.Name, b.meta.Kind+"/"+b.meta.Name)
}

// node describes an object by itself.
func node(f *found, now time.Time) *Node {
	gvk := f.meta.GroupVersionKind()
	n := &Node{
		Parent:  object.Parent{GroupVersionKind: gvk, Namespace: f.meta.Namespace, Name: f.meta.Name, UID: f.meta.UID},
		Created: f.meta.CreationTimestamp.Time,
		State:   string(status.Unknown),
	}
	switch {
	case f.meta.DeletionTimestamp != nil:
		n.State = Terminating
		n.Message = "deletion was requested at " + f.meta.DeletionTimestamp.UTC().Format(time.RFC3339)
		if len(f.meta.Finalizers) > 0 {
			n.Message += "; it waits for its finalizers: " + strings.Join(f.meta.Finalizers, ", ")
		}
	case f.whole != nil:
		state, why := status.Alone(f.whole, now)
		n.State = string(state)
		if state != status.Done {
			n.Message = why
		}
	}
	return n
}

// isRevision reports whether an object holds a revision: both APIs call it so.
func isRevision(f *found) bool { return f.meta.Kind == "ControllerRevision" }

// revisionNumber returns the number of a revision, or of that among its siblings from which an object was made, as its
// labels say. ReplicaSets have their number in an annotation.
func revisionNumber(f *found, siblings []*found) int64 {
	if isRevision(f) {
		return storedNumber(f)
	}
	for _, s := range siblings {
		if isRevision(s) && pointsAt(f.meta.Labels, s.meta) {
			return storedNumber(s)
		}
	}
	for key, value := range f.meta.Annotations {
		if n, err := strconv.ParseInt(value, 10, 64); err == nil && strings.HasSuffix(key, "/revision") && isReplicaSet(f.meta) {
			return n
		}
	}
	return 0
}

func isReplicaSet(m *metav1.PartialObjectMetadata) bool {
	return m.GroupVersionKind().GroupKind() == object.ReplicaSetKind.GroupKind()
}

// pointsAt reports whether one of the labels of a child names a revision: by its hash label, or by its name.
func pointsAt(labels map[string]string, of *metav1.PartialObjectMetadata) bool {
	for key, value := range labels {
		if value == "" || !strings.Contains(key, "revision") && !strings.Contains(key, "hash") {
			continue
		}
		if value == of.Name || of.Labels[key] == value {
			return true
		}
	}
	return false
}

func storedNumber(f *found) int64 {
	if f.whole == nil {
		return 0
	}
	n, _, _ := unstructured.NestedInt64(f.whole.Object, "revision")
	return n
}
