package related

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
)

// This file says which objects are related to a parent, by the rules that a customize hook answers. It is pure.

// rule is a rule that was checked. Make one with [checkRule].
type rule struct {
	hook.Rule

	// within is the only namespace in which a namespaced resource can match, empty if there may be others.
	within string
	// labels select objects, surroundings select namespaces.
	labels, surroundings labels.Selector
}

// checkRule returns the rule for one parent, or what is wrong with it. namespace is the parent's, empty for one
// without. confined says that the hook is of version v1: of namespaced resources it may ask for what is in its parent's
// namespace only, and an empty namespace means that one.
func checkRule(r hook.Rule, namespace string, confined bool) (rule, error) {
	out := rule{Rule: r, within: r.Namespace}
	if confined && namespace != "" {
		out.within = namespace
	}
	err := contradiction(r, out.within)
	if err == nil {
		out.labels, err = selectorOf(r.LabelSelector)
	}
	if err == nil {
		out.surroundings, err = selectorOf(r.NamespaceSelector)
	}
	if err != nil {
		return rule{}, fmt.Errorf("related resource %s of %s: %w", r.Resource, r.APIVersion, err)
	}
	return out, nil
}

// contradiction says what is wrong with a rule by itself, and with one whose matches are within a namespace.
func contradiction(r hook.Rule, within string) error {
	switch {
	case r.APIVersion == "" || r.Resource == "":
		return errors.New("apiVersion and resource are required")
	case len(r.Names) > 0 && (r.LabelSelector != nil || r.NamespaceSelector != nil):
		return errors.New("names and selectors are mutually exclusive")
	case r.Namespace != "" && r.NamespaceSelector != nil:
		return errors.New("namespace and namespaceSelector are mutually exclusive")
	case within != "" && r.NamespaceSelector != nil:
		return errors.New("a hook of version v1 sees the parent's namespace only, so namespaceSelector is not for it; version v2 sees all")
	case r.Namespace != "" && r.Namespace != within:
		return fmt.Errorf("a hook of version v1 sees the parent's namespace %s only, not %s; version v2 sees all", within, r.Namespace)
	}
	return nil
}

// selectorOf returns what a selector selects, everything if there is none.
func selectorOf(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(s)
}

// looksAround reports whether the labels of an object's namespace matter.
func (r *rule) looksAround() bool { return !r.surroundings.Empty() }

// matches reports whether an object of the rule's resource is related to the parent. surroundings are the labels of its
// namespace, nil for an object without one: a selector of namespaces matches no such object.
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
	return r.labels.Empty() || r.labels.Matches(labels.Set(o.GetLabels()))
}
