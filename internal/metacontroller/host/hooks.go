package host

import (
	"encoding/json"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/hosting"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
	"github.com/cairn-dev/cairn/internal/watching"
)

// This file makes the hooks that are declared in spec.hooks.

// Hook returns the hook that a controller declares as h, nil if h is nil. The error is an [*hosting.Error] with reason
// [hook.Misconfigured] if it has no address: report it on the controller, and build again when its spec changes. The
// hook is not called yet. Close the hook when the controller ends.
func (e *Environment) Hook(
	c hook.Controller, kind hook.Kind, h *v1alpha1.Hook, configs []v1alpha1.EndpointConfig,
) (*hook.Hook, error) {
	if h == nil {
		return nil, nil //nolint:nilnil // an undeclared hook is no error
	}
	made, err := hook.New(hook.Options{
		Controller: c, Kind: kind, Declared: h, EndpointConfigs: configs,
		Secrets: e.Secrets, Guard: e.Guard, Encoder: e.Encoder, Memory: e.Memory, Metrics: e.Metrics, Now: e.Clock.Now, Transport: e.Transport,
	})
	if wrong, ok := errors.AsType[*hook.Error](err); ok {
		return nil, &hosting.Error{Reason: string(wrong.Reason), Err: err}
	}
	return made, err
}

// Hooks are those of one controller, nil where they are not declared.
type Hooks struct {
	Sync, Finalize, Customize *hook.Hook

	forget func()
}

// Hooks returns the hooks that a controller declares, any of which may be nil. Errors are those of [Environment.Hook];
// then there is nothing to close.
func (e *Environment) Hooks(
	c hook.Controller, sync, finalize, customize *v1alpha1.Hook, configs []v1alpha1.EndpointConfig,
) (*Hooks, error) {
	out := &Hooks{forget: func() { e.Metrics.Forget(c) }}
	for _, h := range []struct {
		kind     hook.Kind
		declared *v1alpha1.Hook
		into     **hook.Hook
	}{{hook.Sync, sync, &out.Sync}, {hook.Finalize, finalize, &out.Finalize}, {hook.Customize, customize, &out.Customize}} {
		var err error
		if *h.into, err = e.Hook(c, h.kind, h.declared, configs); err != nil {
			out.Close()
			return nil, err
		}
	}
	return out, nil
}

// Close closes them all, and drops their metrics.
func (h *Hooks) Close() {
	for _, one := range []*hook.Hook{h.Sync, h.Finalize, h.Customize} {
		if one != nil {
			one.Close()
		}
	}
	h.forget()
}

// Controller returns what hooks get of the controller o: all of it, as Metacontroller does, and the kinds of its
// children or attachments. It does not follow o: make a new one when the spec changes; hooks need not see a change of
// the status.
func (e *Environment) Controller(t hook.Type, o client.Object, children []watching.Resource) (hook.Controller, error) {
	told, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		return hook.Controller{}, fmt.Errorf("%T is no object of the API", o)
	}
	// A typed object has lost its kind. The name of the Go type is the kind.
	told.GetObjectKind().SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(string(t)))
	told.SetManagedFields(nil) // hooks do not need them, and they are long
	raw, err := json.Marshal(told)
	if err != nil {
		return hook.Controller{}, fmt.Errorf("encode %s %s: %w", t, o.GetName(), err)
	}
	c := hook.Controller{Type: t, Name: o.GetName(), Object: raw}
	for _, r := range children {
		c.Children = append(c.Children, hook.ChildKind{GroupVersionKind: r.Kind, Namespaced: r.Namespaced})
	}
	return c, nil
}
