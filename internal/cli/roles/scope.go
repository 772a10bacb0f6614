package roles

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/internal/cli/env"
)

// This file finds out which parents are in no namespace: from the CRDs that are in the same files, and else from the
// cluster, if there is one.

// clusterScoped returns those that are in no namespace, and those of which that is not known.
func clusterScoped(
	e *env.Env, parents []schema.GroupVersionResource, files []*unstructured.Unstructured,
) (out, unknown []schema.GroupResource) {
	for _, parent := range parents {
		scope := scopeIn(files, parent)
		if scope == "" {
			scope = scopeAt(e, parent)
		}
		switch scope {
		case meta.RESTScopeNameRoot:
			out = append(out, parent.GroupResource())
		case meta.RESTScopeNameNamespace:
		default:
			unknown = append(unknown, parent.GroupResource())
		}
	}
	return out, unknown
}

// scopeIn is what a CRD says, empty if there is none.
func scopeIn(files []*unstructured.Unstructured, parent schema.GroupVersionResource) meta.RESTScopeName {
	i := slices.IndexFunc(files, func(o *unstructured.Unstructured) bool {
		group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
		plural, _, _ := unstructured.NestedString(o.Object, "spec", "names", "plural")
		return o.GetKind() == "CustomResourceDefinition" && group == parent.Group && plural == parent.Resource
	})
	if i < 0 {
		return ""
	}
	switch scope, _, _ := unstructured.NestedString(files[i].Object, "spec", "scope"); scope {
	case "Namespaced":
		return meta.RESTScopeNameNamespace
	case "Cluster":
		return meta.RESTScopeNameRoot
	default:
		return ""
	}
}

// scopeAt is what the API server serves, empty if there is none, or it does not serve that.
func scopeAt(e *env.Env, parent schema.GroupVersionResource) meta.RESTScopeName {
	if _, err := e.Config(); err != nil {
		return ""
	}
	mapper, err := e.Cluster.ToRESTMapper()
	if err != nil {
		return ""
	}
	kind, err := mapper.KindFor(parent)
	if err != nil {
		return ""
	}
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return ""
	}
	return mapping.Scope.Name()
}
