package inspect

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/inspect/object"
)

// This file finds the object that a user asks about, and says which kinds have a history.

// Inspector answers questions with one set of credentials. It keeps nothing between two questions, so it is safe for
// concurrent use.
type Inspector struct {
	client client.Client
	reveal bool
}

// ShowSecrets returns an inspector that shows values as they are which others mask: those of Secrets, and those of
// environment variables that are called like passwords, tokens or keys.
func (i *Inspector) ShowSecrets() *Inspector { return &Inspector{client: i.client, reveal: true} }

// Client is what it asks through.
func (i *Inspector) Client() client.Client { return i.client }

// New returns an inspector that asks through c. c must read from the API server, not from a cache: what a user is shown
// must be what exists now. Its scheme must know the built-in kinds that are asked for
// ([k8s.io/client-go/kubernetes/scheme] does) and, for the parents of CompositeControllers, Metacontroller's types
// (api/metacontroller/v1alpha1 has an AddToScheme); the parents themselves need no Go types.
func New(c client.Client) *Inspector { return &Inspector{client: c} }

// Get reads the object called name. Errors: [*object.UnknownKindError], or what the API server says.
func (i *Inspector) Get(ctx context.Context, kind schema.GroupKind, namespace, name string) (client.Object, error) {
	kinds, err := object.KindsOf(ctx, i.client, kind, nil)
	if err != nil {
		return nil, err
	}
	return object.Get(ctx, i.client, kinds[0], client.ObjectKey{Namespace: namespace, Name: name})
}

// Refresh reads parent anew, and leaves what it was given as it is. Errors: a [*ChangedError] if the object is deleted,
// or another one has its name now, or what the API server says.
func (i *Inspector) Refresh(ctx context.Context, parent client.Object) (client.Object, error) {
	gvk, err := i.client.GroupVersionKindFor(parent)
	if err != nil {
		return nil, err
	}
	fresh, typed := reflect.TypeAssert[client.Object](reflect.New(reflect.TypeOf(parent).Elem()))
	if _, tree := parent.(*unstructured.Unstructured); tree || !typed {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(gvk)
		fresh = u
	}
	err = i.client.Get(ctx, client.ObjectKeyFromObject(parent), fresh)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err != nil || fresh.GetUID() != parent.GetUID() {
		who := object.Parent{GroupVersionKind: gvk, Namespace: parent.GetNamespace(), Name: parent.GetName(), UID: parent.GetUID()}
		return nil, &ChangedError{Parent: who, Gone: true, Err: err}
	}
	return fresh, nil
}
