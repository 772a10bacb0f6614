package metacontroller

import (
	"crypto/sha1" //nolint:gosec // makes a short label of a long one, no more
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
)

// This file says by which labels a parent finds its children and its revisions again.

// UIDLabel is the label by which parents claim their children where the controller generates the selector.
const UIDLabel = "controller-uid"

// ChildSelector returns the selector by which parent claims its children: its own, or one for its UID where the
// controller generates it. An empty one would claim every orphan, so it is refused; the error is for the author of the
// parent.
func (f *Format) ChildSelector(parent client.Object) (labels.Selector, error) {
	if f.generateSelector {
		return labels.SelectorFromSet(labels.Set{UIDLabel: string(parent.GetUID())}), nil
	}
	raw, found, err := unstructured.NestedMap(untyped(parent).Object, "spec", "selector")
	if err != nil || !found {
		return nil, errNoSelector
	}
	var selector metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &selector); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoSelector, err)
	}
	if len(selector.MatchLabels) == 0 && len(selector.MatchExpressions) == 0 {
		return nil, errNoSelector
	}
	out, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		return nil, fmt.Errorf("spec.selector of the parent: %w", err)
	}
	return out, nil
}

// Selector implements [history.Format]: it is that of its children, and the resource of the
// parent, so that two resources with one selector do not share a history.
func (f *Format) Selector(parent client.Object) (labels.Selector, error) {
	selector, err := f.ChildSelector(parent)
	if err != nil {
		return nil, err
	}
	for key, value := range f.resourceLabels() {
		r, err := labels.NewRequirement(key, selection.Equals, []string{value})
		if err != nil {
			return nil, fmt.Errorf("select revisions of %s: %w", f.resource, err)
		}
		selector = selector.Add(*r)
	}
	return selector, nil
}

// Labels returns the labels of a new revision of parent. They are those of the parent's pod template, if it has one,
// and the resource: Metacontroller's. Where the parent's selector does not match these, the labels that it asks for are
// added: otherwise the parent would release its revision as soon as it is created. The error is for
// the author of the parent: it has no selector, or one that nothing matches.
func (f *Format) Labels(parent *unstructured.Unstructured) (map[string]string, error) {
	selector, err := f.Selector(parent)
	if err != nil {
		return nil, err
	}
	if f.generateSelector {
		return satisfy(nil, selector)
	}
	return satisfy(templateLabels(parent), selector)
}

func (f *Format) resourceLabels() map[string]string {
	return map[string]string{
		v1alpha1.RevisionGroupLabel:    labelValue(f.resource.Group),
		v1alpha1.RevisionResourceLabel: labelValue(f.resource.Resource),
	}
}

// labelValue returns s, or, where it is too long for the value of a label, its beginning and a hash of the whole.
// Metacontroller cannot record parents of such a group.
func labelValue(s string) string {
	if len(s) <= validation.LabelValueMaxLength {
		return s
	}
	sum := sha1.Sum([]byte(s)) //nolint:gosec // as above
	hash := hex.EncodeToString(sum[:5])
	return strings.TrimRight(s[:validation.LabelValueMaxLength-1-len(hash)], ".-") + "-" + hash
}

// templateLabels returns the labels of a parent's pod template. Invalid labels are left out: the API server does not
// validate a template that is not in a pod.
func templateLabels(parent *unstructured.Unstructured) map[string]string {
	out := map[string]string{}
	raw, _, _ := unstructured.NestedFieldNoCopy(parent.Object, "spec", "template", "metadata", "labels")
	template, _ := raw.(map[string]any)
	for key, v := range template {
		value, ok := v.(string)
		if ok && len(validation.IsQualifiedName(key)) == 0 && len(validation.IsValidLabelValue(value)) == 0 {
			out[key] = value
		}
	}
	return out
}

// satisfy returns set with the least changes that make selector match it. Each requirement of a selector is about one
// key, so the keys can be treated one by one.
func satisfy(set map[string]string, selector labels.Selector) (map[string]string, error) {
	requirements, _ := selector.Requirements()
	byKey := map[string]labels.Requirements{}
	for _, r := range requirements {
		byKey[r.Key()] = append(byKey[r.Key()], r)
	}
	out := map[string]string{}
	maps.Copy(out, set)
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		all := choices(out, key, byKey[key])
		i := slices.IndexFunc(all, func(choice labels.Set) bool { return matches(byKey[key], choice) })
		if i < 0 {
			return nil, fmt.Errorf("no object can match the parent's selector: its requirements for label %s contradict each other", key)
		}
		delete(out, key)
		maps.Copy(out, all[i])
	}
	return out, nil
}

func matches(requirements labels.Requirements, set labels.Set) bool {
	return !slices.ContainsFunc(requirements, func(r labels.Requirement) bool { return !r.Matches(set) })
}

// choices returns what a label could be, the best first: as it is, one of the values that are asked for, absent, or a
// value that no requirement names. If none of these matches the requirements, nothing does.
func choices(set labels.Set, key string, requirements labels.Requirements) []labels.Set {
	var out []labels.Set
	add := func(value string) { out = append(out, labels.Set{key: value}) }
	if value, ok := set[key]; ok {
		add(value)
	}
	spoken := map[string]bool{}
	for _, r := range requirements {
		for _, value := range r.Values().List() { // sorted
			spoken[value] = true
			add(value)
		}
	}
	out = append(out, labels.Set{})
	for i := range len(spoken) + 1 {
		if value := "x" + strconv.Itoa(i); !spoken[value] {
			add(value)
			break
		}
	}
	return out
}
