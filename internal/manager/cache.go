package manager

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cairn "github.com/cairn-dev/cairn/api/cairn/v1alpha1"
	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/controllers/metacontroller/composite"
	"github.com/cairn-dev/cairn/controllers/metacontroller/decorator"
	"github.com/cairn-dev/cairn/controllers/recorder"
)

// This file says what the caches hold, and sees that a manager can be stopped before they are filled.

// stoppable is a cache that nobody waits for once the manager is stopped. A manager of controller-runtime 0.25 that is
// stopped before its caches say that they are filled never returns from Start, and loops without a pause until the
// process ends (its issue 3440). A read of a kind that is not filled still waits, so nothing acts on less than there
// is.
type stoppable struct {
	cache.Cache

	stopped <-chan struct{}
}

// stoppableUntil makes caches for a manager that ctx stops.
func stoppableUntil(ctx context.Context) cache.NewCacheFunc {
	return func(cfg *rest.Config, o cache.Options) (cache.Cache, error) {
		c, err := cache.New(cfg, o)
		return stoppable{c, ctx.Done()}, err
	}
}

// WaitForCacheSync returns true when the caches are filled, or when there will be no use of them. The manager's own
// wait has a context that ends only after Start.
func (c stoppable) WaitForCacheSync(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	filled := make(chan bool, 1)
	go func() { filled <- c.Cache.WaitForCacheSync(ctx) }()
	select {
	case ok := <-filled:
		return ok
	case <-c.stopped:
		return true
	}
}

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
