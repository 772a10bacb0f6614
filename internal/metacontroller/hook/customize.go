package hook

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/json"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
)

// This file reads answers of customize hooks.

// Rule selects related objects: by names, or by selectors, in one namespace or in those that a selector matches. A rule
// that restricts nothing selects all.
type Rule struct {
	APIVersion string `json:"apiVersion"`
	// Resource is the plural name, as in a URL.
	Resource          string                `json:"resource"`
	LabelSelector     *metav1.LabelSelector `json:"labelSelector"`
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector"`
	Namespace         string                `json:"namespace"`
	Names             []string              `json:"names"`
}

// DecodeRules reads the body of a customize hook's answer. No relatedResources at all is no rules: that is how a Go
// program writes it. Errors are a *[Error] without a URL.
func (f Form) DecodeRules(v v1alpha1.HookVersion, body []byte) ([]Rule, error) {
	var answer *struct {
		RelatedResources []*Rule `json:"relatedResources"`
	}
	strict, err := json.UnmarshalStrict(body, &answer)
	switch {
	case err != nil:
		return nil, f.failure(Malformed, fmt.Errorf("the answer cannot be read: %s", brief(err)))
	case answer == nil:
		return nil, f.failure(Malformed, errors.New("the answer is null"))
	case f.Strict && len(strict) > 0:
		return nil, f.failure(Malformed, fmt.Errorf("the answer has an %s", brief(strict[0])))
	}
	rules := make([]Rule, 0, len(answer.RelatedResources))
	for i, r := range answer.RelatedResources {
		if r == nil {
			return nil, f.failure(Malformed, fmt.Errorf("relatedResources[%d] is null", i))
		}
		if err := r.check(v, f.Namespace); err != nil {
			return nil, f.failure(Contradictory, fmt.Errorf("relatedResources[%d] %s: %w", i, short(r.Resource), err))
		}
		rules = append(rules, *r)
	}
	return rules, nil
}

// check says what is wrong with a rule of a parent in namespace. In v1, a namespaced parent sees its own namespace
// only.
func (r *Rule) check(v v1alpha1.HookVersion, namespace string) error {
	gv, err := schema.ParseGroupVersion(r.APIVersion)
	switch {
	case err != nil || gv.Empty() || r.Resource == "":
		return errors.New("needs apiVersion and resource")
	case len(r.Names) > 0 && (r.LabelSelector != nil || r.NamespaceSelector != nil):
		return errors.New("names and selectors are mutually exclusive")
	case r.Namespace != "" && r.NamespaceSelector != nil:
		return errors.New("namespace and namespaceSelector are mutually exclusive")
	case v != v1alpha1.HookVersionV2 && namespace != "" && r.Namespace != "" && r.Namespace != namespace:
		return fmt.Errorf("asks for namespace %s, and the parent is in %s; version v2 of the hook may do that",
			short(r.Namespace), namespace)
	}
	for name, selector := range map[string]*metav1.LabelSelector{
		"labelSelector": r.LabelSelector, "namespaceSelector": r.NamespaceSelector,
	} {
		if _, err := metav1.LabelSelectorAsSelector(selector); err != nil {
			return fmt.Errorf("has a bad %s: %s", name, brief(err))
		}
	}
	return nil
}
