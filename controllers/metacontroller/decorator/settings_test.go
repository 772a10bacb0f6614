package decorator

// What a DecoratorController asks for, and which objects it means.

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/watching"
)

func TestRead(t *testing.T) {
	s := controller(t, "all", `
resources:
- {apiVersion: apps/v1, resource: statefulsets, ignoreStatusChanges: true}
- {apiVersion: v1, resource: namespaces}
- {apiVersion: apps/v1, resource: statefulsets, labelSelector: {matchLabels: {app: web}}}
attachments:
- {apiVersion: v1, resource: services, updateStrategy: {method: RollingRecreate}}
- {apiVersion: v1, resource: configmaps, updateStrategy: {method: RollingInPlace}}
- {apiVersion: example.com/v1, resource: plants, updateStrategy: {}}
- {apiVersion: v1, resource: namespaces}
`)
	for kind, want := range map[string]v1alpha1.ChildUpdateMethod{"Service": "Recreate", "ConfigMap": "InPlace", "Plant": "OnDelete", "Namespace": "OnDelete"} {
		for gk, got := range s.methods {
			if gk.Kind == kind && got != want {
				t.Errorf("%s: %s, want %s", kind, got, want)
			}
		}
	}
	d := s.of(statefulSets.Kind.GroupKind())
	if len(s.resources) != 2 || d.ignoreStatus || d.labels.Empty() {
		t.Errorf("of two entries for one kind the last one counts: %+v", d)
	}
	if s.finalizes || s.finalizer != "metacontroller.io/decoratorcontroller-all" {
		t.Errorf("finalizer %s, %t", s.finalizer, s.finalizes)
	}
}

func TestReadRefuses(t *testing.T) {
	for spec, want := range map[string]string{
		`resources: [{apiVersion: v2, resource: pods}]`:                                                                       "spec.resources[0]: no resource pods in v2",
		`resources: [{apiVersion: v1, resource: services, labelSelector: {matchExpressions: [{key: a, operator: No}]}}]`:      `spec.resources[0]: labelSelector: `,
		`resources: [{apiVersion: v1, resource: services, annotationSelector: {matchExpressions: [{key: a, operator: In}]}}]`: `spec.resources[0]: annotationSelector: matchExpressions[0]: operator In needs values`,
		`attachments: [{apiVersion: v1, resource: nothing}]`:                                                                  "spec.attachments[0]: no resource nothing in v1",
		`attachments: [{apiVersion: v1, resource: services}, {apiVersion: v1, resource: services}]`:                           "spec.attachments[1]: Service is listed already",
	} {
		dc := &v1alpha1.DecoratorController{}
		must(t, yaml.UnmarshalStrict([]byte(spec), &dc.Spec))
		if _, err := read(dc, served{}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", spec, err, want)
		}
	}
}

func TestAnnotationSelector(t *testing.T) {
	expression := func(operator metav1.LabelSelectorOperator, values ...string) *v1alpha1.AnnotationSelector {
		return &v1alpha1.AnnotationSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "ports", Operator: operator, Values: values}}}
	}
	for _, c := range []struct {
		name     string
		selector *v1alpha1.AnnotationSelector
		// with are the values of the annotation that match; "-" stands for an object without it.
		with string
	}{
		{"none", nil, "80:8080 443 -"},
		{"empty", &v1alpha1.AnnotationSelector{}, "80:8080 443 -"},
		{"a value that no label can have", &v1alpha1.AnnotationSelector{MatchAnnotations: map[string]string{"ports": "80:8080"}}, "80:8080"},
		{"In", expression(metav1.LabelSelectorOpIn, "443", "x"), "443"},
		{"NotIn", expression(metav1.LabelSelectorOpNotIn, "443"), "80:8080 -"},
		{"Exists", expression(metav1.LabelSelectorOpExists), "80:8080 443"},
		{"DoesNotExist", expression(metav1.LabelSelectorOpDoesNotExist), "-"},
		{"both", &v1alpha1.AnnotationSelector{MatchAnnotations: map[string]string{"ports": "443"}, MatchExpressions: expression(metav1.LabelSelectorOpNotIn, "443").MatchExpressions}, ""},
	} {
		r, err := readAnnotations(c.selector)
		must(t, err)
		var matched []string
		for _, value := range []string{"80:8080", "443", "-"} {
			annotations := map[string]string{"ports": value}
			if value == "-" {
				annotations = nil
			}
			if r.match(annotations) {
				matched = append(matched, value)
			}
		}
		if got := strings.Join(matched, " "); got != c.with {
			t.Errorf("%s matches %q, want %q", c.name, got, c.with)
		}
	}
	for _, wrong := range []metav1.LabelSelectorRequirement{
		{Key: "a", Operator: "Like", Values: []string{"b"}},
		{Key: "a", Operator: metav1.LabelSelectorOpExists, Values: []string{"b"}},
		{Key: "", Operator: metav1.LabelSelectorOpExists},
		{Key: "a", Operator: metav1.LabelSelectorOpNotIn},
	} {
		if _, err := readAnnotations(&v1alpha1.AnnotationSelector{MatchExpressions: []metav1.LabelSelectorRequirement{wrong}}); err == nil {
			t.Errorf("%+v is taken", wrong)
		}
	}
}

// TestRevisionsAreNobodys: the manager's own revisions can be neither decorated nor attached.
func TestRevisionsAreNobodys(t *testing.T) {
	const revisions = "{apiVersion: metacontroller.k8s.io/v1alpha1, resource: controllerrevisions}"
	for _, spec := range []string{"resources: [" + revisions + "]", "attachments: [" + revisions + "]"} {
		dc := &v1alpha1.DecoratorController{}
		must(t, yaml.UnmarshalStrict([]byte(spec), &dc.Spec))
		if _, err := read(dc, revisionsOnly{}); err == nil || !strings.Contains(err.Error(), "are what this manager records") {
			t.Errorf("%s: %v", spec, err)
		}
	}
}

type revisionsOnly struct{}

func (revisionsOnly) Resource(_, _ string) (watching.Resource, error) { return watching.Revisions, nil }

// TestRequests: a request comes back as the object that it was made for, and names of one kind are none of another.
func TestRequests(t *testing.T) {
	s := controller(t, "all", "resources: [{apiVersion: apps/v1, resource: statefulsets}, {apiVersion: v1, resource: namespaces}, {apiVersion: v1, resource: services}]")
	for _, d := range s.resources {
		name := types.NamespacedName{Namespace: "team", Name: "system:web"}
		if got, back := s.resolve(requestFor(d, name)); got != d || back != name {
			t.Errorf("%s came back as %v %v", d, got, back)
		}
	}
	if got := requestFor(s.resources[0], types.NamespacedName{Namespace: "team", Name: "web"}).String(); got != "team/statefulsets.apps/web" {
		t.Errorf("in logs it is %s", got)
	}
	if d, _ := s.resolve(reconcile.Request{NamespacedName: types.NamespacedName{Name: "pods/web"}}); d != nil {
		t.Errorf("pods are %v", d)
	}
}
