package related

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
)

func selecting(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

func TestCheckRule(t *testing.T) {
	bad := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
	for name, c := range map[string]struct {
		rule      hook.Rule
		namespace string
		confined  bool
		want      string // part of the error; empty means none
	}{
		"all":                             {rule: hook.Rule{}},
		"no resource":                     {rule: hook.Rule{APIVersion: "v1", Resource: "-"}, want: "required"},
		"names and a selector":            {rule: hook.Rule{Names: []string{"a"}, LabelSelector: selecting("a", "b")}, want: "names and selectors"},
		"names and namespaces":            {rule: hook.Rule{Names: []string{"a"}, NamespaceSelector: selecting("a", "b")}, want: "names and selectors"},
		"a namespace and namespaces":      {rule: hook.Rule{Namespace: "n", NamespaceSelector: selecting("a", "b")}, want: "namespace and namespaceSelector"},
		"v1, another namespace":           {hook.Rule{Namespace: "other"}, "team", true, "namespace team only, not other"},
		"v1, namespaces":                  {hook.Rule{NamespaceSelector: selecting("a", "b")}, "team", true, "version v2 sees all"},
		"v1, its own namespace":           {hook.Rule{Namespace: "team"}, "team", true, ""},
		"v1, a parent without one":        {hook.Rule{Namespace: "other"}, "", true, ""},
		"v2, another namespace":           {hook.Rule{Namespace: "other"}, "team", false, ""},
		"a selector that is none":         {rule: hook.Rule{LabelSelector: bad}, want: "Near"},
		"a namespace selector like it":    {rule: hook.Rule{NamespaceSelector: bad}, want: "Near"},
		"names in a namespace of its own": {hook.Rule{Namespace: "n", Names: []string{"a"}}, "", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if c.rule.Resource == "" {
				c.rule.APIVersion, c.rule.Resource = "v1", "configmaps"
			} else {
				c.rule.Resource = ""
			}
			_, err := checkRule(c.rule, c.namespace, c.confined)
			if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Error(err)
			}
		})
	}
}

func TestRuleMatches(t *testing.T) {
	o := &metav1.ObjectMeta{Namespace: "team", Name: "a", Labels: map[string]string{"tier": "web"}}
	everywhere := &metav1.ObjectMeta{Name: "a", Labels: map[string]string{"tier": "web"}}
	for name, c := range map[string]struct {
		rule     hook.Rule
		parent   string
		confined bool
		want     bool
		cluster  bool // whether the object without a namespace matches
	}{
		"all":                  {want: true, cluster: true},
		"labels":               {rule: hook.Rule{LabelSelector: selecting("tier", "web")}, want: true, cluster: true},
		"other labels":         {rule: hook.Rule{LabelSelector: selecting("tier", "db")}},
		"names":                {rule: hook.Rule{Names: []string{"b", "a"}}, want: true, cluster: true},
		"other names":          {rule: hook.Rule{Names: []string{"b"}}},
		"namespace":            {rule: hook.Rule{Namespace: "team"}, want: true},
		"other namespace":      {rule: hook.Rule{Namespace: "other"}},
		"namespaces":           {rule: hook.Rule{NamespaceSelector: selecting("env", "test")}, want: true},
		"other namespaces":     {rule: hook.Rule{NamespaceSelector: selecting("env", "prod")}},
		"v1 of that namespace": {parent: "team", confined: true, want: true, cluster: true},
		"v1 of another":        {parent: "other", confined: true, cluster: true},
	} {
		t.Run(name, func(t *testing.T) {
			c.rule.APIVersion, c.rule.Resource = "v1", "configmaps"
			r, err := checkRule(c.rule, c.parent, c.confined)
			if err != nil {
				t.Fatal(err)
			}
			if got := r.matches(o, map[string]string{"env": "test"}); got != c.want {
				t.Errorf("the object in namespace team: %t", got)
			}
			if got := r.matches(everywhere, nil); got != c.cluster {
				t.Errorf("the object in none: %t", got)
			}
			// Where a match can be is what a cache is asked for.
			if c.want && r.within != "" && r.within != o.Namespace || c.want && !r.labels.Matches(labelsOf(o)) {
				t.Errorf("namespace %s, selector %s", r.within, r.labels)
			}
		})
	}
}

func labelsOf(o metav1.Object) labels.Set { return o.GetLabels() }
