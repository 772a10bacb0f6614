package history

import (
	"cmp"
	"errors"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/revision"
)

// This file is the format of apps/v1 ControllerRevisions, and what DaemonSets, StatefulSets and CronJobs make of it.

// statefulSetHashLabel is the hash label of the revisions of StatefulSets. No published package has a name for it.
const statefulSetHashLabel = "controller.kubernetes.io/hash"

// AppsResource is the resource of apps/v1 ControllerRevisions.
var AppsResource = schema.GroupResource{Group: appsv1.GroupName, Resource: "controllerrevisions"}

// Apps is the [Format] of a kind whose revisions are apps/v1 ControllerRevisions beside their parents.
type Apps struct {
	// Parent is the parent's group, version and kind.
	Parent schema.GroupVersionKind
	// Versioned is the part of the parent that is versioned.
	Versioned *revision.Target
	// ByGeneration is true if every change of that part raises metadata.generation.
	ByGeneration bool
	// HashLabel is the label key under which a revision carries its hash.
	HashLabel string
	// SelectorOf returns the selector by which a parent claims its children and its revisions.
	SelectorOf func(parent client.Object) (labels.Selector, error)
	// Children are the kinds of the objects made from a revision, and ChildLabel the label under which they point at it:
	// by its hash, or by its name. Children is empty where nobody but the author knows what is made from one.
	Children   []schema.GroupVersionKind
	ChildLabel string
	// OfNewest reports whether a child comes from the newest revision, whatever its label names. Nil means no.
	OfNewest func(parent, child client.Object) bool
	// Runs is true if children are runs, which are found by their ControllerRef alone, and are not replaced when the
	// parent goes to another revision: the Jobs of a CronJob.
	Runs bool
	// NewParent returns an empty parent.
	NewParent func() client.Object
	// Labels returns the labels of a new revision, the hash label apart. The parent's selector must match them, or the
	// revision is released as soon as it is made.
	Labels func(parent client.Object) map[string]string
	// Named names a new revision. Nil means <parent>-<hash>, by [revision.Hash] of its data.
	Named Naming
	// Foreign says that revisions are made by a controller of which it is not known how it names them.
	Foreign bool
	// Annotations returns the annotations of a new revision, the stamp apart. Nil means none.
	Annotations func(parent client.Object) map[string]string
	// Anew returns those of these annotations that a revision gets again when its parent goes back to it, with nil for
	// what is to go. Nil means none, as the built-in controllers have it.
	Anew func(parent client.Object) map[string]any
	// Upgrade returns what a parent asked for when an earlier release of its controller recorded a revision, as a snapshot
	// of today's. It is given an object with the apiVersion and kind of then and what the revision holds, and called for
	// revisions of other field paths or another API version only. Its error makes the revision one that cannot be read,
	// which is kept. Nil means that what has its place in today's description is read, and the rest is not: see
	// [revision.Target.As].
	Upgrade func(old *unstructured.Unstructured) (*revision.Snapshot, error)
	// Elsewhere is the namespace of the revisions of parents that are in none.
	Elsewhere string
}

var _ Format = (*Apps)(nil)

// DaemonSet is the format that Kubernetes 1.37 writes for DaemonSets, so that kubectl rollout history and undo work,
// and so that the built-in controller can take over and hand back. All of the parent's annotations are copied, as
// there.
func DaemonSet() *Apps {
	return &Apps{
		Parent:       appsv1.SchemeGroupVersion.WithKind("DaemonSet"),
		Versioned:    revision.StrategicMerge(revision.Typed[appsv1.DaemonSet](), revision.Path{"spec", "template"}),
		ByGeneration: true,
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
		SelectorOf: func(parent client.Object) (labels.Selector, error) {
			ds, ok := parent.(*appsv1.DaemonSet)
			if !ok {
				return nil, fmt.Errorf("%T is not a DaemonSet", parent)
			}
			return metav1.LabelSelectorAsSelector(ds.Spec.Selector)
		},
		Children:   []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("Pod")},
		ChildLabel: appsv1.DefaultDaemonSetUniqueLabelKey,
		OfNewest:   IsOfTemplate,
		NewParent:  func() client.Object { return &appsv1.DaemonSet{} },
	}
}

// StatefulSet is the format that Kubernetes 1.37 writes for StatefulSets. A revision carries its hash under a label of
// its own, and pods name it by its object name. volumeClaimTemplates cannot change, so they are no part of it. All of
// the parent's annotations are copied, as there.
func StatefulSet() *Apps {
	return &Apps{
		Parent:       appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
		Versioned:    revision.StrategicMerge(revision.Typed[appsv1.StatefulSet](), revision.Path{"spec", "template"}),
		ByGeneration: true,
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
		SelectorOf: func(parent client.Object) (labels.Selector, error) {
			set, ok := parent.(*appsv1.StatefulSet)
			if !ok {
				return nil, fmt.Errorf("%T is not a StatefulSet", parent)
			}
			return metav1.LabelSelectorAsSelector(set.Spec.Selector)
		},
		Children:   []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("Pod")},
		ChildLabel: appsv1.StatefulSetRevisionLabel,
		NewParent:  func() client.Object { return &appsv1.StatefulSet{} },
	}
}

// changeCauseAnnotation is what people say of a change, for kubectl rollout history.
const changeCauseAnnotation = "kubernetes.io/change-cause"

// CronJobLabel is on the revisions of a CronJob, which has no selector. Its value is the CronJob's name.
const CronJobLabel = "cairn.dev/cronjob"

// CronJob is the format of CronJobs: no built-in controller keeps a history of them. What is versioned is the template
// of their Jobs; the schedule is no part of it. Jobs are found by their ControllerRef (ControllerRef proposal,
// "CronJob").
func CronJob() *Apps {
	owned := func(parent client.Object) map[string]string {
		return map[string]string{CronJobLabel: revision.LabelValue(parent.GetName())}
	}
	return &Apps{
		Parent:       batchv1.SchemeGroupVersion.WithKind("CronJob"),
		Versioned:    revision.StrategicMerge(revision.Typed[batchv1.CronJob](), revision.Path{"spec", "jobTemplate"}),
		ByGeneration: true,
		HashLabel:    appsv1.ControllerRevisionHashLabelKey,
		Labels:       owned,
		SelectorOf: func(parent client.Object) (labels.Selector, error) {
			return labels.ValidatedSelectorFromSet(owned(parent))
		},
		Annotations: func(parent client.Object) map[string]string {
			cause, ok := parent.GetAnnotations()[changeCauseAnnotation]
			if !ok {
				return nil
			}
			return map[string]string{changeCauseAnnotation: cause}
		},
		Children:   []schema.GroupVersionKind{batchv1.SchemeGroupVersion.WithKind("Job")},
		ChildLabel: appsv1.ControllerRevisionHashLabelKey,
		Runs:       true,
		NewParent:  func() client.Object { return &batchv1.CronJob{} },
	}
}

// Target implements [Format].
func (f *Apps) Target() *revision.Target { return f.Versioned }

// Snapshot implements [Format].
func (f *Apps) Snapshot(parent client.Object) (*revision.Snapshot, error) {
	return f.Versioned.Snapshot(parent)
}

// Generational implements [Format].
func (f *Apps) Generational() bool { return f.ByGeneration }

// OwnerKind implements [Format].
func (f *Apps) OwnerKind(client.Object) schema.GroupVersionKind { return f.Parent }

// Resource implements [Format].
func (f *Apps) Resource() schema.GroupResource { return AppsResource }

// Empty implements [Format].
func (f *Apps) Empty() client.Object { return &appsv1.ControllerRevision{} }

// EmptyList implements [Format].
func (f *Apps) EmptyList() client.ObjectList { return &appsv1.ControllerRevisionList{} }

// Namespace implements [Format]: revisions are beside their parent.
func (f *Apps) Namespace(parent client.Object) (string, error) {
	return cmp.Or(parent.GetNamespace(), f.Elsewhere), nil
}

// Selector implements [Format].
func (f *Apps) Selector(parent client.Object) (labels.Selector, error) { return f.SelectorOf(parent) }

// Adoptable implements [Format]: it keeps the logs of two kinds apart whose templates have the same labels, and what no
// controller has made out of them.
func (f *Apps) Adoptable(parent, orphan client.Object, _ []client.Object) error {
	if stored, ok := orphan.(*appsv1.ControllerRevision); ok {
		if genuine, known := f.Genuine(parent, stored); known && !genuine {
			return errors.New("its name does not follow from its content, so no controller has made it for an object of this name")
		}
	}
	if _, ours := orphan.GetLabels()[f.HashLabel]; ours {
		return nil
	}
	for _, foreign := range []string{appsv1.ControllerRevisionHashLabelKey, statefulSetHashLabel} {
		if _, ok := orphan.GetLabels()[foreign]; ok {
			return fmt.Errorf("its hash label is %s, so it is the revision of another kind", foreign)
		}
	}
	return nil
}

// Name implements [Format].
func (f *Apps) Name(parent client.Object, s *revision.Snapshot, collisions *int32) string {
	name, _ := f.named(parent, s, collisions)
	return name
}

func (f *Apps) named(parent client.Object, s *revision.Snapshot, collisions *int32) (name, hash string) {
	if f.Named == nil {
		return named(parent, s.Data(), collisions)
	}
	return f.Named(parent, s.Data(), collisions)
}

// Object implements [Format].
func (f *Apps) Object(
	parent client.Object, s *revision.Snapshot, collisions *int32, number int64, stamp revision.Stamp,
) (client.Object, error) {
	name, hash := f.named(parent, s, collisions)
	set := maps.Clone(f.Labels(parent))
	if set == nil {
		set = map[string]string{}
	}
	set[f.HashLabel] = hash
	var copied map[string]string
	if f.Annotations != nil {
		copied = f.Annotations(parent)
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name:            name,
			Namespace:       cmp.Or(parent.GetNamespace(), f.Elsewhere),
			Labels:          set,
			Annotations:     annotations(copied, stamp),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(parent, f.Parent)},
		},
		Data:     runtime.RawExtension{Raw: s.Data()},
		Revision: number,
	}, nil
}

// again returns the annotations that a revision gets when its parent goes back to it.
func (f *Apps) again(parent client.Object) map[string]any {
	if f.Anew == nil {
		return nil
	}
	return f.Anew(parent)
}

// HashLabels implements [Format]. Children that name their revision need no label on it.
func (f *Apps) HashLabels(r revision.Revision) map[string]string {
	if f.ChildLabel != "" && f.ChildLabel != f.HashLabel {
		return nil
	}
	return map[string]string{f.HashLabel: r.Hash}
}

// Read implements [Format].
func (f *Apps) Read(o client.Object) revision.Revision {
	stored := o.(*appsv1.ControllerRevision)
	r := revision.Revision{
		Name:            stored.Name,
		UID:             stored.UID,
		ResourceVersion: stored.ResourceVersion,
		Number:          stored.Revision,
		Hash:            stored.Labels[f.HashLabel],
		Stamp:           ReadStamp(stored),
		Completed:       CompletedRevisions(stored),
		Deleting:        stored.DeletionTimestamp != nil,
	}
	s, err := f.decode(stored)
	if err != nil {
		r.Err = Undecodable(stored.Name, err)
		return r
	}
	r.Snapshot = s
	return r
}

// Undecodable says which revision cannot be read and why, for implementations of [Format]. The name is said once.
func Undecodable(name string, err error) error {
	if undecodable, ok := errors.AsType[*revision.UndecodableError](err); ok {
		err = undecodable.Err
	}
	return &revision.UndecodableError{Revision: name, Err: err}
}
