package composite

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func selecting(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

func TestRelatedRuleCheck(t *testing.T) {
	bad := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
	for name, c := range map[string]struct {
		rule      RelatedRule
		namespace string
		confined  bool
		want      string // part of the error; empty means none
	}{
		"all":                             {rule: RelatedRule{}},
		"no resource":                     {rule: RelatedRule{APIVersion: "v1", Resource: "-"}, want: "required"},
		"names and a selector":            {rule: RelatedRule{Names: []string{"a"}, LabelSelector: selecting("a", "b")}, want: "names and selectors"},
		"names and namespaces":            {rule: RelatedRule{Names: []string{"a"}, NamespaceSelector: selecting("a", "b")}, want: "names and selectors"},
		"a namespace and namespaces":      {rule: RelatedRule{Namespace: "n", NamespaceSelector: selecting("a", "b")}, want: "namespace and namespaceSelector"},
		"v1, another namespace":           {RelatedRule{Namespace: "other"}, "team", true, "namespace team only, not other"},
		"v1, namespaces":                  {RelatedRule{NamespaceSelector: selecting("a", "b")}, "team", true, "version v2 sees all"},
		"v1, its own namespace":           {RelatedRule{Namespace: "team"}, "team", true, ""},
		"v1, a parent without one":        {RelatedRule{Namespace: "other"}, "", true, ""},
		"v2, another namespace":           {RelatedRule{Namespace: "other"}, "team", false, ""},
		"a selector that is none":         {rule: RelatedRule{LabelSelector: bad}, want: "Near"},
		"a namespace selector like it":    {rule: RelatedRule{NamespaceSelector: bad}, want: "Near"},
		"names in a namespace of its own": {RelatedRule{Namespace: "n", Names: []string{"a"}}, "", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if c.rule.Resource == "" {
				c.rule.APIVersion, c.rule.Resource = "v1", "configmaps"
			} else {
				c.rule.Resource = ""
			}
			_, err := c.rule.Check(c.namespace, c.confined)
			if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Error(err)
			}
		})
	}
}

func TestRelatedMatches(t *testing.T) {
	o := &metav1.ObjectMeta{Namespace: "team", Name: "a", Labels: map[string]string{"tier": "web"}}
	everywhere := &metav1.ObjectMeta{Name: "a", Labels: map[string]string{"tier": "web"}}
	for name, c := range map[string]struct {
		rule     RelatedRule
		parent   string
		confined bool
		want     bool
		cluster  bool // whether the object without a namespace matches
	}{
		"all":                  {want: true, cluster: true},
		"labels":               {rule: RelatedRule{LabelSelector: selecting("tier", "web")}, want: true, cluster: true},
		"other labels":         {rule: RelatedRule{LabelSelector: selecting("tier", "db")}},
		"names":                {rule: RelatedRule{Names: []string{"b", "a"}}, want: true, cluster: true},
		"other names":          {rule: RelatedRule{Names: []string{"b"}}},
		"namespace":            {rule: RelatedRule{Namespace: "team"}, want: true},
		"other namespace":      {rule: RelatedRule{Namespace: "other"}},
		"namespaces":           {rule: RelatedRule{NamespaceSelector: selecting("env", "test")}, want: true},
		"other namespaces":     {rule: RelatedRule{NamespaceSelector: selecting("env", "prod")}},
		"v1 of that namespace": {parent: "team", confined: true, want: true, cluster: true},
		"v1 of another":        {parent: "other", confined: true, cluster: true},
	} {
		t.Run(name, func(t *testing.T) {
			c.rule.APIVersion, c.rule.Resource = "v1", "configmaps"
			r, err := c.rule.Check(c.parent, c.confined)
			if err != nil {
				t.Fatal(err)
			}
			if got := r.Matches(o, map[string]string{"env": "test"}); got != c.want {
				t.Errorf("the object in namespace team: %t", got)
			}
			if got := r.Matches(everywhere, nil); got != c.cluster {
				t.Errorf("the object in none: %t", got)
			}
			// Where a match can be is what a cache is asked for.
			if c.want && r.Namespace() != "" && r.Namespace() != o.Namespace || c.want && !r.Selector().Matches(labelsOf(o)) {
				t.Errorf("namespace %s, selector %s", r.Namespace(), r.Selector())
			}
		})
	}
}

func labelsOf(o metav1.Object) labels.Set { return o.GetLabels() }
