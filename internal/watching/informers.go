package watching

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// This file is the cache of hosted controllers. It is not the manager's: it may be impossible to list what a
// CompositeController names, and a manager whose caches are not filled is not ready. It counts the users of each kind,
// and drops a kind without users.

// linger is how long a kind is watched after its last user ended: an edit of a CompositeController, or a start that
// failed and is retried, then needs no new list.
const linger = 2 * time.Minute

// informers is a cache that counts the users of its informers.
type informers struct {
	cache.Cache

	scheme *runtime.Scheme
	clock  clock.WithTicker
	// begun is called when the cache starts, before its users start, and over when it has ended, after its users have.
	// stopped is closed then.
	begun   func() error
	over    func()
	stopped chan struct{}
	// foreign is true for a cache that the caller runs.
	foreign bool
	// authority is asked about kinds, unless it is nil. namespace is the only one that is watched, or empty.
	authority Authority
	mapper    meta.RESTMapper
	namespace string
	// account is whose rights this has, as an error says it.
	account string

	mu sync.Mutex
	// users are those who need a kind, by the Done channels of their contexts, with the function to call when it cannot be
	// watched any more, if any. Contexts that end together are one.
	users map[informerKey]map[<-chan struct{}]func(error)
	// idle is since when a kind has no users.
	idle map[informerKey]time.Time
	// resources are the kinds in use as they were when their watches began, problems why some cannot be watched any more.
	resources map[informerKey]Resource
	problems  map[informerKey]problem
	// suspected is until when a kind is asked about, because a watch of it has ended.
	suspected map[schema.GroupVersionResource]time.Time
	// failures are the last errors of lists and watches, by what a reflector calls the kind.
	failures map[string]error
}

// informerKey identifies an informer of a cache.
type informerKey struct {
	kind         schema.GroupVersionKind
	unstructured bool
}

func newInformers(o Options, scheme *runtime.Scheme, mapper meta.RESTMapper) (*informers, error) {
	i := &informers{
		Cache:     o.Cache,
		scheme:    scheme,
		account:   cmp.Or(o.Account, "the manager"),
		clock:     o.Clock,
		stopped:   make(chan struct{}),
		begun:     o.Begun,
		over:      o.Over,
		authority: o.Authority,
		mapper:    mapper,
		namespace: o.Namespace,
		users:     map[informerKey]map[<-chan struct{}]func(error){},
		idle:      map[informerKey]time.Time{},
		resources: map[informerKey]Resource{},
		problems:  map[informerKey]problem{},
		suspected: map[schema.GroupVersionResource]time.Time{},
		failures:  map[string]error{},
	}
	if i.Cache != nil {
		i.foreign = true
		return i, nil
	}
	// A selector of the namespace makes lists and watches of that namespace only. controller-runtime's cache for several
	// namespaces would do so, too, but has no single store whose resourceVersion the consistency stores could read.
	var namespace fields.Selector
	if o.Namespace != "" {
		namespace = fields.OneTermEqualSelector("metadata.namespace", o.Namespace)
	}
	var err error
	i.Cache, err = cache.New(o.Config, cache.Options{
		HTTPClient: i.seen(o.HTTPClient),
		Scheme:     scheme,
		Mapper:     mapper,
		// As in the manager's cache: no code changes cached objects or reads managed fields.
		DefaultUnsafeDisableDeepCopy: new(true),
		DefaultTransform:             cache.TransformStripManagedFields(),
		DefaultFieldSelector:         namespace,
		DefaultWatchErrorHandler: func(ctx context.Context, r *toolscache.Reflector, err error) {
			i.failed(r.TypeDescription(), err)
			toolscache.DefaultWatchErrorHandler(ctx, r, err)
		},
	})
	return i, err
}

// seen is a client whose watches this cache sees end.
func (i *informers) seen(by *http.Client) *http.Client {
	if by == nil {
		by = &http.Client{}
	}
	out := *by
	inner := by.Transport
	if inner == nil {
		inner = http.DefaultTransport
	}
	out.Transport = tattling{inner, i.ended}
	return &out
}

// GetCache makes the manager start this before the controllers, and end it after them.
func (i *informers) GetCache() cache.Cache { return i }

// Start runs the cache until ctx ends.
func (i *informers) Start(ctx context.Context) error {
	defer close(i.stopped)
	defer i.over()
	if err := i.begun(); err != nil {
		return err
	}
	if i.authority != nil {
		go i.probe(ctx)
	}
	if i.foreign {
		<-ctx.Done()
		return nil
	}
	return i.Cache.Start(ctx)
}

// GetInformer returns the informer of a kind, and keeps it until ctx ends at least.
func (i *informers) GetInformer(ctx context.Context, o client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	kind, err := apiutil.GVKForObject(o, i.scheme)
	if err != nil {
		return nil, err
	}
	_, unstructured := o.(runtime.Unstructured)
	key := informerKey{kind, unstructured}
	i.hold(ctx, key, o)
	if err := i.problem(key); err != nil {
		return nil, err // its informer is stale
	}
	if err := i.resolve(key); err != nil {
		return nil, err
	}
	return i.Cache.GetInformer(ctx, o, opts...)
}

// resolve notes what a kind is.
func (i *informers) resolve(key informerKey) error {
	if i.authority == nil {
		return nil
	}
	mapping, err := i.mapper.RESTMapping(key.kind.GroupKind(), key.kind.Version)
	if err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, known := i.resources[key]; !known {
		i.resources[key] = Resource{Kind: key.kind, Resource: mapping.Resource, Namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace}
	}
	return nil
}

// problem returns why a kind cannot be watched any more, nil if it can.
func (i *informers) problem(key informerKey) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.problems[key].err
}

// hold keeps a kind until ctx ends; if ctx never ends, for ever.
func (i *informers) hold(ctx context.Context, key informerKey, o client.Object) {
	i.mu.Lock()
	defer i.mu.Unlock()
	users := i.users[key]
	if users == nil {
		users = map[<-chan struct{}]func(error){}
		i.users[key] = users
	}
	end := ctx.Done()
	if _, known := users[end]; known {
		return
	}
	users[end] = lossOf(ctx)
	context.AfterFunc(ctx, func() { //nolint:contextcheck // it has ended
		i.mu.Lock()
		delete(users, end)
		idle := len(users) == 0
		if idle {
			i.idle[key] = i.clock.Now()
		}
		i.mu.Unlock()
		if idle {
			i.dropLater(key, o)
		}
	})
}

// dropLater removes the informer of a kind unless it gets a user again in time.
func (i *informers) dropLater(key informerKey, o client.Object) {
	select {
	case <-i.clock.After(linger):
	case <-i.stopped:
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock() // later users get a new informer
	if users, known := i.users[key]; !known || len(users) > 0 || i.clock.Since(i.idle[key]) < linger {
		return // it is dropped, in use, or was in use meanwhile: then a later call drops it
	}
	delete(i.users, key)
	delete(i.idle, key)
	delete(i.resources, key)
	delete(i.problems, key)
	_ = i.RemoveInformer(context.Background(), o) // fails only for a kind that the scheme does not know
}

func (i *informers) failed(what string, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.failures[what] = err
}

// Failure returns why the last list or watch of a kind failed, nil if that is not known.
func (i *informers) Failure(o client.Object) error {
	what := fmt.Sprintf("%T", o)
	_, unstructured := o.(runtime.Unstructured)
	if unstructured {
		what = o.GetObjectKind().GroupVersionKind().String()
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if kind, err := apiutil.GVKForObject(o, i.scheme); err == nil {
		if problem := i.problems[informerKey{kind, unstructured}]; problem.err != nil {
			return problem.err
		}
	}
	return i.failures[what]
}
