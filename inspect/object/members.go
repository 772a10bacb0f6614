package object

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/history/metacontroller"
	"github.com/cairn-dev/cairn/ownership"
)

// This file finds the children of a composite parent: those that exist, of all the resources that its controller
// declares, and those that a revision lists and that do not exist.

func (c *composite) Members(ctx context.Context, parent client.Object, log []Stored) (*Members, error) {
	listed, err := c.listed(ctx, parent, log)
	if err != nil {
		return nil, err
	}
	selector, err := c.format.ChildSelector(untyped(parent))
	if err != nil {
		return nil, err
	}
	out := &Members{}
	seen := sets.New[metacontroller.Child]()
	unseen := sets.New[schema.GroupKind]()
	for n := range c.controller.Spec.ChildResources {
		resource := &c.controller.Spec.ChildResources[n]
		gvk, err := c.kindOf(resource.ResourceRule)
		if err != nil {
			out.Doubts = append(out.Doubts, fmt.Sprintf("Children of resource %s could not be looked at: %v.", resource.Resource, err))
			continue
		}
		objects, err := c.children(ctx, parent, gvk, selector)
		if err != nil {
			out.Doubts = append(out.Doubts, fmt.Sprintf("Children of kind %s could not be looked at: %v.", gvk.Kind, err))
			unseen.Insert(gvk.GroupKind())
			continue
		}
		for _, o := range objects {
			child := NewMember(childOf(parent, gvk, o), o, resource.UpdateStrategy)
			child.Of = revisionOf(listed, child.Child)
			child.Rolled = child.Rolled || child.Of >= 0
			seen.Insert(child.Child)
			out.Children = append(out.Children, child)
		}
		out.Held = append(out.Held, held(gvk.Kind, resource.UpdateStrategy)...)
	}
	for of, children := range listed {
		for _, child := range children.Sorted() {
			if !seen.Has(child) && !unseen.Has(child.GroupKind) {
				out.Children = append(out.Children, Member{Child: child, Of: of, Rolled: true})
			}
		}
	}
	if idle := idleness(c.controller); idle != "" {
		out.Doubts = append(out.Doubts, idle)
	}
	return out, nil
}

// kindOf returns the kind of a resource.
func (c *composite) kindOf(rule v1alpha1.ResourceRule) (schema.GroupVersionKind, error) {
	version, err := schema.ParseGroupVersion(rule.APIVersion)
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	return c.client.RESTMapper().KindFor(version.WithResource(rule.Resource))
}

// children returns the objects of one kind that parent controls, beside it or, if it is in no namespace, anywhere.
func (c *composite) children(ctx context.Context, parent client.Object, gvk schema.GroupVersionKind, selector labels.Selector) (
	[]*unstructured.Unstructured, error,
) {
	var list unstructured.UnstructuredList
	gvk.Kind += "List"
	list.SetGroupVersionKind(gvk)
	matching := client.MatchingLabelsSelector{Selector: selector}
	if err := c.client.List(ctx, &list, client.InNamespace(parent.GetNamespace()), matching); err != nil {
		return nil, err
	}
	owner := ownership.OwnerOf(parent, c.format.OwnerKind(parent).GroupKind())
	var out []*unstructured.Unstructured
	for n := range list.Items {
		if owner.Controls(&list.Items[n]) {
			out = append(out, &list.Items[n])
		}
	}
	return out, nil
}

// childOf names a child as the revisions of parent do.
func childOf(parent client.Object, gvk schema.GroupVersionKind, o client.Object) metacontroller.Child {
	child := metacontroller.Child{GroupKind: gvk.GroupKind(), Name: o.GetName()}
	if parent.GetNamespace() == "" {
		child.Namespace = o.GetNamespace()
	}
	return child
}

// revisionOf returns the index of the revision that lists a child, stray if none does.
func revisionOf(listed []*metacontroller.Claims, child metacontroller.Child) int {
	for n, of := range listed {
		if of.Has(child) {
			return n
		}
	}
	return Stray
}

// NewMember returns a child that is updated under strategy, which may be nil.
func NewMember(child metacontroller.Child, o *unstructured.Unstructured, strategy *v1alpha1.ChildUpdateStrategy) Member {
	return Member{
		Child: child, Object: o, Of: Stray, Rolled: strategy.EffectiveMethod().Rolling(), Ready: metacontroller.ReadyRule(strategy),
	}
}

// held says which children an update strategy keeps as they are, although the parent asks for something else.
func held(kind string, s *v1alpha1.ChildUpdateStrategy) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	switch {
	case !s.EffectiveMethod().Rolling():
	case s.Paused != nil && *s.Paused:
		say("Updates of kind %s are paused: every child keeps its revision.", kind)
	case s.Partition != nil && *s.Partition > 0:
		say("Updates of kind %s are partitioned: the last %d children in the order of the hook keep their revision.", kind, *s.Partition)
	}
	return out
}

// idleness says why a controller does not run, empty if it does or does not say.
func idleness(cc *v1alpha1.CompositeController) string {
	for _, condition := range cc.Status.Conditions {
		if condition.Type == "Ready" && condition.Status == metav1.ConditionFalse {
			return fmt.Sprintf("CompositeController %s does not run: %s: %s.", cc.Name, condition.Reason, condition.Message)
		}
	}
	return ""
}
