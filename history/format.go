package history

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/revision"
)

// This file says how each kind stores its log. Formats are contracts with kubectl and with the built-in controllers.

// Annotations that cairn adds to the revisions it writes. They are evidence for rule R0 and for fencing, and nothing
// depends on their presence: revisions of the built-in controllers have none.
const (
	// ParentUIDAnnotation holds the UID of the parent that the revision was recorded for.
	ParentUIDAnnotation = "cairn.dev/parent-uid"
	// ParentGenerationAnnotation holds the parent's metadata.generation, in decimal, when the revision was created or
	// renumbered.
	ParentGenerationAnnotation = "cairn.dev/parent-generation"
)

// statefulSetHashLabel is the hash label of the revisions of StatefulSets. No published package has a name for it.
const statefulSetHashLabel = "controller.kubernetes.io/hash"

// Format says how the revisions of one parent kind are stored as apps/v1 ControllerRevisions. Build it once and share
// it; nothing changes it.
type Format struct {
	// Parent is the parent's group, version and kind, as written into owner references.
	Parent schema.GroupVersionKind
	// Target is the part of the parent that is versioned.
	Target *revision.Target
	// Generational is true if every change of that part raises metadata.generation.
	Generational bool
	// HashLabel is the label key under which a revision carries its hash.
	HashLabel string
	// Selector returns the selector by which a parent claims its children and its revisions.
	Selector func(parent client.Object) (labels.Selector, error)
	// Children is the kind of the objects made from a revision, and ChildLabel the label under which they point at it: by
	// its hash, or by its name.
	Children   schema.GroupVersionKind
	ChildLabel string
	// New returns an empty parent.
	New func() client.Object
	// Labels returns the labels of a new revision, the hash label apart. The parent's selector must match them, or the
	// revision is released as soon as it is made.
	Labels func(parent client.Object) map[string]string
	// Named names a new revision. Nil means <parent>-<hash>, by [revision.Hash] of its data.
	Named Naming
	// Annotations returns the annotations of a new revision, the stamp apart. Nil means none.
	Annotations func(parent client.Object) map[string]string
}

// DaemonSet is the format that Kubernetes 1.36 writes for DaemonSets, so that kubectl rollout history and undo work, and
// so that the built-in controller can take over and hand back. All of the parent's annotations are copied, as there.
func DaemonSet() Format {
	return Format{
		Parent:       appsv1.SchemeGroupVersion.WithKind("DaemonSet"),
		Target:       revision.StrategicMerge(revision.Typed[appsv1.DaemonSet](), revision.Path{"spec", "template"}),
		Generational: true,
		HashLabel:    appsv1.DefaultDaemonSetUniqueLabelKey,
		Labels: func(parent client.Object) map[string]string {
			ds, ok := parent.(*appsv1.DaemonSet)
			if !ok {
				return nil
			}
			return ds.Spec.Template.Labels
		},
		Named:       namedAsDaemonSet,
		Annotations: client.Object.GetAnnotations,
		Selector: func(parent client.Object) (labels.Selector, error) {
			ds, ok := parent.(*appsv1.DaemonSet)
			if !ok {
				return nil, fmt.Errorf("%T is no DaemonSet", parent)
			}
			return metav1.LabelSelectorAsSelector(ds.Spec.Selector)
		},
		Children:   corev1.SchemeGroupVersion.WithKind("Pod"),
		ChildLabel: appsv1.DefaultDaemonSetUniqueLabelKey,
		New:        func() client.Object { return &appsv1.DaemonSet{} },
	}
}

// StatefulSet is the format that Kubernetes 1.36 writes for StatefulSets. A revision carries its hash under a label of its
// own, and pods name it by its object name. volumeClaimTemplates cannot change, so they are no part of it. All of the
// parent's annotations are copied, as there.
func StatefulSet() Format {
	return Format{
		Parent:       appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
		Target:       revision.StrategicMerge(revision.Typed[appsv1.StatefulSet](), revision.Path{"spec", "template"}),
		Generational: true,
		HashLabel:    statefulSetHashLabel,
		Labels: func(parent client.Object) map[string]string {
			set, ok := parent.(*appsv1.StatefulSet)
			if !ok {
				return nil
			}
			return set.Spec.Template.Labels
		},
		Named:       namedAsStatefulSet,
		Annotations: client.Object.GetAnnotations,
		Selector: func(parent client.Object) (labels.Selector, error) {
			set, ok := parent.(*appsv1.StatefulSet)
			if !ok {
				return nil, fmt.Errorf("%T is no StatefulSet", parent)
			}
			return metav1.LabelSelectorAsSelector(set.Spec.Selector)
		},
		Children:   corev1.SchemeGroupVersion.WithKind("Pod"),
		ChildLabel: appsv1.StatefulSetRevisionLabel,
		New:        func() client.Object { return &appsv1.StatefulSet{} },
	}
}

// FormatOf returns the format of a parent kind. ok is false for a kind that keeps no log in apps/v1 ControllerRevisions,
// or one that cairn does not know yet; the caller says so to whoever asked.
func FormatOf(parent schema.GroupKind) (f Format, ok bool) {
	for _, f := range []Format{DaemonSet(), StatefulSet()} {
		if f.Parent.GroupKind() == parent {
			return f, true
		}
	}
	return Format{}, false
}
