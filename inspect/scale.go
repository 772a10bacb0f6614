package inspect

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/revision"
)

// This file finds the field that holds the scale of a parent. An autoscaler may set it, so an automatic rollback keeps
// it.

// replicas is the field of most kinds.
var replicas = revision.Path{"spec", "replicas"}

var definitions = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// scalePath returns the specReplicasPath of the scale subresource of a kind, or spec.replicas if it has none. It reads
// the CustomResourceDefinition if target holds more than spec.template. The error is the API server's.
func (i *Inspector) scalePath(ctx context.Context, of schema.GroupVersionKind, target *revision.Target) (revision.Path, error) {
	if target == nil || scheme.Scheme.IsGroupRegistered(of.Group) || onlyTemplate(target) {
		return replicas, nil
	}
	mapping, err := i.client.RESTMapper().RESTMapping(of.GroupKind(), of.Version)
	if meta.IsNoMatchError(err) {
		return replicas, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find the resource of %s: %w", of, err)
	}
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(definitions)
	name := mapping.Resource.GroupResource().String()
	switch err := i.client.Get(ctx, client.ObjectKey{Name: name}, crd); {
	case apierrors.IsNotFound(err): // an aggregated API server has the kind
		return replicas, nil
	case err != nil:
		return nil, fmt.Errorf("find the field that holds the scale (cairn roles --allow=undo grants that): %w", err)
	}
	return scaleIn(crd, of.Version), nil
}

func onlyTemplate(target *revision.Target) bool {
	for _, path := range target.Paths() {
		if len(path) < 2 || path[0] != "spec" || path[1] != "template" {
			return false
		}
	}
	return true
}

// scaleIn returns the path in a CustomResourceDefinition.
func scaleIn(crd *unstructured.Unstructured, version string) revision.Path {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		v, _ := v.(map[string]any)
		path, found, _ := unstructured.NestedString(v, "subresources", "scale", "specReplicasPath")
		if v["name"] != version || !found {
			continue
		}
		if parsed, err := revision.ParsePath(strings.TrimPrefix(path, ".")); err == nil {
			return parsed
		}
	}
	return replicas
}

// scale returns the path of the field that holds the parent's scale.
func (u *Undo) scale() revision.Path {
	if u.log == nil || u.log.scale == nil {
		return replicas
	}
	return u.log.scale
}
