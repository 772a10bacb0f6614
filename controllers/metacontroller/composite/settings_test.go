package composite

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/watching"
)

// withRevisions serves the manager's own revisions beside what other tests have.
type withRevisions struct{ served }

func (w withRevisions) Resource(apiVersion, resource string) (watching.Resource, error) {
	if resource == watching.Revisions.Resource.Resource {
		return watching.Revisions, nil
	}
	return w.served.Resource(apiVersion, resource)
}

// TestRevisionsAreNobodys: the manager's own revisions are neither parents nor children.
func TestRevisionsAreNobodys(t *testing.T) {
	const revisions = "apiVersion: metacontroller.k8s.io/v1alpha1, resource: controllerrevisions"
	for _, spec := range []string{
		"parentResource: {" + revisions + "}",
		"parentResource: {apiVersion: example.com/v1, resource: cats}\nchildResources: [{" + revisions + "}]",
	} {
		cc := &v1alpha1.CompositeController{}
		must(t, yaml.UnmarshalStrict([]byte(spec), &cc.Spec))
		if _, err := readSettings(cc, withRevisions{}); err == nil || !strings.Contains(err.Error(), "are what this manager records") {
			t.Errorf("%s: %v", spec, err)
		}
	}
}

// TestWhoHasRevisions: whose children are rolled. Others have them where a history is asked for, and there is a place
// for it.
func TestWhoHasRevisions(t *testing.T) {
	for spec, want := range map[string]bool{
		"parentResource: {apiVersion: example.com/v1, resource: cats}":                                                               false,
		"parentResource: {apiVersion: example.com/v1, resource: cats, revisionHistory: {fieldPaths: [spec]}}":                        true,
		"parentResource: {apiVersion: example.com/v1, resource: globals, revisionHistory: {fieldPaths: [spec]}}":                     false,
		"parentResource: {apiVersion: example.com/v1, resource: globals, revisionHistory: {fieldPaths: [spec], namespace: history}}": true,
		"parentResource: {apiVersion: example.com/v1, resource: globals}\n" +
			"childResources: [{apiVersion: v1, resource: pods, updateStrategy: {method: RollingInPlace}}]": true,
	} {
		cc := &v1alpha1.CompositeController{}
		must(t, yaml.UnmarshalStrict([]byte(spec), &cc.Spec))
		s, err := readSettings(cc, served{})
		must(t, err)
		if s.recorded != want {
			t.Errorf("%s: %t", spec, s.recorded)
		}
	}
}
