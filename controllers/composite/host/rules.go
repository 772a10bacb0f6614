package host

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/cairn-dev/cairn/controllers/composite/hook"
)

// This file says which objects a parent wants to be told of beside its children, by the rules that a customize hook
// answers. It is pure.

// rule is a rule that was checked. Make one with [checkRule].
type rule struct {
	hook.Rule

	// within is the only namespace in which matches of a namespaced resource can be, empty if there may be others.
	within string
	// labels select objects, surroundings select namespaces.
	labels, surroundings labels.Selector
}

// checkRule returns the rule for one parent, or what is wrong with it. namespace is the parent's, empty for one without.
// confined says that the hook is of version v1: of namespaced resources it may ask for what is in its parent's namespace
// only, and an empty namespace means that one.
func checkRule(r hook.Rule, namespace string, confined bool) (rule, error) {
	wrong := func(format string, args ...any) (rule, error) {
		return rule{}, fmt.Errorf("related resource %s of %s: %w", r.Resource, r.APIVersion, fmt.Errorf(format, args...))
	}
	out := rule{Rule: r, within: r.Namespace, labels: labels.Everything(), surroundings: labels.Everything()}
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
		out.within = namespace
	}
	var labelsErr, surroundingsErr error
	if r.LabelSelector != nil {
		out.labels, labelsErr = metav1.LabelSelectorAsSelector(r.LabelSelector)
	}
	if r.NamespaceSelector != nil {
		out.surroundings, surroundingsErr = metav1.LabelSelectorAsSelector(r.NamespaceSelector)
	}
	if err := errors.Join(labelsErr, surroundingsErr); err != nil {
		return wrong("%w", err)
	}
	return out, nil
}

// looksAround reports whether the labels of an object's namespace count.
func (r *rule) looksAround() bool { return !r.surroundings.Empty() }

// matches reports whether the parent wants to be told of an object of the rule's resource. surroundings are the labels of
// its namespace, nil for an object without one: a selector of namespaces matches no such object.
func (r *rule) matches(o metav1.Object, surroundings map[string]string) bool {
	everywhere := o.GetNamespace() == "" && r.Namespace == ""
	switch {
	case r.within != "" && o.GetNamespace() != r.within && !everywhere:
		return false
	case len(r.Names) > 0 && !slices.Contains(r.Names, o.GetName()):
		return false
	case r.looksAround() && (o.GetNamespace() == "" || !r.surroundings.Matches(labels.Set(surroundings))):
		return false
	}
	return r.labels.Matches(labels.Set(o.GetLabels()))
}
