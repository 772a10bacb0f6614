package history

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/revision"
)

// This file lets revisions say what they hold, so that the command line can read the history of a kind that nobody has told it of.

// Annotations of a revision that say how it is to be read.
const (
	// FieldPathsAnnotation lists the field paths that the revision holds, separated by commas: "spec.template".
	FieldPathsAnnotation = "cairn.dev/field-paths"
	// ChildrenAnnotation is the kind of the objects that are made from it: "v1/Pod", "apps/v1/Deployment". A revision without it
	// says nothing about children.
	ChildrenAnnotation = "cairn.dev/children"
)

// CompletedAnnotation is on a revision to which a rollout was once complete: all children came from it and were available.
// Package builder sets it, so that a child which is lost while another revision does not start has something to come back from, also
// when no other child of it is left.
const CompletedAnnotation = "cairn.dev/completed"

// Description returns the annotations by which [Described] finds this format again. Give them to the revisions of a kind that
// package history does not know, in [Apps.Annotations].
func (f *Apps) Description() map[string]string {
	paths := make([]string, 0, len(f.Versioned.Paths()))
	for _, path := range f.Versioned.Paths() {
		paths = append(paths, path.String())
	}
	out := map[string]string{FieldPathsAnnotation: strings.Join(paths, ",")}
	if !f.Children.Empty() {
		version, kind := f.Children.ToAPIVersionAndKind()
		out[ChildrenAnnotation] = version + "/" + kind
	}
	return out
}

// Described returns the format that a revision of a parent kind describes. ok is false if it has no description, or one that
// cannot be read. The format is for reading a log and for going back: its children are found by the labels of the revision.
func Described(o *appsv1.ControllerRevision, parent schema.GroupVersionKind) (f *Apps, ok bool) {
	var paths []revision.Path
	for text := range strings.SplitSeq(o.Annotations[FieldPathsAnnotation], ",") {
		path, err := revision.ParsePath(text)
		if err != nil {
			return nil, false
		}
		paths = append(paths, path)
	}
	target, err := revision.FieldPaths(nil, paths...)
	if err != nil {
		return nil, false
	}
	var children schema.GroupVersionKind
	if text, ok := o.Annotations[ChildrenAnnotation]; ok {
		end := strings.LastIndex(text, "/")
		if end < 0 {
			return nil, false
		}
		children = schema.FromAPIVersionAndKind(text[:end], text[end+1:])
	}
	set := labels.Set{}
	for key, value := range o.Labels {
		if key != appsv1.ControllerRevisionHashLabelKey {
			set[key] = value
		}
	}
	return &Apps{
		Parent:     parent,
		Versioned:  target,
		HashLabel:  appsv1.ControllerRevisionHashLabelKey,
		Children:   children,
		ChildLabel: appsv1.ControllerRevisionHashLabelKey,
		Labels:     func(client.Object) map[string]string { return set },
		SelectorOf: func(client.Object) (labels.Selector, error) {
			if len(set) == 0 {
				return nil, fmt.Errorf("revision %s has no labels by which its parent's children could be found", o.Name)
			}
			return set.AsSelector(), nil
		},
		NewParent: func() client.Object {
			out := &unstructured.Unstructured{}
			out.SetGroupVersionKind(parent)
			return out
		},
	}, true
}
