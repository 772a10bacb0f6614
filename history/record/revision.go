package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/revision"
)

// This file turns a snapshot of a parent into a stored object and back, and a parent into what it was.

// changeCause is the annotation in which people say why they changed an object (kubectl).
const changeCause = "kubernetes.io/change-cause"

// Snapshot takes the versioned fields of parent. Its data is Metacontroller's parentPatch to the byte: the fields nested
// as in the parent, absent ones left out, keys sorted, compact. parent is only read. An error means that parent cannot
// be written as JSON, which no object from an API server is.
func (f *Format) Snapshot(parent *unstructured.Unstructured) (*revision.Snapshot, error) {
	return f.target.Snapshot(parent.Object)
}

// New returns the object that stores a snapshot of parent: named, labelled and owned, without children. probe is how
// many names before were taken by other objects (see [Format.Name]). The error is for the author of the parent or of
// its controller: a parent that has no selector, or one in no namespace while the controller names none for revisions.
func (f *Format) New(
	parent *unstructured.Unstructured, s *revision.Snapshot, number int64, probe int,
) (*v1alpha1.ControllerRevision, error) {
	labels, err := f.Labels(parent)
	if err != nil {
		return nil, err
	}
	namespace, err := f.Namespace(parent)
	if err != nil {
		return nil, err
	}
	annotations := map[string]string{
		history.ParentUIDAnnotation:        string(parent.GetUID()),
		history.ParentGenerationAnnotation: strconv.FormatInt(parent.GetGeneration(), 10),
	}
	if cause, ok := parent.GetAnnotations()[changeCause]; ok {
		annotations[changeCause] = cause
	}
	return &v1alpha1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       namespace,
			Name:            f.Name(parent.GetUID(), s, probe),
			Labels:          labels,
			Annotations:     annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(parent, parent.GroupVersionKind())},
		},
		ParentPatch: runtime.RawExtension{Raw: s.Data()},
		FieldPaths:  f.paths,
		Revision:    number,
	}, nil
}

// Namespace returns where the revisions of parent live: beside it, or where the controller says if it is in none.
func (f *Format) Namespace(parent *unstructured.Unstructured) (string, error) {
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

// Read returns a stored object as package revision sees it. It is read with the field paths that it was taken with, so
// that restoring it touches nothing that was not looked at; revisions of Metacontroller do not say, and are read with the
// controller's. One that cannot be read has Err and no Snapshot.
func (f *Format) Read(o *v1alpha1.ControllerRevision) revision.Revision {
	r := revision.Revision{
		Name:            o.Name,
		UID:             o.UID,
		ResourceVersion: o.ResourceVersion,
		Number:          o.Revision,
		Hash:            o.Name, // no label points at a revision: it lists its children by name
		Stamp:           stampOf(o),
		Deleting:        o.DeletionTimestamp != nil,
	}
	target := f.target
	if len(o.FieldPaths) > 0 {
		_, own, err := covered(o.FieldPaths)
		if err != nil {
			r.Err = &revision.UndecodableError{Revision: o.Name, Err: fmt.Errorf("its fieldPaths: %w", err)}
			return r
		}
		target = own
	}
	s, err := decode(target, o.ParentPatch.Raw)
	if err != nil {
		if undecodable, ok := errors.AsType[*revision.UndecodableError](err); ok {
			err = undecodable.Err // it is said once, with the name
		}
		r.Err = &revision.UndecodableError{Revision: o.Name, Err: err}
		return r
	}
	r.Snapshot = s
	return r
}

// decode reads a patch. Where a path leads through something that is no object, the patch does not say what the field was;
// to take it for absent would remove the field when the revision is restored.
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

// stampOf reads from which read of which parent a revision was recorded. A malformed stamp is none.
func stampOf(o *v1alpha1.ControllerRevision) revision.Stamp {
	generation, err := strconv.ParseInt(o.Annotations[history.ParentGenerationAnnotation], 10, 64)
	uid := o.Annotations[history.ParentUIDAnnotation]
	if err != nil || uid == "" {
		return revision.Stamp{}
	}
	return revision.Stamp{ParentUID: types.UID(uid), Generation: generation}
}

// Holds reports whether an object that has the name of a revision already is that revision: a snapshot with the content
// of s, controlled by that parent, and there to stay. It tells a create whose answer was lost from a name that is taken.
func (f *Format) Holds(o *v1alpha1.ControllerRevision, parent types.UID, s *revision.Snapshot) bool {
	ref := metav1.GetControllerOfNoCopy(o)
	if ref == nil || ref.UID != parent || o.DeletionTimestamp != nil {
		return false
	}
	stored := f.Read(o)
	return stored.Snapshot != nil && revision.Compare(stored.Snapshot, s) != revision.RuleNone
}

// Restore returns parent as it was when s was taken: the versioned fields are replaced as a whole, and one that the
// snapshot does not have is gone, whereas Metacontroller would leave it (failure mode 28). Everything else is as in
// parent, which is only read. An error means that something else than an object now stands where a field was.
func Restore(parent *unstructured.Unstructured, s *revision.Snapshot) (*unstructured.Unstructured, error) {
	tree, err := s.Restore(parent.Object)
	if err != nil {
		return nil, err
	}
	restored, err := plainNumbers(tree)
	if err != nil {
		return nil, fmt.Errorf("restore the parent: %w", err)
	}
	return &unstructured.Unstructured{Object: restored.(map[string]any)}, nil //nolint:forcetypeassert // a map stays one
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
