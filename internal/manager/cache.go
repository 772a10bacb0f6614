package manager

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cairn "github.com/cairn-dev/cairn/api/cairn/v1alpha1"
	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/controllers/metacontroller/composite"
	"github.com/cairn-dev/cairn/controllers/metacontroller/decorator"
	"github.com/cairn-dev/cairn/controllers/recorder"
)

// This file says what the caches hold.

// cache returns how objects are cached. No code here changes a cached object or reads managed fields, so cached objects
// are not copied, and managed fields are dropped.
func (o Options) cache() cache.Options {
	out := cache.Options{
		DefaultUnsafeDisableDeepCopy: new(true),
		DefaultTransform:             cache.TransformStripManagedFields(),
	}
	if o.Namespace == "" {
		return out
	}
	// As in the cache of hosted controllers (watching/informers.go): lists and watches of one namespace, as a Role allows
	// them.
	out.DefaultFieldSelector = fields.OneTermEqualSelector("metadata.namespace", o.Namespace)
	out.ByObject = map[client.Object]cache.ByObject{}
	global := []client.Object{&corev1.Namespace{}, &corev1.Node{}}
	if slices.Contains(o.Controllers, composite.Name) {
		global = append(global, &v1alpha1.CompositeController{})
	}
	if slices.Contains(o.Controllers, decorator.Name) {
		global = append(global, &v1alpha1.DecoratorController{})
	}
	if slices.Contains(o.Controllers, recorder.Name) {
		global = append(global, &cairn.HistoryPolicy{})
	}
	for _, o := range global {
		out.ByObject[o] = cache.ByObject{Field: fields.Everything()}
	}
	return out
}
