package watching

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/ownership"
)

// This file finds resources by name, and prepares their informers.

// Resource is a resource that a controller names, as the API server serves it.
type Resource struct {
	Kind     schema.GroupVersionKind
	Resource schema.GroupVersionResource
	// Namespaced is the scope.
	Namespaced bool
}

// Revisions is the resource of composite parents' revisions. It is the only one whose objects are typed.
var Revisions = Resource{
	Kind:       v1alpha1.SchemeGroupVersion.WithKind("ControllerRevision"),
	Resource:   v1alpha1.SchemeGroupVersion.WithResource("controllerrevisions"),
	Namespaced: true,
}

// New returns an empty object, of the type under which [Server.Cache] holds those of the resource.
func (r Resource) New() client.Object {
	if r.Kind == Revisions.Kind {
		return &v1alpha1.ControllerRevision{}
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(r.Kind)
	return o
}

// NewList returns an empty list, of the type that [Server.Cache] fills.
func (r Resource) NewList() client.ObjectList {
	if r.Kind == Revisions.Kind {
		return &v1alpha1.ControllerRevisionList{}
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(r.Kind.GroupVersion().WithKind(r.Kind.Kind + "List"))
	return list
}

// Resources finds resources by the name that the API server serves them under: see [Server.Resource].
type Resources interface {
	Resource(apiVersion, resource string) (Resource, error)
}

// String names the resource as a user does, pods or catsets.ctl.enisoc.com.
func (r Resource) String() string { return r.Resource.GroupResource().String() }

// Resource finds a resource by the plural name and the version that the API server serves it under. If it does not
// serve it, or not yet, the error is one that meta.IsNoMatchError matches; a CRD may be created later. Other errors are
// the API server's: ask again later.
func (s *Server) Resource(apiVersion, resource string) (Resource, error) {
	version, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return Resource{}, fmt.Errorf("resource %s: %w", resource, err)
	}
	wanted := version.WithResource(resource)
	if version.Group == "" {
		// A kind without a group matches any group, so the mapper does not notice by itself that it has not read the core
		// group yet.
		if _, err := s.Mapper.RESTMapping(schema.GroupKind{Kind: "Namespace"}, "v1"); err != nil && !meta.IsNoMatchError(err) {
			return Resource{}, fmt.Errorf("find resource %s of %s: %w", resource, apiVersion, err)
		}
	}
	kinds, err := s.Mapper.KindsFor(wanted)
	if err != nil {
		return Resource{}, fmt.Errorf("find resource %s of %s: %w", resource, apiVersion, err)
	}
	for _, kind := range kinds {
		if kind.GroupVersion() != version {
			continue
		}
		mapping, err := s.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return Resource{}, fmt.Errorf("find resource %s of %s: %w", resource, apiVersion, err)
		}
		if mapping.Resource == wanted { // the mapper takes a singular as well, but a URL does not
			return Resource{Kind: kind, Resource: wanted, Namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace}, nil
		}
	}
	return Resource{}, fmt.Errorf("find resource %s of %s: %w", resource, apiVersion, &meta.NoResourceMatchError{PartialResource: wanted})
}

// Index watches a resource until ctx ends, and indexes its objects by [ownership.ControllerIndex]. It does not wait
// until they are listed. An error means that the kind cannot be watched; ask again later.
func (s *Server) Index(ctx context.Context, r Resource) error {
	_, err := s.ConsistencyOf(ctx, []Resource{r}, nil)
	return err
}

// ConsistencyOf watches resources until ctx ends, and returns a consistency store over the stores of all. indexed are
// those whose objects are looked up by their controllers: they are indexed by [ownership.ControllerIndex]. plain are
// the others, such as parents. Errors are those of [Server.Index].
func (s *Server) ConsistencyOf(ctx context.Context, indexed, plain []Resource) (*ownership.ConsistencyStore, error) {
	s.indexing.Lock()
	defer s.indexing.Unlock()
	return ownership.NewConsistencyStoreFor(ctx, unsynced{s.Cache}, objects(indexed), objects(plain))
}

func objects(resources []Resource) map[schema.GroupResource]client.Object {
	out := make(map[schema.GroupResource]client.Object, len(resources))
	for _, r := range resources {
		out[r.Resource.GroupResource()] = r.New()
	}
	return out
}

// unsynced is a cache that does not wait for the first list of a kind: one that cannot be listed would block all users.
type unsynced struct{ cache.Cache }

// GetCache implements [ownership.Cached].
func (u unsynced) GetCache() cache.Cache { return u }

// GetFieldIndexer implements [ownership.Cached].
func (u unsynced) GetFieldIndexer() client.FieldIndexer { return u }

// GetInformer returns the informer of a kind at once.
func (u unsynced) GetInformer(ctx context.Context, o client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	return u.Cache.GetInformer(ctx, o, cache.BlockUntilSynced(false))
}
