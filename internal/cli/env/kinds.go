package env

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// This file asks the cluster which kinds it has. The answer is kept on the disk, as kubectl does.

// listable returns the kinds whose objects can be listed, in the version that the API server prefers: those in namespaces or, if
// namespaced is false, all.
func (e *Env) listable(namespaced bool) ([]schema.GroupVersionKind, error) {
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

// endless reports whether a resource has many short-lived objects that nothing controls: they would be most of what is read.
func endless(r *metav1.APIResource) bool { return r.Name == "events" || strings.Contains(r.Name, "/") }
