// Package podtemplate finds the pod templates in objects of kinds that are not known here, and writes equal ones alike.
// It is pure.
//
// What may not come in: defaults, of which the API server is the only authority, and paths of a kind.
package podtemplate

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cairn-dev/cairn/revision"
)

// Each returns tree with f's result in place of each pod template: of each object with nothing but metadata and a spec
// that has containers. It never changes tree.
func Each(tree map[string]any, f func(template map[string]any) (map[string]any, error)) (map[string]any, error) {
	if is(tree) {
		return f(tree)
	}
	out := maps.Clone(tree)
	for key, value := range tree {
		v, err := each(value, f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		out[key] = v
	}
	return out, nil
}

func each(value any, f func(map[string]any) (map[string]any, error)) (any, error) {
	switch v := value.(type) {
	case map[string]any:
		return Each(v, f)
	case []any:
		out := make([]any, len(v))
		for n := range v {
			var err error
			if out[n], err = each(v[n], f); err != nil {
				return nil, err
			}
		}
		return out, nil
	default:
		return value, nil
	}
}

// is reports whether an object has the form of a pod template.
func is(tree map[string]any) bool {
	spec, _ := tree["spec"].(map[string]any)
	containers, _ := spec["containers"].([]any)
	for key := range tree {
		if key != "metadata" && key != "spec" {
			return false
		}
	}
	return len(containers) > 0
}

// Normal is the [revision.Normalizer] of objects that hold pod templates: a controller that stores what it has decoded
// adds "creationTimestamp: null" and "resources: {}". A template with a field that Kubernetes does not have stays as it
// is: the type would drop the field, and hide a change of it.
func Normal(tree map[string]any) (map[string]any, error) {
	typed := revision.Typed[corev1.PodTemplateSpec]()
	return Each(tree, func(template map[string]any) (map[string]any, error) {
		var into corev1.PodTemplateSpec
		if runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(template, &into, true) != nil {
			return template, nil //nolint:nilerr // it is no template of Kubernetes'
		}
		return typed(template)
	})
}
