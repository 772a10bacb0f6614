package watching

import (
	"context"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// This file makes a client and a mapper that can forget. Those of controller-runtime remember for as long as they live
// that a kind is served, and its scope; a CRD may be deleted and recreated with another one.

// renewing is a mapper that can forget what the API server serves.
type renewing interface{ Renew() }

// renewed makes clients and mappers anew.
type renewed struct {
	make func() (client.Client, error)
	// shared is a mapper that is somebody else's, if it can forget.
	shared renewing

	mu  sync.RWMutex
	now client.Client
}

// newRenewed uses the given mapper; if that is nil, it makes one each time.
func newRenewed(config *rest.Config, httpClient *http.Client, scheme *runtime.Scheme, shared meta.RESTMapper) (*renewed, error) {
	r := &renewed{make: func() (client.Client, error) {
		mapper := shared
		if mapper == nil {
			var err error
			if mapper, err = apiutil.NewDynamicRESTMapper(config, httpClient); err != nil {
				return nil, err
			}
		}
		return client.New(config, client.Options{HTTPClient: httpClient, Scheme: scheme, Mapper: mapper})
	}}
	r.shared, _ = shared.(renewing)
	var err error
	r.now, err = r.make()
	return r, err
}

// Renew forgets. Running calls end with what they started with.
func (r *renewed) Renew() {
	if r.shared != nil {
		r.shared.Renew()
	}
	made, err := r.make()
	if err != nil { // it worked before with the same arguments
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = made
}

func (r *renewed) current() client.Client {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.now
}

// renewedClient is a client.Client.
type renewedClient struct{ *renewed }

var _ client.Client = renewedClient{}

func (c renewedClient) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return c.current().Get(ctx, key, o, opts...)
}

func (c renewedClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.current().List(ctx, list, opts...)
}

func (c renewedClient) Apply(ctx context.Context, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	return c.current().Apply(ctx, o, opts...)
}

func (c renewedClient) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	return c.current().Create(ctx, o, opts...)
}

func (c renewedClient) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	return c.current().Delete(ctx, o, opts...)
}

func (c renewedClient) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	return c.current().Update(ctx, o, opts...)
}

func (c renewedClient) Patch(ctx context.Context, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return c.current().Patch(ctx, o, patch, opts...)
}

func (c renewedClient) DeleteAllOf(ctx context.Context, o client.Object, opts ...client.DeleteAllOfOption) error {
	return c.current().DeleteAllOf(ctx, o, opts...)
}

func (c renewedClient) Status() client.SubResourceWriter { return c.current().Status() }

func (c renewedClient) SubResource(name string) client.SubResourceClient {
	return c.current().SubResource(name)
}

func (c renewedClient) Scheme() *runtime.Scheme { return c.current().Scheme() }

func (c renewedClient) RESTMapper() meta.RESTMapper { return renewedMapper(c) }

func (c renewedClient) GroupVersionKindFor(o runtime.Object) (schema.GroupVersionKind, error) {
	return c.current().GroupVersionKindFor(o)
}

func (c renewedClient) IsObjectNamespaced(o runtime.Object) (bool, error) {
	return c.current().IsObjectNamespaced(o)
}

// renewedMapper is a meta.RESTMapper.
type renewedMapper struct{ *renewed }

var _ meta.RESTMapper = renewedMapper{}

func (m renewedMapper) mapper() meta.RESTMapper { return m.current().RESTMapper() }

func (m renewedMapper) KindFor(r schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return m.mapper().KindFor(r)
}

func (m renewedMapper) KindsFor(r schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return m.mapper().KindsFor(r)
}

func (m renewedMapper) ResourceFor(r schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return m.mapper().ResourceFor(r)
}

func (m renewedMapper) ResourcesFor(r schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return m.mapper().ResourcesFor(r)
}

func (m renewedMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return m.mapper().RESTMapping(kind, versions...)
}

func (m renewedMapper) RESTMappings(kind schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	return m.mapper().RESTMappings(kind, versions...)
}

func (m renewedMapper) ResourceSingularizer(resource string) (string, error) {
	return m.mapper().ResourceSingularizer(resource)
}
