package composite

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// This file says which objects a parent wants to be told of beside its children: the rules that a customize hook answers.
// It is pure.

// RelatedRule is one entry of a customize hook's answer, relatedResources.
type RelatedRule struct {
	APIVersion, Resource string
	// LabelSelector narrows objects by their labels, NamespaceSelector by those of their namespace. Nil selects all.
	LabelSelector, NamespaceSelector *metav1.LabelSelector
	// Namespace, unless it is empty, is the only one. Names, unless it is empty, are the only names.
	Namespace string
	Names     []string
}

// Related is a rule that was checked. Make one with [RelatedRule.Check].
type Related struct {
	rule              RelatedRule
	namespace         string
	object, surrounds labels.Selector
}

// Check returns the rule for one parent, or what is wrong with it. namespace is the parent's, empty for one without.
// confined says that the hook is of version v1: of namespaced resources it may ask for what is in its parent's namespace
// only, and an empty namespace means that one.
func (r RelatedRule) Check(namespace string, confined bool) (Related, error) {
	wrong := func(format string, args ...any) (Related, error) {
		return Related{}, fmt.Errorf("related resource %s of %s: %w", r.Resource, r.APIVersion, fmt.Errorf(format, args...))
	}
	out := Related{rule: r, namespace: r.Namespace, object: labels.Everything(), surrounds: labels.Everything()}
	switch {
	case r.APIVersion == "" || r.Resource == "":
		return wrong("apiVersion and resource are required")
	case len(r.Names) > 0 && (r.LabelSelector != nil || r.NamespaceSelector != nil):
		return wrong("names and selectors exclude each other")
	case r.Namespace != "" && r.NamespaceSelector != nil:
		return wrong("namespace and namespaceSelector exclude each other")
	case confined && namespace != "" && r.NamespaceSelector != nil:
		return wrong("a hook of version v1 sees the parent's namespace only, so namespaceSelector is not for it; version v2 sees all")
	case confined && namespace != "" && r.Namespace != "" && r.Namespace != namespace:
		return wrong("a hook of version v1 sees the parent's namespace %s only, not %s; version v2 sees all", namespace, r.Namespace)
	case confined && namespace != "":
		out.namespace = namespace
	}
	var objectErr, surroundsErr error
	if r.LabelSelector != nil {
		out.object, objectErr = metav1.LabelSelectorAsSelector(r.LabelSelector)
	}
	if r.NamespaceSelector != nil {
		out.surrounds, surroundsErr = metav1.LabelSelectorAsSelector(r.NamespaceSelector)
	}
	if err := errors.Join(objectErr, surroundsErr); err != nil {
		return wrong("%w", err)
	}
	return out, nil
}

// Namespace is the only one in which matches of a namespaced resource can be, empty if there may be others.
func (r Related) Namespace() string { return r.namespace }

// Names are the only names that matches can have, empty if there may be others.
func (r Related) Names() []string { return r.rule.Names }

// Selector is that of the objects' labels.
func (r Related) Selector() labels.Selector { return r.object }

// NeedsNamespaceLabels reports whether [Related.Matches] looks at the labels of an object's namespace.
func (r Related) NeedsNamespaceLabels() bool { return !r.surrounds.Empty() }

// Matches reports whether the parent wants to be told of an object of the rule's resource. surroundings are the labels of
// its namespace, nil for an object without one: a selector of namespaces matches no such object.
func (r Related) Matches(o metav1.Object, surroundings map[string]string) bool {
	everywhere := o.GetNamespace() == "" && r.rule.Namespace == ""
	switch {
	case r.namespace != "" && o.GetNamespace() != r.namespace && !everywhere:
		return false
	case len(r.rule.Names) > 0 && !slices.Contains(r.rule.Names, o.GetName()):
		return false
	case r.NeedsNamespaceLabels() && (o.GetNamespace() == "" || !r.surrounds.Matches(labels.Set(surroundings))):
		return false
	}
	return r.object.Matches(labels.Set(o.GetLabels()))
}
