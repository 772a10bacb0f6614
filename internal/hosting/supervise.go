package hosting

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/cairn-dev/cairn/internal/watching"
)

// This file decides which controllers run: one for each object that describes one. hosted.go runs one of them,
// report.go writes its condition.

const (
	// FirstRetry is how long a pass that failed waits for the next one, twice as long after every further failure.
	FirstRetry = 5 * time.Millisecond
	// LastRetry is the longest that it waits.
	LastRetry = time.Minute
	// firstAttempt and lastAttempt bound the same for a controller that could not be started: its CRD may come.
	firstAttempt, lastAttempt = time.Second, 30 * time.Second
	// startTimeout is how long a start may take before its condition says that it is waiting.
	startTimeout = time.Second
	// pollInterval is how often a start that takes longer is checked.
	pollInterval = 5 * time.Second
	// maxConcurrentStarts is how many controllers are started and stopped at once. None waits for another.
	maxConcurrentStarts = 4
)

// Build makes the controller that an object describes. It does not start anything that outlives ctx, which ends when
// the controller is to stop. An error is shown in the object's condition; an [Error] says with which reason. The object
// comes from a cache and may not be changed. A build is tried again, so it leaves nothing behind when it fails.
type Build[T client.Object] func(ctx context.Context, o T) (*Controller, error)

// Controller is a hosted controller that was not started yet.
type Controller struct {
	// Reconciler runs passes over parents.
	Reconciler reconcile.Reconciler
	// Limiter says when a failed pass is retried. Nil doubles the delay from [FirstRetry] to [LastRetry].
	Limiter workqueue.TypedRateLimiter[reconcile.Request]
	// Sources enqueue parents, until the context that they are started with ends. Use [watching.Events] for objects.
	Sources []source.Source
	// Close is called once, after the last pass has ended. It may be nil.
	Close func()
}

// Error is an error of a [Build] with a reason for the condition.
type Error struct {
	// Reason is one word in CamelCase.
	Reason string
	// Event is the reason of the event; empty is [CreateError].
	Event string
	Err   error
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// Host is what all hosted controllers of a manager share.
type Host struct {
	// Server is the API server, with the clock of all.
	*watching.Server

	// Recorder sends events about the objects that describe controllers.
	Recorder events.EventRecorder
	// Workers is how many parents each hosted controller reconciles at once.
	Workers int
}

// Kind is a kind whose objects each describe a controller. All fields are required, except Selector and Known.
type Kind[T client.Object] struct {
	// Name is that of the supervisor in logs and metrics.
	Name string
	// Noun is what a hosted controller is called in events: "Starting controller: web".
	Noun string
	// Selector narrows the objects whose controllers are run, by their labels. Nil selects all.
	Selector labels.Selector
	// Status returns the status of an object, of which this package writes both.
	Status func(o T) Status
	// Build makes the controller of an object.
	Build Build[T]
	// Known is what whoever looks at the condition of an object should know while its controller runs. Nil says nothing
	// more.
	Known func(o T) string
}

// Status is what the status of an object says of its controller. Other fields of the status are left alone.
type Status struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// Supervise adds to mgr what runs a controller for each object of a kind. A controller is restarted when the object's
// generation or UID changes, stopped when the object is deleted, and started again, with a growing delay, when it could
// not be started. Conditions and events of the object say so. Two controllers of one object never run at once. It
// returns an error if mgr's scheme does not know the kind.
func Supervise[T client.Object](mgr ctrl.Manager, host *Host, of Kind[T]) error {
	kind, err := apiutil.GVKForObject(newObject[T](), mgr.GetScheme())
	if err != nil {
		return err
	}
	s := &supervisor[T]{
		Host: host, Kind: of, kind: kind.Kind, reader: mgr.GetCache(), log: mgr.GetLogger(),
		hosted: map[types.NamespacedName]*hosted[T]{},
	}
	options := controller.Options{
		Reconciler:              s,
		MaxConcurrentReconciles: maxConcurrentStarts,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](FirstRetry, LastRetry),
		RecoverPanic:            new(true),
	}
	options.DefaultFromConfig(mgr.GetControllerOptions())
	s.controller, err = controller.NewUnmanaged(of.Name, options)
	if err != nil {
		return err
	}
	for _, src := range []source.Source{
		source.Func(s.begin),
		source.Kind(mgr.GetCache(), client.Object(newObject[T]()), &handler.EnqueueRequestForObject{}),
	} {
		if err := s.controller.Watch(src); err != nil {
			return err
		}
	}
	return mgr.Add(s)
}

// newObject returns an empty object of a type that is a pointer.
func newObject[T client.Object]() T {
	return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
}

// supervisor runs the controllers of all objects of a kind. Its own passes never wait for a hosted controller: one that
// has started or ended enqueues its object.
type supervisor[T client.Object] struct {
	*Host
	Kind[T]

	kind       string
	reader     client.Reader
	log        logr.Logger
	controller controller.Controller

	// root ends when the supervisor does; queue is its own. Both are set before the first pass.
	root  context.Context //nolint:containedctx // a hosted controller outlives the pass that starts it
	queue watching.Queue
	// running counts what has not ended yet.
	running sync.WaitGroup

	mu     sync.Mutex
	hosted map[types.NamespacedName]*hosted[T]
}

// Start runs the supervisor until ctx ends, and returns when all hosted controllers have ended.
func (s *supervisor[T]) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer s.running.Wait()
	defer cancel() // hosted controllers must end as well if this one cannot go on
	return s.controller.Start(ctx)
}

// begin is the source that gets our own queue, to enqueue objects by ourselves.
func (s *supervisor[T]) begin(ctx context.Context, q watching.Queue) error {
	s.root, s.queue = ctx, q
	return nil
}

// Reconcile makes the controller of one object run as the object is now.
func (s *supervisor[T]) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	o := newObject[T]()
	err := s.reader.Get(ctx, req.NamespacedName, o)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	wanted := err == nil && (s.Selector == nil || s.Selector.Matches(labels.Set(o.GetLabels())))
	h := s.of(req.NamespacedName)
	if h != nil && (!wanted || !h.runs(o)) {
		if !h.end() {
			return reconcile.Result{}, nil // its end enqueues the object
		}
		s.forget(req.NamespacedName)
		if !wanted {
			forgetSeries(s.name(req.NamespacedName))
		}
		h = nil
	}
	if !wanted {
		return reconcile.Result{}, nil
	}
	if h == nil {
		h = s.host(o) //nolint:contextcheck // a hosted controller outlives the pass that starts it
	}
	return s.look(ctx, h, o)
}

// look reports the state of the controller of o, and starts it again if it could not be started.
func (s *supervisor[T]) look(ctx context.Context, h *hosted[T], o T) (reconcile.Result, error) {
	now := h.state()
	age := s.Clock.Since(now.since)
	var again time.Duration
	switch now.phase {
	case running:
	case starting:
		if age < startTimeout {
			return reconcile.Result{RequeueAfter: startTimeout - age}, nil
		}
		again = pollInterval // it may be waiting for something else then
	case ended:
		if age >= now.delay {
			h.launch(o) //nolint:contextcheck // as above
			return reconcile.Result{RequeueAfter: startTimeout}, nil
		}
		again = now.delay - age
	}
	return reconcile.Result{RequeueAfter: again}, s.report(ctx, h, o, now)
}

func (s *supervisor[T]) of(key types.NamespacedName) *hosted[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hosted[key]
}

func (s *supervisor[T]) forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.hosted, key)
}

// host starts a controller for o.
func (s *supervisor[T]) host(o T) *hosted[T] {
	h := &hosted[T]{supervisor: s, key: client.ObjectKeyFromObject(o)}
	s.mu.Lock()
	s.hosted[h.key] = h
	s.mu.Unlock()
	s.eventf(o, corev1.EventTypeNormal, "Starting", "Starting %s: %s", s.Noun, o.GetName())
	h.launch(o)
	return h
}

// name is that of a hosted controller in metrics and logs, as Metacontroller has it.
func (s *supervisor[T]) name(key types.NamespacedName) string {
	return fmt.Sprintf("%s-%s", s.kind, key.Name)
}
