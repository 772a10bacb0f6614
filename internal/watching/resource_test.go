package watching

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
)

// served is a mapper of a few resources, two of which share name and version.
func served() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "Event"},
		{Group: "events.k8s.io", Version: "v1", Kind: "Event"},
		{Group: "example.com", Version: "v1", Kind: "Cat"},
		{Group: "example.com", Version: "v2", Kind: "Cat"},
	} {
		m.Add(kind, meta.RESTScopeNamespace)
	}
	m.Add(schema.GroupVersionKind{Version: "v1", Kind: "Node"}, meta.RESTScopeRoot)
	return m
}

// lazy is a mapper that has looked at a group once somebody asked for one of its kinds.
type lazy struct {
	meta.RESTMapper

	core bool
	err  error
}

func (l *lazy) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	l.core = l.core || kind.Group == ""
	if l.err != nil {
		return nil, l.err
	}
	return l.RESTMapper.RESTMapping(kind, versions...)
}

func (l *lazy) KindsFor(r schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	kinds, err := l.RESTMapper.KindsFor(r)
	var known []schema.GroupVersionKind
	for _, kind := range kinds {
		if kind.Group != "" || l.core {
			known = append(known, kind)
		}
	}
	return known, err
}

func TestResource(t *testing.T) {
	for name, c := range map[string]struct {
		version, resource string
		want              Resource
		missing, wrong    bool
	}{
		"a custom resource": {version: "example.com/v2", resource: "cats", want: Resource{
			schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Cat"},
			schema.GroupVersionResource{Group: "example.com", Version: "v2", Resource: "cats"},
			true,
		}},
		"one of the core group": {version: "v1", resource: "events", want: Resource{
			schema.GroupVersionKind{Version: "v1", Kind: "Event"}, schema.GroupVersionResource{Version: "v1", Resource: "events"}, true,
		}},
		"one without a namespace": {version: "v1", resource: "nodes", want: Resource{
			schema.GroupVersionKind{Version: "v1", Kind: "Node"}, schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, false,
		}},
		"another version":  {version: "example.com/v3", resource: "cats", missing: true},
		"another group":    {version: "example.org/v1", resource: "cats", missing: true},
		"no group":         {version: "v1", resource: "cats", missing: true},
		"a singular":       {version: "example.com/v1", resource: "cat", missing: true},
		"a kind":           {version: "example.com/v1", resource: "Cat", missing: true},
		"a subresource":    {version: "example.com/v1", resource: "cats/status", missing: true},
		"no version":       {version: "", resource: "cats", missing: true},
		"a broken version": {version: "a/b/c", resource: "cats", wrong: true},
	} {
		t.Run(name, func(t *testing.T) {
			env := &Server{Mapper: &lazy{RESTMapper: served()}}
			got, err := env.Resource(c.version, c.resource)
			if (err != nil) != (c.missing || c.wrong) || meta.IsNoMatchError(err) != c.missing {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestResourceWhileTheAPIServerIsAway(t *testing.T) {
	away := errors.New("connection refused")
	for _, version := range []string{"v1", "example.com/v1"} {
		env := &Server{Mapper: &lazy{RESTMapper: served(), err: away}}
		if _, err := env.Resource(version, "cats"); !errors.Is(err, away) || meta.IsNoMatchError(err) {
			t.Errorf("%s: %v", version, err)
		}
	}
}

func TestObjectsOfResources(t *testing.T) {
	if _, ok := Revisions.New().(*v1alpha1.ControllerRevision); !ok {
		t.Errorf("a revision is a %T", Revisions.New())
	}
	if _, ok := Revisions.NewList().(*v1alpha1.ControllerRevisionList); !ok {
		t.Errorf("revisions are a %T", Revisions.NewList())
	}
	cats := Resource{Kind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Cat"}}
	if _, ok := cats.New().(*unstructured.Unstructured); !ok || cats.New().GetObjectKind().GroupVersionKind() != cats.Kind {
		t.Errorf("a cat is a %T", cats.New())
	}
	list, ok := cats.NewList().(*unstructured.UnstructuredList)
	if !ok || list.GetKind() != "CatList" || list.GetAPIVersion() != "example.com/v1" {
		t.Errorf("cats are %v", list)
	}
}
