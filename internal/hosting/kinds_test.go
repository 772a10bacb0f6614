package hosting

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/cairn-dev/cairn/internal/watching"
	"github.com/cairn-dev/cairn/ownership"
)

// This file looks at the kinds that hosted controllers watch, in a world.

// linger is how long package watching watches a kind that nobody needs any more.
const linger = 2 * time.Minute

var (
	pods              = watching.Resource{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Namespaced: true}
	configMapResource = watching.Resource{Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespaced: true}
	secretResource    = watching.Resource{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, Resource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, Namespaced: true}
)

// TestConsistencyOfRunningInformers: children are indexed while their informer runs, twice is once, and the consistency
// store looks into the stores of all.
func TestConsistencyOfRunningInformers(t *testing.T) {
	inWorld(t, func(w *world) {
		env := w.shared(nil)
		child := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "child", OwnerReferences: []metav1.OwnerReference{{Kind: "Thing", UID: "p", Controller: new(true)}},
		}}
		if err := w.client.Create(w.ctx, child); err != nil {
			t.Fatal(err)
		}
		informer, err := env.Cache.GetInformer(w.ctx, pods.New())
		if err != nil {
			t.Fatal(err)
		}
		settle(time.Second)
		consistency, err := env.ConsistencyOf(w.ctx, []watching.Resource{watching.Revisions, pods}, []watching.Resource{configMapResource})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := env.Index(w.ctx, pods); err != nil {
				t.Fatal(err)
			}
		}
		indexer := informer.(toolscache.SharedIndexInformer).GetIndexer()
		if found, err := indexer.ByIndex("field:"+ownership.ControllerIndex, "p/Thing"); err != nil || len(found) != 1 {
			t.Errorf("%v, %v", found, err)
		}
		settle(time.Second)
		for _, r := range []watching.Resource{pods, configMapResource, watching.Revisions} {
			o := r.New()
			o.SetNamespace("ns")
			o.SetName("written")
			if err := w.client.Create(w.ctx, o); err != nil {
				t.Fatal(err)
			}
			settle(time.Second)
			consistency.Deleted("p", r.Resource.GroupResource(), o)
			if consistency.Unseen("p") == "" {
				t.Errorf("the consistency does not see that %s still hold what was deleted", r)
			}
			consistency.Clear("p")
		}
	})
}

// TestIndexDoesNotWait: a kind that cannot be listed holds up nobody.
func TestIndexDoesNotWait(t *testing.T) {
	inWorld(t, func(w *world) {
		w.caches.listing("Secret", forbidden())
		env := w.shared(nil)
		ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
		defer cancel()
		before := time.Now()
		if err := env.Index(ctx, secretResource); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(before); took != 0 {
			t.Errorf("it took %s", took)
		}
	})
}

// TestKindsAreLetGo: a kind is watched as long as somebody needs it and a little longer, so that a new start lists
// nothing.
func TestKindsAreLetGo(t *testing.T) {
	inWorld(t, func(w *world) {
		env := w.shared(nil)
		hold := func(r watching.Resource, times int) (letGo context.CancelFunc) {
			ctx, cancel := context.WithCancel(w.ctx)
			for range times {
				if err := env.Index(ctx, r); err != nil {
					t.Fatal(err)
				}
			}
			return cancel
		}
		expect := func(want string) {
			t.Helper()
			settle(linger)
			if got := w.caches.watched(); got != want {
				t.Errorf("watched: %q, not %q", got, want)
			}
		}
		first, second, other := hold(pods, 3), hold(pods, 1), hold(secretResource, 1)
		_ = hold(configMapResource, 1)
		expect("ConfigMap Pod Secret")
		first()
		other()
		settle(linger / 2)
		other = hold(secretResource, 1) // it comes back in time
		expect("ConfigMap Pod Secret")
		second()
		expect("ConfigMap Secret")
		other()
		expect("ConfigMap")
		defer hold(pods, 1)()
		expect("ConfigMap Pod")
	})
}
