package manager

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file deletes without reading the answer, which is the deleted object. The typed client of controller-runtime
// 0.25 decodes it, encodes it as JSON, and decodes it once more. No caller gets it.

// deleter is a client that does not decode the answer to the deletion of an object of a Go type.
type deleter struct {
	client.Client

	metadata metadata.Interface
}

// newClient is a [client.NewClientFunc].
func newClient(cfg *rest.Config, o client.Options) (client.Client, error) {
	c, err := client.New(cfg, o)
	if err != nil {
		return nil, err
	}
	m, err := metadata.NewForConfigAndClient(metadata.ConfigFor(cfg), o.HTTPClient)
	return deleter{c, m}, err
}

// Delete implements [client.Writer].
func (c deleter) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	if _, ok := o.(runtime.Unstructured); ok { // this client decodes once
		return c.Client.Delete(ctx, o, opts...)
	}
	kind, err := c.GroupVersionKindFor(o)
	if err != nil {
		return err
	}
	mapping, err := c.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	options := (&client.DeleteOptions{}).ApplyOptions(opts).AsDeleteOptions()
	return c.metadata.Resource(mapping.Resource).Namespace(o.GetNamespace()).Delete(ctx, o.GetName(), *options)
}
