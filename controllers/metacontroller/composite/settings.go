package composite

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/history/metacontroller"
	"github.com/cairn-dev/cairn/internal/metacontroller/host"
	"github.com/cairn-dev/cairn/internal/watching"
)

// This file reads a CompositeController: what its parents and children are, and how they are run.

// finalizerPrefix begins the finalizer that a parent has while a finalize hook is to be called (Metacontroller).
const finalizerPrefix = "metacontroller.io/compositecontroller-"

// settings are what one CompositeController asks for. Nothing changes them: a new spec is a new value.
type settings struct {
	// name is that of the CompositeController, declared is all of it.
	name     string
	declared *v1alpha1.CompositeController
	// parent is the resource of the parents, selector narrows them.
	parent   watching.Resource
	selector labels.Selector
	// builtin says that the kind of the parents is built into Kubernetes.
	builtin bool
	// children are the resources that children may have, in the order of the spec.
	children   []watching.Resource
	strategies map[schema.GroupKind]strategy
	// generate says that children are selected by the parent's UID.
	generate bool
	// finalizer is that of the controller. finalizes says that parents are to have it.
	finalizer string
	finalizes bool
	// ignoreStatus says that an update of nothing but a parent's status enqueues nothing.
	ignoreStatus bool
	// recorded says that parents have revisions, limit how many are kept of those that no child belongs to.
	recorded bool
	rolls    bool
	limit    int
	// deadline is after how long without progress a rollout has failed, zero if that is not said.
	deadline time.Duration
	format   *metacontroller.Format
}

// readSettings returns what cc asks for. The error is for the author of cc, or says that something is not served yet.
func readSettings(cc *v1alpha1.CompositeController, resources watching.Resources) (*settings, error) {
	spec := &cc.Spec
	s := &settings{
		name:         cc.Name,
		declared:     cc,
		selector:     labels.Everything(),
		strategies:   map[schema.GroupKind]strategy{},
		generate:     spec.GenerateSelector != nil && *spec.GenerateSelector,
		finalizer:    finalizerPrefix + cc.Name,
		finalizes:    spec.Hooks != nil && spec.Hooks.Finalize != nil,
		ignoreStatus: spec.ParentResource.IgnoreStatusChanges != nil && *spec.ParentResource.IgnoreStatusChanges,
		limit:        spec.ParentResource.RevisionHistory.EffectiveLimit(),
	}
	if seconds := spec.ProgressDeadlineSeconds; seconds != nil {
		s.deadline = time.Duration(*seconds) * time.Second
	}
	var err error
	if s.format, err = metacontroller.NewFormat(spec); err != nil {
		return nil, err
	}
	if s.parent, err = host.DeclaredParent(resources, spec.ParentResource.APIVersion, spec.ParentResource.Resource); err != nil {
		return nil, fmt.Errorf("spec.parentResource: %w", err)
	}
	s.builtin = scheme.Scheme.Recognizes(s.parent.Kind)
	if spec.ParentResource.LabelSelector != nil {
		if s.selector, err = metav1.LabelSelectorAsSelector(spec.ParentResource.LabelSelector); err != nil {
			return nil, fmt.Errorf("spec.parentResource.labelSelector: %w", err)
		}
	}
	for i, child := range spec.ChildResources {
		resource, err := host.Declared(resources, child.APIVersion, child.Resource)
		if err != nil {
			return nil, fmt.Errorf("spec.childResources[%d]: %w", i, err)
		}
		kind := resource.Kind.GroupKind()
		if _, twice := s.strategies[kind]; twice {
			return nil, fmt.Errorf("spec.childResources[%d]: %s is listed already; list a kind once, in one version", i, kind)
		}
		s.children = append(s.children, resource)
		s.strategies[kind] = strategyOf(child.UpdateStrategy)
		s.rolls = s.rolls || s.strategies[kind].method.Rolling()
	}
	s.recorded = recorded(spec, s.parent.Namespaced)
	return s, nil
}

// matches reports whether an object is one of the controller's parents.
func (s *settings) matches(parent *unstructured.Unstructured) bool {
	return s.selector.Matches(labels.Set(parent.GetLabels()))
}

// declares reports whether children may be of a kind.
func (s *settings) declares(kind schema.GroupKind) bool {
	_, ok := s.strategies[kind]
	return ok
}

// finalized reports whether a parent has the controller's finalizer.
func (s *settings) finalized(parent *unstructured.Unstructured) bool {
	return slices.Contains(parent.GetFinalizers(), s.finalizer)
}

// recorded reports whether parents have revisions. Metacontroller records those whose children are rolled. Those of a
// controller that sets revisionHistory have some, too, unless there is no namespace for them, as in Metacontroller.
func recorded(spec *v1alpha1.CompositeControllerSpec, namespaced bool) bool {
	if rolls(spec) {
		return true
	}
	history := spec.ParentResource.RevisionHistory
	return history != nil && (namespaced || history.Namespace != "")
}

// rolls reports whether a controller rolls children out.
func rolls(spec *v1alpha1.CompositeControllerSpec) bool {
	return slices.ContainsFunc(spec.ChildResources, func(c v1alpha1.ChildResource) bool {
		return c.UpdateStrategy.EffectiveMethod().Rolling()
	})
}
