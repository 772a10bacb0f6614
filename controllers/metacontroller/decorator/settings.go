package decorator

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/metacontroller/host"
	"github.com/cairn-dev/cairn/internal/watching"
)

// This file reads a DecoratorController: which objects it is about and how their attachments are kept. It is pure.

// Annotation names, on an attachment, the DecoratorController that made it. Metacontroller writes the same one.
const Annotation = "metacontroller.k8s.io/decorator-controller"

// finalizerPrefix begins the finalizer that an object has while a finalize hook is to be called (Metacontroller).
const finalizerPrefix = "metacontroller.io/decoratorcontroller-"

// decorated is a resource whose objects are decorated, as far as both selectors match.
type decorated struct {
	watching.Resource

	labels      labels.Selector
	annotations requirements
	// ignoreStatus says that an update of nothing but the status enqueues nothing.
	ignoreStatus bool
	// status says that the status is a resource of its own, so that a patch of the object does not reach it.
	status bool
}

// settings are what one DecoratorController asks for. Nothing changes them: a new spec is a new value.
type settings struct {
	// name is that of the DecoratorController.
	name string
	// resources are those to decorate, one for each kind.
	resources []*decorated
	// attachments are the resources that attachments may have, methods says how they are updated.
	attachments []watching.Resource
	methods     map[schema.GroupKind]v1alpha1.ChildUpdateMethod
	// finalizer is that of the controller. finalizes says that objects are to have it.
	finalizer string
	finalizes bool
}

// read returns what dc asks for. The error is for the author of dc, or says that something is not served yet.
func read(dc *v1alpha1.DecoratorController, r watching.Resources) (*settings, error) {
	s := &settings{
		name:      dc.Name,
		methods:   map[schema.GroupKind]v1alpha1.ChildUpdateMethod{},
		finalizer: finalizerPrefix + dc.Name,
		finalizes: dc.Spec.Hooks != nil && dc.Spec.Hooks.Finalize != nil,
	}
	for i, spec := range dc.Spec.Resources {
		d, err := readResource(&spec, r)
		if err != nil {
			return nil, fmt.Errorf("spec.resources[%d]: %w", i, err)
		}
		// Of two entries for one kind the last one counts, as in Metacontroller.
		s.resources = slices.DeleteFunc(s.resources, func(other *decorated) bool { return other.Kind.GroupKind() == d.Kind.GroupKind() })
		s.resources = append(s.resources, d)
	}
	for i, spec := range dc.Spec.Attachments {
		resource, err := host.Declared(r, spec.APIVersion, spec.Resource)
		if err != nil {
			return nil, fmt.Errorf("spec.attachments[%d]: %w", i, err)
		}
		kind := resource.Kind.GroupKind()
		if _, twice := s.methods[kind]; twice {
			return nil, fmt.Errorf("spec.attachments[%d]: %s is listed already; list a kind once, in one version", i, kind)
		}
		s.attachments = append(s.attachments, resource)
		s.methods[kind] = methodOf(spec.UpdateStrategy)
	}
	return s, nil
}

func readResource(spec *v1alpha1.DecoratorResource, r watching.Resources) (*decorated, error) {
	resource, err := host.Declared(r, spec.APIVersion, spec.Resource)
	if err != nil {
		return nil, err
	}
	d := &decorated{
		Resource: resource, labels: labels.Everything(),
		ignoreStatus: spec.IgnoreStatusChanges != nil && *spec.IgnoreStatusChanges,
	}
	if spec.LabelSelector != nil {
		if d.labels, err = metav1.LabelSelectorAsSelector(spec.LabelSelector); err != nil {
			return nil, fmt.Errorf("labelSelector: %w", err)
		}
	}
	if d.annotations, err = readAnnotations(spec.AnnotationSelector); err != nil {
		return nil, fmt.Errorf("annotationSelector: %w", err)
	}
	return d, nil
}

// methodOf returns one of OnDelete, Recreate and InPlace. Attachments have no revisions, so that a rolling method is
// the one that it rolls with (Metacontroller).
func methodOf(s *v1alpha1.AttachmentUpdateStrategy) v1alpha1.ChildUpdateMethod {
	if s == nil {
		return v1alpha1.ChildUpdateOnDelete
	}
	switch s.Method {
	case v1alpha1.ChildUpdateRecreate, v1alpha1.ChildUpdateRollingRecreate:
		return v1alpha1.ChildUpdateRecreate
	case v1alpha1.ChildUpdateInPlace, v1alpha1.ChildUpdateRollingInPlace:
		return v1alpha1.ChildUpdateInPlace
	case v1alpha1.ChildUpdateOnDelete:
	}
	return v1alpha1.ChildUpdateOnDelete
}

// matches reports whether an object is one that the controller decorates.
func (d *decorated) matches(o *unstructured.Unstructured) bool {
	return d.labels.Matches(labels.Set(o.GetLabels())) && d.annotations.match(o.GetAnnotations())
}

// concerns reports whether the controller has anything to do with an object: it decorates it, or it did and has not
// cleaned up yet.
func (s *settings) concerns(d *decorated, o *unstructured.Unstructured) bool {
	return d.matches(o) || s.finalized(o)
}

// finalized reports whether an object has the controller's finalizer.
func (s *settings) finalized(o *unstructured.Unstructured) bool {
	return slices.Contains(o.GetFinalizers(), s.finalizer)
}

// finalizing reports whether the finalize hook is to be called for an object: it is terminating, or no longer selected.
func (s *settings) finalizing(d *decorated, o *unstructured.Unstructured) bool {
	return s.finalizes && (o.GetDeletionTimestamp() != nil || !d.matches(o))
}

// manages reports whether the attachments of an object are still ours to manage. Those of a terminating object are only
// as long as our finalizer holds it, and never when the garbage collector deletes or orphans them by itself.
func (s *settings) manages(o *unstructured.Unstructured) bool {
	if o.GetDeletionTimestamp() == nil {
		return true
	}
	return s.finalizes && s.finalized(o) && !slices.ContainsFunc(o.GetFinalizers(), func(name string) bool {
		return name == metav1.FinalizerDeleteDependents || name == metav1.FinalizerOrphanDependents
	})
}

// made reports whether o is an attachment of this controller, by its annotation. A nil o is none.
func (s *settings) made(o client.Object) bool {
	return o != nil && o.GetAnnotations()[Annotation] == s.name
}

// of returns the decorated resource of a kind, in whatever version, or nil.
func (s *settings) of(kind schema.GroupKind) *decorated {
	for _, d := range s.resources {
		if d.Kind.GroupKind() == kind {
			return d
		}
	}
	return nil
}
