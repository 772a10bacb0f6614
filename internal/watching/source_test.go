package watching

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func named(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
}

// oneInformer is a cache with one informer, over a watch that the test feeds.
type oneInformer struct {
	cache.Informers

	toolscache.SharedIndexInformer

	// removed is closed when a handler is removed.
	removed chan struct{}
}

func (o oneInformer) RemoveEventHandler(handle toolscache.ResourceEventHandlerRegistration) error {
	defer close(o.removed)
	return o.SharedIndexInformer.RemoveEventHandler(handle)
}

func (o oneInformer) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return o, nil
}

func TestEventsEndWithTheirController(t *testing.T) {
	feed := cachetesting.NewFakeControllerSource()
	feed.Add(named("old"))
	informer := toolscache.NewSharedIndexInformer(feed, &corev1.ConfigMap{}, 0, nil)
	go informer.RunWithContext(t.Context())

	ctx, cancel := context.WithCancel(t.Context())
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	removed := make(chan struct{})
	source := &Events{Cache: oneInformer{SharedIndexInformer: informer, removed: removed}, Object: &corev1.ConfigMap{}, Handler: &handler.EnqueueRequestForObject{}}
	if err := source.Start(ctx, q); err != nil {
		t.Fatal(err)
	}
	if err := source.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	expect := func(name string) {
		t.Helper()
		got, _ := q.Get()
		q.Done(got)
		if got.Name != name {
			t.Errorf("woken: %s, not %s", got.Name, name)
		}
	}
	expect("old")
	feed.Add(named("new"))
	expect("new")
	changed := named("new")
	changed.Data = map[string]string{"a": "b"}
	feed.Modify(changed)
	expect("new")
	feed.Delete(changed)
	expect("new")

	// A second handler shows that the informer goes on, and what comes after the end reaches only that one.
	other := make(chan string, 10)
	_, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(o any) {
		other <- o.(*corev1.ConfigMap).Name
	}})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	<-removed
	feed.Add(named("after"))
	for <-other != "after" { //nolint:revive // until the other handler has heard of it
	}
	if q.Len() != 0 {
		t.Error("a controller that ended is still woken")
	}
}

func TestEventsThatCannotBeListed(t *testing.T) {
	source := &Events{Object: &corev1.ConfigMap{}, synced: make(chan struct{})}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := source.WaitForSync(ctx); !errors.Is(err, ErrNotSynced) {
		t.Error(err)
	}
}
