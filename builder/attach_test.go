package builder

import (
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
)

// What a history is attached to is checked as what a controller is: L3, and kinds that are not served.
func TestWhatNoHistoryIsAttachedTo(t *testing.T) {
	m := mapper().(*meta.DefaultRESTMapper)
	m.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	describe := func(parent client.Object, versions ...string) string {
		switch p := parent.(type) {
		case *corev1.ConfigMap:
			_, errs := describeParent(clientgoscheme.Scheme, m, p, versions, nil)
			return text(errs)
		case *corev1.Node:
			_, errs := describeParent(clientgoscheme.Scheme, m, p, versions, nil)
			return text(errs)
		case *appsv1.Deployment:
			_, errs := describeParent(clientgoscheme.Scheme, m, p, versions, nil)
			return text(errs)
		}
		return ""
	}
	for name, c := range map[string]struct {
		parent   client.Object
		versions []string
		want     string
	}{
		"sound":               {&corev1.ConfigMap{}, []string{"data", "binaryData"}, ""},
		"a wrong path":        {&corev1.ConfigMap{}, []string{"spec"}, `"spec": v1.ConfigMap has no field spec`},
		"no path":             {&corev1.ConfigMap{}, nil, "needs at least one field path"},
		"in no namespace":     {&corev1.Node{}, []string{"spec"}, "in no namespace"},
		"a kind of no server": {&appsv1.Deployment{}, []string{"spec"}, "does not serve"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := describe(c.parent, c.versions...); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	if _, err := Attach[*corev1.ConfigMap](t.Context(), nil, nil, "data"); err == nil || !strings.Contains(err.Error(), "the parent is nil") {
		t.Errorf("got %v", err)
	}
}

func text(errs []error) string {
	if err := errors.Join(errs...); err != nil {
		return err.Error()
	}
	return ""
}

// Revisions that nobody has children of say which fields they hold, and are read by that alone.
func TestRevisionsWithoutChildrenDescribeThemselves(t *testing.T) {
	m := mapper().(*meta.DefaultRESTMapper)
	m.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	kind, errs := describeParent(clientgoscheme.Scheme, m, &corev1.ConfigMap{}, []string{"data"}, nil)
	if errs != nil {
		t.Fatal(errs)
	}
	parent := &corev1.ConfigMap{Data: map[string]string{"image": "app:1"}}
	parent.Name, parent.Namespace, parent.UID = "blog", "shop", "1"
	f := kind.format(schema.GroupVersionKind{})
	snapshot, err := f.Snapshot(parent)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := f.Object(parent, snapshot, nil, 1, history.ReadStamp(parent))
	if err != nil {
		t.Fatal(err)
	}
	read, ok := history.Described(stored, corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	if !ok || !read.Children.Empty() || read.Target().Paths()[0].String() != "data" {
		t.Errorf("got %+v, %t", read, ok)
	}
	parent.Data["image"] = "app:2"
	back, err := kind.restore(parent, snapshot)
	if err != nil || back.Data["image"] != "app:1" || back.Name != "blog" {
		t.Errorf("restored %+v: %v", back, err)
	}
}
