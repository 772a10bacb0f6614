package object

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file reads owners.

// Owner is what an owner reference names.
type Owner struct {
	Parent

	// Object is nil if it does not exist.
	Object *unstructured.Unstructured
	// Another is the UID of another object that has its name, empty if none has.
	Another types.UID
}

// ReadOwner reads the owner that ref of an object in namespace names. A ref without a UID names any object of the name.
// If the API server serves the version of ref no more, ReadOwner reads the owner in another version. An error means
// that the owner could not be read, and [meta.IsNoMatchError] of the error that its kind is not served. The name comes
// with an error, too.
func ReadOwner(ctx context.Context, c client.Client, ref *metav1.OwnerReference, namespace string) (Owner, error) {
	out := Owner{Parent: Parent{
		GroupVersionKind: schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), Namespace: namespace, Name: ref.Name, UID: ref.UID,
	}}
	o, err := Fresh(c.RESTMapper(), func() (*unstructured.Unstructured, error) { return read(ctx, c, &out.Parent) })
	switch {
	case notServed(err):
		return out, err
	case err != nil:
		return out, client.IgnoreNotFound(err)
	case ref.UID != "" && o.GetUID() != ref.UID:
		out.Another = o.GetUID()
	default:
		out.Object = o
	}
	return out, nil
}

// read reads the object that p names. A namespace that its kind does not have is taken from p.
func read(ctx context.Context, c client.Client, p *Parent) (*unstructured.Unstructured, error) {
	gvk := p.GroupVersionKind
	mapping, err := c.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		mapping, err = c.RESTMapper().RESTMapping(gvk.GroupKind())
	}
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		p.Namespace = ""
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(mapping.GroupVersionKind)
	return o, c.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: p.Name}, o)
}
