package metacontroller

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/revision"
)

// This file turns a snapshot of a parent into a stored object and back, and restores a parent from it.

// changeCause is the annotation that says why an object was changed (kubectl).
const changeCause = "kubernetes.io/change-cause"

// Snapshot implements [history.Format]. Its data is Metacontroller's parentPatch to the byte: the fields nested as in
// the parent, absent ones left out, keys sorted, compact. parent is only read. An error means that parent cannot be
// written as JSON, which no object from an API server is.
func (f *Format) Snapshot(parent client.Object) (*revision.Snapshot, error) {
	return f.target.Snapshot(untyped(parent).Object)
}

// Object implements [history.Format], without children. The error is for the author of the parent or of its controller:
// a parent that has no selector, or one in no namespace while the controller names none for revisions.
func (f *Format) Object(
	parent client.Object, s *revision.Snapshot, collisions *int32, number int64, stamp revision.Stamp,
) (client.Object, error) {
	labels, err := f.Labels(untyped(parent))
	if err != nil {
		return nil, err
	}
	namespace, err := f.Namespace(parent)
	if err != nil {
		return nil, err
	}
	annotations := map[string]string{
		history.ParentUIDAnnotation:        string(stamp.ParentUID),
		history.ParentGenerationAnnotation: strconv.FormatInt(stamp.Generation, 10),
	}
	if cause, ok := parent.GetAnnotations()[changeCause]; ok {
		annotations[changeCause] = cause
	}
	return &v1alpha1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       namespace,
			Name:            f.Name(parent, s, collisions),
			Labels:          labels,
			Annotations:     annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(parent, f.OwnerKind(parent))},
		},
		ParentPatch: runtime.RawExtension{Raw: s.Data()},
		FieldPaths:  f.paths,
		Revision:    number,
	}, nil
}

// Namespace implements [history.Format]: revisions live beside their parent, or where the controller says if it is in
// none.
func (f *Format) Namespace(parent client.Object) (string, error) {
	switch {
	case parent.GetNamespace() != "":
		return parent.GetNamespace(), nil
	case f.namespace != "":
		return f.namespace, nil
	default:
		return "", errors.New("the parent is in no namespace, and revisions must be in one; " +
			"set spec.parentResource.revisionHistory.namespace in the controller")
	}
}

// TargetOf returns the part of a parent that a stored object holds: the field paths that it was taken with, so that a
// restore touches no other field. Revisions of Metacontroller do not list them, and hold the controller's. The error
// says which path is invalid.
func (f *Format) TargetOf(o *v1alpha1.ControllerRevision) (*revision.Target, error) {
	if len(o.FieldPaths) == 0 {
		return f.target, nil
	}
	_, own, err := covered(o.FieldPaths)
	if err != nil {
		return nil, fmt.Errorf("its fieldPaths: %w", err)
	}
	return own, nil
}

// Read implements [history.Format]. An object is read by [Format.TargetOf].
func (f *Format) Read(stored client.Object) revision.Revision {
	o := stored.(*v1alpha1.ControllerRevision)
	r := revision.Revision{
		Name:            o.Name,
		UID:             o.UID,
		ResourceVersion: o.ResourceVersion,
		Number:          o.Revision,
		Hash:            o.Name, // no label points at a revision: it lists its children by name
		Stamp:           history.ReadStamp(o),
		Completed:       history.CompletedRevisions(o),
		Deleting:        o.DeletionTimestamp != nil,
	}
	target, err := f.TargetOf(o)
	if err == nil {
		r.Snapshot, err = decode(target, o.ParentPatch.Raw)
	}
	if err != nil {
		r.Snapshot, r.Err = nil, history.Undecodable(o.Name, err)
	}
	return r
}

// decode reads a patch. If a path leads through a value that is not an object, the patch does not say what the field
// was; if it were taken for absent, a restore would remove the field.
func decode(target *revision.Target, raw []byte) (*revision.Snapshot, error) {
	s, err := target.Decode(raw)
	if err != nil {
		return nil, err
	}
	var tree map[string]any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return nil, err
	}
	for _, path := range target.Paths() {
		var at any = tree
		for i, field := range path {
			m, ok := at.(map[string]any)
			if !ok {
				return nil, fmt.Errorf("%s is no object", path[:i])
			}
			if at, ok = m[field]; !ok {
				break
			}
		}
	}
	return s, nil
}

// Restore returns parent as it was when s was taken: the versioned fields are replaced as a whole, and one that the
// snapshot does not have is removed, whereas Metacontroller would leave it. All else is as in parent,
// which is only read. An error means that the parent now has something other than an object above a field.
func Restore(parent *unstructured.Unstructured, s *revision.Snapshot) (*unstructured.Unstructured, error) {
	tree, err := s.Restore(parent.Object)
	if err != nil {
		return nil, err
	}
	restored, err := plainNumbers(tree)
	if err != nil {
		return nil, fmt.Errorf("restore the parent: %w", err)
	}
	return &unstructured.Unstructured{Object: restored.(map[string]any)}, nil
}

// plainNumbers turns, in place, numbers as they were written into those that unstructured objects hold: int64 where one
// fits, float64 otherwise.
func plainNumbers(v any) (any, error) {
	var err error
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if v[k], err = plainNumbers(e); err != nil {
				return nil, err
			}
		}
	case []any:
		for i, e := range v {
			if v[i], err = plainNumbers(e); err != nil {
				return nil, err
			}
		}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, nil
		}
		return v.Float64()
	}
	return v, nil
}
