package env

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file asks the cluster which kinds it has. The answer is kept on the disk, as kubectl does.

// listable returns the kinds whose objects can be listed, in the version that the API server prefers: those in
// namespaces or, if namespaced is false, all.
func (e *Env) listable(namespaced bool) ([]schema.GroupVersionKind, error) {
	e.everything.Store(true)
	asker, err := e.Cluster.ToDiscoveryClient()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	lists, err := discovery.ServerPreferredResources(asker)
	if len(lists) == 0 && err != nil { // a group whose API server is down is no reason to show nothing
		return nil, fmt.Errorf("find out which kinds the cluster has: %w", err)
	}
	var out []schema.GroupVersionKind
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for n := range list.APIResources {
			r := &list.APIResources[n]
			if slices.Contains(r.Verbs, "list") && (r.Namespaced || !namespaced) && !endless(r) {
				out = append(out, version.WithKind(r.Kind))
			}
		}
	}
	return out, nil
}

// warnings passes the API server's warnings on, but not while objects of all kinds are listed: that some of these kinds
// are deprecated is nothing that the user has asked for.
type warnings struct {
	rest.WarningHandler

	env *Env
}

// HandleWarningHeader implements [rest.WarningHandler].
func (w *warnings) HandleWarningHeader(code int, agent, text string) {
	if !w.env.everything.Load() {
		w.WarningHandler.HandleWarningHeader(code, agent, text)
	}
}

// resources returns what the resources of the cluster are called whose objects can be listed: daemonsets, and with its
// group if another one before it is called so.
func (e *Env) resources() ([]string, error) {
	asker, err := e.Cluster.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}
	lists, err := discovery.ServerPreferredResources(asker)
	if len(lists) == 0 && err != nil {
		return nil, err
	}
	var out []string
	for _, list := range lists {
		version, _ := schema.ParseGroupVersion(list.GroupVersion) // an empty group is no worse than none
		for n := range list.APIResources {
			r := &list.APIResources[n]
			if !slices.Contains(r.Verbs, "list") || endless(r) {
				continue
			}
			name := r.Name
			if slices.Contains(out, name) {
				name += "." + version.Group
			}
			out = append(out, name)
		}
	}
	return out, nil
}

// names returns the names of the objects of a kind, as a user calls it, in the namespace that the flags say.
func (e *Env) names(ctx context.Context, kind string) ([]string, error) {
	mapper, err := e.Cluster.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	gvk, err := mapper.KindFor(schema.ParseGroupResource(kind).WithVersion(""))
	if err != nil {
		return nil, err
	}
	c, err := e.client()
	if err != nil {
		return nil, err
	}
	namespace, _, err := e.Cluster.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(gvk)
	if in, err := c.IsObjectNamespaced(o); err != nil || !in {
		namespace = ""
	}
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	out := make([]string, 0, len(list.Items))
	for n := range list.Items {
		out = append(out, list.Items[n].Name)
	}
	return out, nil
}

// endless reports whether a resource has many short-lived objects that nothing controls: they would be most of what is
// read.
func endless(r *metav1.APIResource) bool { return r.Name == "events" || strings.Contains(r.Name, "/") }
