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

// ReadOwner reads the owner that ref of an object in namespace names, whatever its UID if ref has none. An error says
// that it could not be read, and [meta.IsNoMatchError] of it that its kind is not served. The name comes with an error,
// too.
func ReadOwner(ctx context.Context, c client.Client, ref *metav1.OwnerReference, namespace string) (Owner, error) {
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	out := Owner{Parent: Parent{GroupVersionKind: gvk, Namespace: namespace, Name: ref.Name, UID: ref.UID}}
	mapping, err := c.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return out, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		out.Namespace = ""
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(gvk)
	err = c.Get(ctx, client.ObjectKey{Namespace: out.Namespace, Name: ref.Name}, o)
	switch {
	case err != nil:
		return out, client.IgnoreNotFound(err)
	case ref.UID != "" && o.GetUID() != ref.UID:
		out.Another = o.GetUID()
	default:
		out.Object = o
	}
	return out, nil
}
