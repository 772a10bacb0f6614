package hosting

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/config"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/fakeserver"
	"github.com/cairn-dev/cairn/internal/watching"
)

// This file is what the tests host controllers in: a manager over controller-runtime's fake client, and a cache with
// real informers that list and watch through it. Time is that of a synctest bubble.

// world is a ctrl.Manager.
type world struct {
	ctrl.Manager // nil: what is not below is not called

	*testing.T

	ctx      context.Context
	end      context.CancelFunc
	scheme   *runtime.Scheme
	client   client.WithWatch
	mapper   meta.RESTMapper
	caches   *caches
	recorder *fakeserver.Recorder

	mu sync.Mutex
	// statuses are the patches of status; refuse, if set, refuses them. prune drops them, as a CRD without such fields
	// does.
	statuses []string
	refuse   error
	prune    bool
	running  sync.WaitGroup
}

// inWorld runs a test in a world of its own.
func inWorld(t *testing.T, test func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, scheme: runtime.NewScheme(), recorder: &fakeserver.Recorder{}}
		stored := runtime.NewScheme() // the fake client adds to its own while others read theirs
		if err := errors.Join(clientgoscheme.AddToScheme(w.scheme), v1alpha1.AddToScheme(w.scheme),
			clientgoscheme.AddToScheme(stored), v1alpha1.AddToScheme(stored)); err != nil {
			t.Fatal(err)
		}
		w.ctx, w.end = context.WithCancel(t.Context())
		w.client = fake.NewClientBuilder().WithScheme(stored).
			WithStatusSubresource(&v1alpha1.CompositeController{}, &v1alpha1.DecoratorController{}).
			WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: w.patchStatus}).Build()
		w.mapper = w.client.RESTMapper()
		w.caches = &caches{world: w, informers: map[kindKey]*oneKind{}, unlisted: map[string]error{}}
		defer func() {
			w.end()
			w.running.Wait()
			w.caches.running.Wait()
		}()
		test(w)
	})
}

func (w *world) patchStatus(
	ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
) error {
	body, err := patch.Data(o)
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.statuses = append(w.statuses, string(body))
	err, prune := w.refuse, w.prune
	w.mu.Unlock()
	if err != nil || prune {
		return err
	}
	return c.SubResource(sub).Patch(ctx, o, patch, opts...)
}

func (w *world) GetScheme() *runtime.Scheme     { return w.scheme }
func (w *world) GetRESTMapper() meta.RESTMapper { return w.mapper }
func (w *world) GetCache() cache.Cache          { return w.caches }
func (w *world) GetClient() client.Client       { return w.client }
func (w *world) GetAPIReader() client.Reader    { return w.client }
func (w *world) GetLogger() logr.Logger         { return logr.Discard() }
func (w *world) GetConfig() *rest.Config        { return &rest.Config{Host: "https://api.example.com"} }

func (w *world) GetEventRecorder(string) recorder.EventRecorder {
	return struct {
		events.EventRecorder
		events.AnnotatedEventRecorder
	}{EventRecorder: w.recorder}
}

func (w *world) GetControllerOptions() config.Controller {
	return config.Controller{SkipNameValidation: new(true)}
}

// Add runs what is added until the world ends.
func (w *world) Add(r ctrlmanager.Runnable) error {
	w.running.Go(func() {
		if err := r.Start(w.ctx); err != nil {
			w.Error(err)
		}
	})
	return nil
}

// shared is a host over the world's caches, whose kinds an authority may speak of.
func (w *world) shared(a watching.Authority) *Host {
	w.Helper()
	none := func() error { return nil }
	server, err := watching.New(w, watching.Options{
		Config: w.GetConfig(), Clock: clock.RealClock{}, Cache: w.caches, Authority: a, Begun: none, Over: func() {},
	})
	if err != nil {
		w.Fatal(err)
	}
	return &Host{Server: server, Recorder: w.recorder, Workers: 5}
}

// kind is that of CompositeControllers.
func kind(build Build[*v1alpha1.CompositeController]) Kind[*v1alpha1.CompositeController] {
	return Kind[*v1alpha1.CompositeController]{
		Name: "composite", Noun: "controller", Build: build,
		Status: func(c *v1alpha1.CompositeController) Status { return Status(c.Status) },
	}
}

// describe creates a CompositeController.
func (w *world) describe(name string) *v1alpha1.CompositeController {
	w.Helper()
	c := &v1alpha1.CompositeController{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name), Generation: 1}}
	if err := w.client.Create(w.ctx, c); err != nil {
		w.Fatal(err)
	}
	return c
}

// change changes an object as it is now.
func (w *world) change(c *v1alpha1.CompositeController, change func(*v1alpha1.CompositeController)) {
	w.Helper()
	if err := w.client.Get(w.ctx, client.ObjectKeyFromObject(c), c); err != nil {
		w.Fatal(err)
	}
	change(c)
	if err := w.client.Update(w.ctx, c); err != nil {
		w.Fatal(err)
	}
}

// edit changes the spec of an object.
func (w *world) edit(c *v1alpha1.CompositeController) {
	w.Helper()
	w.change(c, func(c *v1alpha1.CompositeController) { c.Generation++ })
}

func (w *world) remove(o client.Object) {
	w.Helper()
	if err := w.client.Delete(w.ctx, o); err != nil {
		w.Fatal(err)
	}
}

// ready returns the condition Ready of c, as "status reason: message".
func (w *world) ready(c *v1alpha1.CompositeController) string {
	w.Helper()
	now := &v1alpha1.CompositeController{}
	if err := w.client.Get(w.ctx, client.ObjectKeyFromObject(c), now); err != nil {
		w.Fatal(err)
	}
	got := meta.FindStatusCondition(now.Status.Conditions, Ready)
	if got == nil {
		return ""
	}
	if got.ObservedGeneration != now.Status.ObservedGeneration {
		w.Errorf("the condition is about generation %d, the status about %d", got.ObservedGeneration, now.Status.ObservedGeneration)
	}
	return fmt.Sprintf("%s %s: %s", got.Status, got.Reason, got.Message)
}

// happened returns the reasons of the events that were sent.
func (w *world) happened() string {
	var reasons []string
	for _, e := range w.recorder.Events() {
		reasons = append(reasons, strings.Fields(e)[1])
	}
	return strings.Join(reasons, " ")
}

// written returns how often a status was written.
func (w *world) written() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.statuses)
}

// caches is a cache with an informer for each kind that somebody asked for. Reads go past it.
type caches struct {
	client.Reader
	*world

	running sync.WaitGroup

	mu        sync.Mutex
	informers map[kindKey]*oneKind
	// unlisted are kinds that cannot be listed, and why.
	unlisted map[string]error
}

// kindKey is what there is one informer for.
type kindKey struct {
	kind         schema.GroupVersionKind
	unstructured bool
}

// oneKind is a running informer.
type oneKind struct {
	toolscache.SharedIndexInformer

	stop context.CancelFunc
}

func (c *caches) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return c.client.Get(ctx, key, o, opts...)
}

func (c *caches) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.client.List(ctx, list, opts...)
}

func (c *caches) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (c *caches) WaitForCacheSync(context.Context) bool { return true }

func (c *caches) key(o client.Object) kindKey {
	kind, err := apiutil.GVKForObject(o, c.scheme)
	if err != nil {
		c.Fatal(err)
	}
	_, untyped := o.(runtime.Unstructured)
	return kindKey{kind, untyped}
}

func (c *caches) GetInformer(ctx context.Context, o client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	kind := c.informer(o)
	var options cache.InformerGetOptions
	for _, f := range opts {
		f(&options)
	}
	if options.BlockUntilSynced == nil || *options.BlockUntilSynced {
		if !toolscache.WaitForCacheSync(ctx.Done(), kind.HasSynced) {
			return nil, ctx.Err()
		}
	}
	return kind, nil
}

func (c *caches) informer(o client.Object) *oneKind {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := c.key(o)
	if known := c.informers[key]; known != nil {
		return known
	}
	ctx, stop := context.WithCancel(c.ctx)
	kind := &oneKind{toolscache.NewSharedIndexInformer(c.listWatch(key, o), o, 0, toolscache.Indexers{}), stop}
	c.informers[key] = kind
	c.running.Go(func() { kind.RunWithContext(ctx) })
	return kind
}

func (c *caches) GetInformerForKind(context.Context, schema.GroupVersionKind, ...cache.InformerGetOption) (cache.Informer, error) {
	return nil, errors.ErrUnsupported
}

func (c *caches) RemoveInformer(_ context.Context, o client.Object) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := c.key(o)
	if kind := c.informers[key]; kind != nil {
		kind.stop()
	}
	delete(c.informers, key)
	return nil
}

func (c *caches) IndexField(_ context.Context, o client.Object, field string, index client.IndexerFunc) error {
	return c.informer(o).AddIndexers(toolscache.Indexers{"field:" + field: func(item any) ([]string, error) {
		return index(item.(client.Object)), nil
	}})
}

// listing sets whether a kind can be listed from now on.
func (c *caches) listing(kind string, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unlisted[kind] = why
}

// watched returns the kinds that there are informers of.
func (c *caches) watched() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var kinds []string
	for key := range maps.Keys(c.informers) {
		kinds = append(kinds, key.kind.Kind)
	}
	slices.Sort(kinds)
	return strings.Join(kinds, " ")
}

// listWatcher lists and watches through the fake client, which cannot stream lists.
type listWatcher struct{ toolscache.ListWatch }

func (*listWatcher) IsWatchListSemanticsUnSupported() bool { return true }

func (c *caches) listWatch(key kindKey, o client.Object) toolscache.ListerWatcher {
	list := func() client.ObjectList {
		r := watching.Resource{Kind: key.kind}
		if key.unstructured {
			return r.NewList()
		}
		made, err := c.scheme.New(key.kind.GroupVersion().WithKind(key.kind.Kind + "List"))
		if err != nil {
			c.Fatalf("%T: %v", o, err)
		}
		return made.(client.ObjectList)
	}
	return &listWatcher{toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			c.mu.Lock()
			why := c.unlisted[key.kind.Kind]
			c.mu.Unlock()
			if why != nil {
				return nil, why
			}
			into := list()
			return into, c.client.List(ctx, into)
		},
		WatchFuncWithContext: func(ctx context.Context, _ metav1.ListOptions) (apiwatch.Interface, error) {
			changes, err := c.client.Watch(ctx, list())
			if err != nil || !key.unstructured {
				return changes, err
			}
			return apiwatch.Filter(changes, func(e apiwatch.Event) (apiwatch.Event, bool) { // the fake client sends typed objects
				fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(e.Object)
				o := &unstructured.Unstructured{Object: fields}
				o.SetGroupVersionKind(key.kind)
				e.Object = o
				return e, err == nil
			}), nil
		},
	}}
}

// forbidden is what the API server says to somebody without rights.
func forbidden() error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New("no list"))
}

// settle waits until nothing moves, and lets d pass before that.
func settle(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // time is that of the bubble
	synctest.Wait()
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
}
