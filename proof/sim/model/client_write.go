package model

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// body is a copy of an object that goes into a request.
func body(object client.Object) client.Object {
	return object.DeepCopyObject().(client.Object)
}

// Create implements client.Writer.
func (c *modelClient) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	r, k, err := c.request(VerbCreate, object)
	if err != nil {
		return err
	}
	o := (&client.CreateOptions{}).ApplyOptions(options)
	r.Name, r.Object, r.DryRun = "", body(object), len(o.DryRun) > 0
	return c.send(ctx, k, r, object)
}

// Update implements client.Writer.
func (c *modelClient) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	o := (&client.UpdateOptions{}).ApplyOptions(options)
	return c.update(ctx, object, object, "", len(o.DryRun) > 0)
}

// update updates an object or a subresource of it.
func (c *modelClient) update(ctx context.Context, object, sent client.Object, subresource string, dryRun bool) error {
	r, k, err := c.request(VerbUpdate, object)
	if err != nil {
		return err
	}
	r.Subresource, r.Object, r.DryRun = subresource, body(sent), dryRun
	return c.send(ctx, k, r, sent)
}

// Patch implements client.Writer.
func (c *modelClient) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	o := (&client.PatchOptions{}).ApplyOptions(options)
	return c.patch(ctx, object, object, patch, "", len(o.DryRun) > 0)
}

// patch patches an object or a subresource of it.
func (c *modelClient) patch(ctx context.Context, object, patched client.Object, patch client.Patch, subresource string, dryRun bool) error {
	r, k, err := c.request(VerbPatch, object)
	if err != nil {
		return err
	}
	if patch.Type() == types.ApplyYAMLPatchType {
		return fmt.Errorf("server-side apply: %w", ErrNotServed)
	}
	data, err := patch.Data(patched)
	if err != nil {
		return fmt.Errorf("make a patch of %s: %w", object.GetName(), err)
	}
	r.Subresource, r.PatchType, r.Patch, r.DryRun = subresource, patch.Type(), data, dryRun
	return c.send(ctx, k, r, patched)
}

// Delete implements client.Writer.
func (c *modelClient) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	r, k, err := c.request(VerbDelete, object)
	if err != nil {
		return err
	}
	r.deleteWith((&client.DeleteOptions{}).ApplyOptions(options))
	return c.send(ctx, k, r, nil)
}

// DeleteAllOf implements client.Writer.
func (c *modelClient) DeleteAllOf(ctx context.Context, object client.Object, options ...client.DeleteAllOfOption) error {
	r, k, err := c.request(VerbDeleteCollection, object)
	if err != nil {
		return err
	}
	o := (&client.DeleteAllOfOptions{}).ApplyOptions(options)
	r.Name, r.Namespace = "", ""
	if k.Namespaced {
		r.Namespace = o.Namespace
	}
	r.LabelSelector, r.FieldSelector = o.LabelSelector, o.FieldSelector
	r.deleteWith(&o.DeleteOptions)
	return c.send(ctx, k, r, nil)
}

// deleteWith sets the options of a delete.
func (r *Request) deleteWith(o *client.DeleteOptions) {
	all := o.AsDeleteOptions()
	r.Preconditions, r.Propagation, r.GracePeriodSeconds = all.Preconditions, all.PropagationPolicy, all.GracePeriodSeconds
	r.DryRun = len(all.DryRun) > 0
}

// Apply implements client.Writer. The model has no server-side apply.
func (*modelClient) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return fmt.Errorf("server-side apply: %w", ErrNotServed)
}

// subresourceClient is a client of one subresource.
type subresourceClient struct {
	*modelClient
	name string
}

// Get implements client.SubResourceReader.
func (c *subresourceClient) Get(ctx context.Context, object, subresource client.Object, _ ...client.SubResourceGetOption) error {
	r, k, err := c.request(VerbGet, object)
	if err != nil {
		return err
	}
	r.Subresource = c.name
	return c.send(ctx, k, r, subresource)
}

// Create implements client.SubResourceWriter.
func (c *subresourceClient) Create(
	ctx context.Context, object, subresource client.Object, options ...client.SubResourceCreateOption,
) error {
	r, k, err := c.request(VerbCreate, object)
	if err != nil {
		return err
	}
	o := (&client.SubResourceCreateOptions{}).ApplyOptions(options)
	r.Subresource, r.Object, r.DryRun = c.name, body(subresource), len(o.DryRun) > 0
	return c.send(ctx, k, r, nil)
}

// Update implements client.SubResourceWriter.
func (c *subresourceClient) Update(ctx context.Context, object client.Object, options ...client.SubResourceUpdateOption) error {
	o := (&client.SubResourceUpdateOptions{}).ApplyOptions(options)
	sent := object
	if o.SubResourceBody != nil {
		sent = o.SubResourceBody
	}
	return c.update(ctx, object, sent, c.name, len(o.DryRun) > 0)
}

// Patch implements client.SubResourceWriter.
func (c *subresourceClient) Patch(
	ctx context.Context, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption,
) error {
	o := (&client.SubResourcePatchOptions{}).ApplyOptions(options)
	patched := object
	if o.SubResourceBody != nil {
		patched = o.SubResourceBody
	}
	return c.patch(ctx, object, patched, patch, c.name, len(o.DryRun) > 0)
}

// Apply implements client.SubResourceWriter. The model has no server-side apply.
func (*subresourceClient) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	return fmt.Errorf("server-side apply: %w", ErrNotServed)
}
