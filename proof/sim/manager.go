package sim

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"testing/synctest"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	ctrlrecorder "sigs.k8s.io/controller-runtime/pkg/recorder"
)

// This file is the ctrl.Manager that controllers are set up in. It is a real one as far as a controller can see: real
// controllers, real work queues and real goroutines, over our caches and our client.

// manager implements [ctrl.Manager].
type manager struct {
	// The rest of the interface is nil: no controller calls it, and one that does is told by a panic in its Setup.
	ctrl.Manager

	process   *process
	scheme    *runtime.Scheme
	mapper    meta.RESTMapper
	caches    *caches
	client    client.Client
	live      client.Reader
	log       logr.Logger
	recorder  events.EventRecorder
	runnables []ctrlmanager.Runnable
}

func (m *manager) GetScheme() *runtime.Scheme           { return m.scheme }
func (m *manager) GetRESTMapper() meta.RESTMapper       { return m.mapper }
func (m *manager) GetCache() cache.Cache                { return m.caches }
func (m *manager) GetFieldIndexer() client.FieldIndexer { return m.caches }
func (m *manager) GetClient() client.Client             { return m.client }
func (m *manager) GetAPIReader() client.Reader          { return m.live }
func (m *manager) GetHTTPClient() *http.Client          { return nil }
func (m *manager) GetLogger() logr.Logger               { return m.log }

// GetEventRecorder returns a recorder of plain Events: no controller of ours sends annotated ones.
func (m *manager) GetEventRecorder(string) ctrlrecorder.EventRecorder {
	return struct {
		events.EventRecorder
		events.AnnotatedEventRecorder
	}{EventRecorder: m.recorder}
}

// GetControllerOptions allows many controllers of one name in one process.
func (m *manager) GetControllerOptions() config.Controller {
	return config.Controller{SkipNameValidation: new(true), Logger: m.log}
}

// Add adds what is to be run. Of a controller it replaces two things. Its queue gets no metrics: they wake up twice a
// second of simulated time, and write into what all worlds of this process share. Its reconciler is wrapped, so that we
// know what a pass could know.
func (m *manager) Add(r ctrlmanager.Runnable) error {
	m.runnables = append(m.runnables, r)
	if _, ok := r.(controller.Controller); !ok {
		return nil
	}
	// The type of a controller is internal, and its fields are not.
	fields := reflect.ValueOf(r).Elem()
	makes, reconciler := fields.FieldByName("NewQueue"), fields.FieldByName("Do")
	if !is[newQueue](makes) || !is[reconcile.Reconciler](reconciler) {
		return fmt.Errorf("sim: a %T is not the controller that the simulation knows", r)
	}
	makes.Set(reflect.ValueOf(m.process.newQueue))
	inner := reconciler.Interface().(reconcile.Reconciler)
	reconciler.Set(reflect.ValueOf(&knowing{
		Reconciler: inner, process: m.process, number: len(m.runnables), passes: map[reconcile.Request]int{},
	}))
	return nil
}

type (
	limiter  = workqueue.TypedRateLimiter[reconcile.Request]
	newQueue = func(string, limiter) workqueue.TypedRateLimitingInterface[reconcile.Request]
)

func is[T any](field reflect.Value) bool {
	return field.IsValid() && field.Type() == reflect.TypeFor[T]()
}

// newQueue makes the queue that all controllers have. Without a name it has no metrics.
func (p *process) newQueue(_ string, l limiter) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	q := &endingOnce{PriorityQueue: priorityqueue.New("", func(o *priorityqueue.Opts[reconcile.Request]) { o.RateLimiter = l })}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queues = append(p.queues, q)
	return q
}

// endingOnce is a queue that both the scheduler and the controller shut down: the second call of the one inside panics.
type endingOnce struct {
	priorityqueue.PriorityQueue[reconcile.Request]

	once sync.Once
}

func (q *endingOnce) ShutDown() { q.once.Do(q.PriorityQueue.ShutDown) }

// start runs everything, each until ctx ends. It starts one after the other: which controller hears of a pod first is
// else chance.
func (m *manager) start(ctx context.Context, failed func(error)) {
	for _, r := range m.runnables {
		go func() {
			if err := r.Start(ctx); err != nil {
				failed(err)
			}
		}()
		synctest.Wait()
	}
}

// cachedClient reads from the caches and writes through the server, as a manager's client does.
type cachedClient struct {
	client.Client

	caches *caches
}

func (c cachedClient) Get(ctx context.Context, key client.ObjectKey, out client.Object, opts ...client.GetOption) error {
	return c.caches.Get(ctx, key, out, opts...)
}

func (c cachedClient) List(ctx context.Context, out client.ObjectList, opts ...client.ListOption) error {
	return c.caches.List(ctx, out, opts...)
}
