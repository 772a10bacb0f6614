package decorator

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
)

// This file selects objects by annotations. The rules are those of a label selector, but a value may be anything: label
// selectors refuse values that no label can have, such as the annotation value "80:8080".

// requirements must all be met. An empty list matches everything.
type requirements []metav1.LabelSelectorRequirement

// readAnnotations returns the requirements of a selector, which may be nil, or what is wrong with it.
func readAnnotations(s *v1alpha1.AnnotationSelector) (requirements, error) {
	if s == nil {
		return nil, nil
	}
	var out requirements
	for _, key := range slices.Sorted(maps.Keys(s.MatchAnnotations)) {
		out = append(out, metav1.LabelSelectorRequirement{
			Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{s.MatchAnnotations[key]},
		})
	}
	for i, r := range s.MatchExpressions {
		if err := check(r); err != nil {
			return nil, fmt.Errorf("matchExpressions[%d]: %w", i, err)
		}
		out = append(out, r)
	}
	return out, nil
}

func check(r metav1.LabelSelectorRequirement) error {
	switch r.Operator {
	case metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn:
		if len(r.Values) == 0 {
			return fmt.Errorf("operator %s needs values", r.Operator)
		}
	case metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist:
		if len(r.Values) > 0 {
			return fmt.Errorf("operator %s takes no values", r.Operator)
		}
	default:
		return fmt.Errorf("there is no operator %q", r.Operator)
	}
	if r.Key == "" {
		return errors.New("it names no key")
	}
	return nil
}

// match reports whether annotations meet the requirements.
func (r requirements) match(annotations map[string]string) bool {
	for _, one := range r {
		value, there := annotations[one.Key]
		listed := there && slices.Contains(one.Values, value)
		var holds bool
		switch one.Operator {
		case metav1.LabelSelectorOpIn:
			holds = listed
		case metav1.LabelSelectorOpNotIn:
			holds = !listed
		case metav1.LabelSelectorOpExists:
			holds = there
		case metav1.LabelSelectorOpDoesNotExist:
			holds = !there
		}
		if !holds {
			return false
		}
	}
	return true
}
