package history

import (
	"cmp"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/cairn-dev/cairn/revision"
)

// This file reads what an earlier release of a controller, or an earlier version of a policy, has recorded: each
// revision by its own description. By today's, a revision of other fields would hold nothing, be equal to all others of
// them, and be deleted as a duplicate.

// decode reads the data of a revision.
func (f *Apps) decode(stored *appsv1.ControllerRevision) (*revision.Snapshot, error) {
	target, err := f.recordedAs(stored)
	if err != nil {
		return nil, err
	}
	version := cmp.Or(RecordedIn(stored), f.Parent.GroupVersion().String())
	if owner := metav1.GetControllerOfNoCopy(stored); owner != nil && owner.Kind != f.Parent.Kind {
		version = f.Parent.GroupVersion().String()
	}
	today := version == f.Parent.GroupVersion().String()
	if f.Upgrade != nil && (!today || target != f.Versioned) {
		return f.upgraded(stored, version)
	}
	if target, err = f.Versioned.As(target); err != nil {
		return nil, err
	}
	s, err := target.Decode(stored.Data.Raw)
	if err == nil && !today && !s.Known() {
		err = fmt.Errorf("it was recorded in %s and has fields that are not in %s", version, f.Parent.GroupVersion())
	}
	return s, err
}

// recordedAs is what a revision says that it holds, or today's target: also if it says nothing, or what cannot be read.
func (f *Apps) recordedAs(stored *appsv1.ControllerRevision) (*revision.Target, error) {
	if _, says := stored.Annotations[FieldPathsAnnotation]; !says {
		return f.Versioned, nil
	}
	recorded, err := describedTarget(stored.Annotations)
	if err != nil {
		return nil, fmt.Errorf("its annotations %s and %s cannot be read: %w", FieldPathsAnnotation, IgnoredPathsAnnotation, err)
	}
	if f.Versioned.Covers(recorded) {
		return f.Versioned, nil
	}
	return recorded, nil
}

// upgraded asks the author what a revision holds.
func (f *Apps) upgraded(stored *appsv1.ControllerRevision, version string) (*revision.Snapshot, error) {
	old := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(stored.Data.Raw, &old.Object); err != nil {
		return nil, err
	}
	if old.Object == nil {
		old.Object = map[string]any{}
	}
	old.SetAPIVersion(version)
	old.SetKind(f.Parent.Kind)
	s, err := f.Upgrade(old)
	if err != nil {
		return nil, fmt.Errorf("it was recorded by an earlier release, and cannot be upgraded: %w", err)
	}
	return s.Carried(), nil
}
