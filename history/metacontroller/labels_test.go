package metacontroller

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
)

// This file checks that a parent finds what it made.

func TestLabels(t *testing.T) {
	const group, resource = "metacontroller.k8s.io/apiGroup", "metacontroller.k8s.io/resource"
	long := strings.Repeat("a", 62) + ".example.com"
	for name, c := range map[string]struct {
		spec   v1alpha1.CompositeControllerSpec
		parent string
		want   map[string]string
	}{
		"those of the template": {
			parent: "spec: {selector: {matchLabels: {app: nap}}, template: {metadata: {labels: {app: nap, tier: gold}}}}",
			want:   map[string]string{"app": "nap", "tier": "gold"},
		},
		"of a parent without a template": {
			parent: "spec: {selector: {matchLabels: {app: nap}}}",
			want:   map[string]string{"app": "nap"},
		},
		"of a template with other labels": {
			parent: "spec: {selector: {matchLabels: {app: nap}}, template: {metadata: {labels: {app: doze, tier: gold}}}}",
			want:   map[string]string{"app": "nap", "tier": "gold"},
		},
		"of a template with what is no label": {
			parent: "spec: {selector: {matchLabels: {app: nap}}, template: {metadata: {labels: {app: nap, number: 3, 'a b': c, d: 'e f'}}}}",
			want:   map[string]string{"app": "nap"},
		},
		"of a template that is text": {
			parent: "spec: {selector: {matchLabels: {app: nap}}, template: text}",
			want:   map[string]string{"app": "nap"},
		},
		"of every kind of requirement": {
			parent: `
spec:
  selector:
    matchExpressions:
    - {key: app, operator: In, values: [nap, doze]}
    - {key: app, operator: NotIn, values: [doze]}
    - {key: team, operator: Exists}
    - {key: team, operator: NotIn, values: ["", x0]}
    - {key: old, operator: DoesNotExist}
    - {key: tier, operator: NotIn, values: [gold]}
    - {key: kept, operator: In, values: [a, b]}
  template: {metadata: {labels: {old: thing, tier: gold, kept: b}}}`,
			want: map[string]string{"app": "nap", "team": "x1", "kept": "b"},
		},
		"with a generated selector": {
			spec:   v1alpha1.CompositeControllerSpec{GenerateSelector: new(true)},
			parent: "spec: {selector: {matchLabels: {app: nap}}, template: {metadata: {labels: {app: nap}}}}",
			want:   map[string]string{"controller-uid": parentUID},
		},
		"of the core group": {
			spec:   v1alpha1.CompositeControllerSpec{ParentResource: v1alpha1.ParentResource{ResourceRule: v1alpha1.ResourceRule{APIVersion: "v1", Resource: "pods"}}},
			parent: "spec: {selector: {matchLabels: {app: nap}}}",
			want:   map[string]string{"app": "nap", group: "", resource: "pods"},
		},
		"of a group that is too long": {
			spec:   v1alpha1.CompositeControllerSpec{ParentResource: v1alpha1.ParentResource{ResourceRule: v1alpha1.ResourceRule{APIVersion: long + "/v1", Resource: "cats"}}},
			parent: "spec: {selector: {matchLabels: {app: nap}}}",
			want:   map[string]string{"app": "nap", group: strings.Repeat("a", 52) + "-cf0579de2a", resource: "cats"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.spec.ParentResource.Resource == "" {
				c.spec.ParentResource.ResourceRule = v1alpha1.ResourceRule{APIVersion: "ctl.enisoc.com/v1", Resource: "catsets"}
				c.want[group], c.want[resource] = "ctl.enisoc.com", "catsets"
			}
			f, parent := formatOf(t, c.spec), cat(t, c.parent)
			got, err := f.Labels(parent)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			for key, value := range got {
				if why := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(why) > 0 {
					t.Errorf("%s: %s: %v", key, value, why)
				}
			}
			selector, err := f.Selector(parent)
			if err != nil {
				t.Fatal(err)
			}
			if !selector.Matches(labels.Set(got)) {
				t.Errorf("%s does not match %v", selector, got)
			}
			delete(got, resource)
			if selector.Matches(labels.Set(got)) {
				t.Errorf("%s matches the revisions of other resources", selector)
			}
		})
	}
}

func TestSelectorsThatSelectNothingOrAll(t *testing.T) {
	f := format(t, "spec")
	for spec, want := range map[string]string{
		"{}":                                  "set generateSelector",
		"{selector: text}":                    "set generateSelector",
		"{selector: {}}":                      "set generateSelector",
		"{selector: {matchLabels: {}}}":       "set generateSelector",
		"{selector: {app: nap}}":              "set generateSelector", // the shape of a Service's
		"{selector: {matchLabels: {app: 3}}}": "set generateSelector",
		"{selector: {matchExpressions: [{key: app, operator: Like, values: [nap]}]}}":                   "operator",
		"{selector: {matchLabels: {app: nap}, matchExpressions: [{key: app, operator: DoesNotExist}]}}": "contradict each other",
	} {
		if _, err := f.Labels(cat(t, "spec: "+spec)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", spec, err, want)
		}
	}
}

// TestLabelsMatchWhateverCan: for any selector that something matches, the labels match it, and those that are none of
// its business stay. The set of all label sets over few keys and values says whether something does.
func TestLabelsMatchWhateverCan(t *testing.T) {
	keys, values := []string{"a", "b"}, []string{"", "u", "v", "x0"}
	label := rapid.SampledFrom(values)
	rapid.Check(t, func(t *rapid.T) {
		expressions := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) metav1.LabelSelectorRequirement {
			r := metav1.LabelSelectorRequirement{
				Key: rapid.SampledFrom(keys).Draw(t, "key"),
				Operator: rapid.SampledFrom([]metav1.LabelSelectorOperator{
					metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist,
				}).Draw(t, "operator"),
			}
			if r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpNotIn {
				r.Values = rapid.SliceOfN(label, 1, 3).Draw(t, "values")
			}
			return r
		}), 0, 5).Draw(t, "expressions")
		selector, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{
			MatchLabels: rapid.MapOfN(rapid.SampledFrom(keys), label, 0, 1).Draw(t, "matchLabels"), MatchExpressions: expressions,
		})
		if err != nil {
			t.Fatal(err)
		}
		set := rapid.MapOf(rapid.SampledFrom(keys), label).Draw(t, "labels")
		set["other"] = "thing"
		before := maps.Clone(set)

		got, err := satisfy(set, selector)
		switch {
		case err != nil && possible(selector, keys, append(values, "fresh")):
			t.Errorf("%s: %v", selector, err)
		case err == nil && !selector.Matches(labels.Set(got)):
			t.Errorf("%s does not match %v", selector, got)
		case err == nil && selector.Matches(labels.Set(set)) && !maps.Equal(set, got):
			t.Errorf("%s matched %v already, and it was made %v", selector, set, got)
		case err == nil && got["other"] != "thing":
			t.Errorf("a label that %s does not speak of: %v", selector, got)
		}
		if !maps.Equal(set, before) {
			t.Errorf("the labels that were given are changed: %v", set)
		}
	})
}

// possible tries every label set.
func possible(selector labels.Selector, keys, values []string) bool {
	sets := []labels.Set{{}}
	for _, key := range keys {
		for _, set := range sets {
			for _, value := range values {
				more := maps.Clone(set)
				more[key] = value
				sets = append(sets, more)
			}
		}
	}
	for _, set := range sets {
		if selector.Matches(set) {
			return true
		}
	}
	return false
}
