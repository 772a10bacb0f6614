package model

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// ErrNotServed is in the error of a client that is asked for something that the model does not have: a kind that is not
// among its kinds, server-side apply, a subresource it does not know. Add the kind, or do not use it in the simulation.
var ErrNotServed = errors.New("not served by the model")

// Transport carries a request to a server and its answer back. An error is one of the way, such as a lost answer; what
// the server refuses is in the response.
type Transport func(ctx context.Context, r Request) (Response, error)

// Transport is the way to the server on which nothing is lost.
func (s *Server) Transport(_ context.Context, r Request) (Response, error) {
	return s.Do(r), nil
}

// NewClient returns a client over a transport. The scheme knows the Go types that are used with it, the kinds say what
// is served. It is as safe for concurrent use as the transport.
func NewClient(do Transport, scheme *runtime.Scheme, kinds []Kind) client.Client {
	c := &modelClient{do: do, scheme: scheme, kinds: map[schema.GroupVersionKind]*Kind{}}
	var versions []schema.GroupVersion
	for i := range kinds {
		c.kinds[kinds[i].Kind] = &kinds[i]
		versions = append(versions, kinds[i].Kind.GroupVersion())
	}
	mapper := meta.NewDefaultRESTMapper(versions)
	for _, k := range kinds {
		scope := meta.RESTScopeRoot
		if k.Namespaced {
			scope = meta.RESTScopeNamespace
		}
		mapper.AddSpecific(k.Kind, k.Resource, k.Resource.GroupVersion().WithResource(strings.ToLower(k.Kind.Kind)), scope)
	}
	c.mapper = mapper
	return c
}

// modelClient is the client of NewClient.
type modelClient struct {
	do     Transport
	scheme *runtime.Scheme
	kinds  map[schema.GroupVersionKind]*Kind
	mapper meta.RESTMapper
}

var _ client.Client = (*modelClient)(nil)

func (c *modelClient) Scheme() *runtime.Scheme          { return c.scheme }
func (c *modelClient) RESTMapper() meta.RESTMapper      { return c.mapper }
func (c *modelClient) Status() client.SubResourceWriter { return c.SubResource(subresourceStatus) }
func (c *modelClient) SubResource(name string) client.SubResourceClient {
	return &subresourceClient{modelClient: c, name: name}
}

// GroupVersionKindFor implements client.Client.
func (c *modelClient) GroupVersionKindFor(object runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(object, c.scheme) //nolint:wrapcheck // says all there is
}

// IsObjectNamespaced implements client.Client.
func (c *modelClient) IsObjectNamespaced(object runtime.Object) (bool, error) {
	k, err := c.kindOf(object)
	if err != nil {
		return false, err
	}
	return k.Namespaced, nil
}

// kindOf returns the kind of an object or of a list.
func (c *modelClient) kindOf(object runtime.Object) (*Kind, error) {
	kind, err := apiutil.GVKForObject(object, c.scheme)
	if err != nil {
		return nil, err //nolint:wrapcheck // says all there is
	}
	if _, isList := object.(client.ObjectList); isList {
		kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	}
	k, served := c.kinds[kind]
	if !served {
		return nil, fmt.Errorf("%s: %w", kind, ErrNotServed)
	}
	return k, nil
}

// request starts a request about an object.
func (c *modelClient) request(verb string, object client.Object) (Request, *Kind, error) {
	k, err := c.kindOf(object)
	if err != nil {
		return Request{}, nil, err
	}
	r := Request{Verb: verb, Resource: k.Resource, Name: object.GetName()}
	if k.Namespaced {
		r.Namespace = object.GetNamespace()
	}
	return r, k, nil
}

// send sends a request and fills an object from the answer, unless it is nil.
func (c *modelClient) send(ctx context.Context, k *Kind, r Request, into client.Object) error {
	if err := ctx.Err(); err != nil {
		return err //nolint:wrapcheck // the caller's own
	}
	answer, err := c.do(ctx, r)
	if err != nil {
		return err
	}
	if answer.Err != nil {
		return answer.Err
	}
	if into == nil || answer.Object == nil {
		return nil
	}
	return k.fill(into, answer.Object)
}

// Get implements client.Reader.
func (c *modelClient) Get(ctx context.Context, name client.ObjectKey, object client.Object, options ...client.GetOption) error {
	r, k, err := c.request(VerbGet, object)
	if err != nil {
		return err
	}
	r.Name = name.Name
	r.Namespace = ""
	if k.Namespaced {
		r.Namespace = name.Namespace
	}
	o := (&client.GetOptions{}).ApplyOptions(options)
	if o.Raw != nil {
		r.ResourceVersion = o.Raw.ResourceVersion
	}
	return c.send(ctx, k, r, object)
}

// List implements client.Reader.
func (c *modelClient) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	k, err := c.kindOf(list)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err //nolint:wrapcheck // the caller's own
	}
	o := (&client.ListOptions{}).ApplyOptions(options)
	r := Request{Verb: VerbList, Resource: k.Resource, LabelSelector: o.LabelSelector, FieldSelector: o.FieldSelector}
	if k.Namespaced {
		r.Namespace = o.Namespace
	}
	if o.Raw != nil {
		r.ResourceVersion = o.Raw.ResourceVersion
	}
	answer, err := c.do(ctx, r)
	if err != nil {
		return err
	}
	if answer.Err != nil {
		return answer.Err
	}
	list.SetResourceVersion(formatRV(answer.ResourceVersion))
	return k.fillList(list, answer.Items)
}

// fill makes an object of a client equal to a stored one, and shares nothing with it.
func (k *Kind) fill(into, stored client.Object) error {
	target := reflect.ValueOf(into)
	switch {
	case target.Type() == reflect.TypeOf(stored):
		target.Elem().Set(reflect.ValueOf(stored.DeepCopyObject()).Elem())
		return nil
	case target.Type() == reflect.TypeFor[*metav1.PartialObjectMetadata]():
		into.(*metav1.PartialObjectMetadata).ObjectMeta = metaOf(stored)
		into.GetObjectKind().SetGroupVersionKind(k.Kind)
		return nil
	}
	// What the answer does not mention goes away.
	target.Elem().SetZero()
	if err := convert(stored, into); err != nil {
		return err
	}
	if _, ok := into.(*unstructured.Unstructured); ok {
		into.GetObjectKind().SetGroupVersionKind(k.Kind)
		return nil
	}
	into.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // as a typed client does
	return nil
}

// metaOf copies the metadata of an object.
func metaOf(object client.Object) metav1.ObjectMeta {
	if typed, ok := object.(metav1.ObjectMetaAccessor); ok {
		if m, ok := typed.GetObjectMeta().(*metav1.ObjectMeta); ok {
			return *m.DeepCopy()
		}
	}
	return *meta.AsPartialObjectMetadata(object).ObjectMeta.DeepCopy()
}

// fillList does the same with a list.
func (k *Kind) fillList(list client.ObjectList, stored []client.Object) error {
	switch l := list.(type) {
	case *unstructured.UnstructuredList:
		l.SetGroupVersionKind(k.Kind.GroupVersion().WithKind(k.Kind.Kind + "List"))
	case *metav1.PartialObjectMetadataList:
		l.SetGroupVersionKind(k.Kind.GroupVersion().WithKind(k.Kind.Kind + "List"))
	}
	items, err := meta.GetItemsPtr(list)
	if err != nil {
		return err //nolint:wrapcheck // says all there is
	}
	slice := reflect.ValueOf(items).Elem()
	filled := reflect.MakeSlice(slice.Type(), len(stored), len(stored))
	for i, object := range stored {
		item := filled.Index(i)
		if item.Kind() == reflect.Pointer {
			item.Set(reflect.New(item.Type().Elem()))
		} else {
			item = item.Addr()
		}
		if err := k.fill(item.Interface().(client.Object), object); err != nil {
			return err
		}
	}
	slice.Set(filled)
	return nil
}
