package host

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
	"github.com/cairn-dev/cairn/internal/metacontroller/watch"
)

// This file makes hooks of what people write in spec.hooks and spec.endpointConfigs. Fields that are left out get the
// values of v1alpha1's defaults here or, where that has the same ones, in package hook.

// Hook returns the hook that a controller declares as h, nil if h is nil. The error is a *[hook.Error] with reason
// [hook.Misconfigured] if it has no address: report it on the controller, and build again when its spec changes. Nothing
// is called yet. Close the hook when the controller ends.
func (e *Environment) Hook(
	c hook.Controller, kind hook.Kind, h *v1alpha1.Hook, configs []v1alpha1.EndpointConfig,
) (*hook.Hook, error) {
	if h == nil {
		return nil, nil //nolint:nilnil // a hook that is not declared is nothing to ask, and no error
	}
	o := described(h, configs)
	o.Controller, o.Kind = c, kind
	o.Secrets, o.Guard, o.Encoder, o.Memory, o.Metrics, o.Now = e.Secrets, e.Guard, e.Encoder, e.Memory, e.Metrics, e.Clock.Now
	o.Transport = e.Transport
	return hook.New(o)
}

// Hooks are those of one controller, nil where they are not declared.
type Hooks struct {
	Sync, Finalize, Customize *hook.Hook

	forget func()
}

// Hooks returns the hooks that a controller declares, any of which may be nil. Errors are those of [Environment.Hook]; then
// nothing is left to close.
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

// Controller returns what hooks are told about the controller o: all of it, as Metacontroller does, and the kinds of its
// children or attachments. It is as old as o: a change of the spec needs a new one, and a change of its status is no
// news to a hook.
func (e *Environment) Controller(t hook.Type, o client.Object, children []watch.Resource) (hook.Controller, error) {
	told, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		return hook.Controller{}, fmt.Errorf("%T is no object of the API", o)
	}
	// An object that was read into its type has lost its kind. The type of a controller is the name of its kind.
	told.GetObjectKind().SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(string(t)))
	told.SetManagedFields(nil) // nobody's business, and long
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

// described returns the part of the options that people write.
func described(h *v1alpha1.Hook, configs []v1alpha1.EndpointConfig) hook.Options {
	strict := h.Strict()
	o := hook.Options{Version: hook.Version(h.EffectiveVersion())}
	if w := h.Webhook; w != nil {
		o.Webhook = hook.Webhook{
			URL: ptr.Deref(w.URL, ""), Path: ptr.Deref(w.Path, ""), Timeout: w.EffectiveTimeout(),
			ETag:     w.Etag != nil && ptr.Deref(w.Etag.Enabled, false),
			Strict:   &strict,
			Endpoint: endpoint(w.CABundle, w.ClientTLS, w.Authorization, w.BasicAuth),
		}
		if s := w.Service; s != nil {
			o.Webhook.Service = &hook.Service{
				Name: s.Name, Namespace: s.Namespace, Port: ptr.Deref(s.Port, 0), Protocol: ptr.Deref(s.Protocol, ""),
			}
		}
	}
	for _, c := range configs {
		o.EndpointConfigs = append(o.EndpointConfigs, hook.EndpointConfig{
			Host: c.Host, Endpoint: endpoint(c.CABundle, c.ClientTLS, c.Authorization, c.BasicAuth),
		})
	}
	return o
}

// endpoint keeps a field that is there but empty: it says that nothing of the host's entry counts, and reading it tells
// what is missing.
func endpoint(
	ca *v1alpha1.CABundle, tls *v1alpha1.ClientTLS, authorization *v1alpha1.Authorization, basic *v1alpha1.BasicAuth,
) hook.Endpoint {
	out := hook.Endpoint{}
	if ca != nil {
		out.CABundle = &hook.CABundle{
			Inline: []byte(ptr.Deref(ca.Inline, "")), Secret: bundleReference(ca.SecretRef), ConfigMap: bundleReference(ca.ConfigMapRef),
		}
	}
	if tls != nil {
		out.ClientTLS = &hook.ClientTLS{
			Secret: secretName(tls.SecretRef), CertKey: ptr.Deref(tls.CertKey, ""), PrivKey: ptr.Deref(tls.PrivateKeyKey, ""),
		}
	}
	if a := authorization; a != nil {
		out.Authorization = &hook.Authorization{
			Type:   ptr.Deref(a.Type, ""),
			Secret: hook.Reference{NamespacedName: secretName(a.SecretRef.SecretReference), Key: a.SecretRef.Key},
		}
	}
	if basic != nil {
		out.BasicAuth = &hook.BasicAuth{
			Secret: secretName(basic.SecretRef), UsernameKey: ptr.Deref(basic.UsernameKey, ""), PasswordKey: ptr.Deref(basic.PasswordKey, ""),
		}
	}
	return out
}

func bundleReference(r *v1alpha1.CABundleReference) *hook.Reference {
	if r == nil {
		return nil
	}
	return &hook.Reference{NamespacedName: types.NamespacedName{Namespace: r.Namespace, Name: r.Name}, Key: ptr.Deref(r.Key, "")}
}

func secretName(r v1alpha1.SecretReference) types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
}
