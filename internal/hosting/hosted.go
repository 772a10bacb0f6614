package hosting

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/cairn-dev/cairn/api/cairn/v1alpha1"
	"github.com/cairn-dev/cairn/internal/watching"
)

// This file runs one hosted controller, from build to close.

// syncTimeout is how long a start waits until everything that it watches is listed. Lists that succeeded are kept, so
// that the next attempt is shorter.
const syncTimeout = time.Minute

// phase is the state of a hosted controller.
type phase string

const (
	// starting: it is built, or what it watches is listed.
	starting phase = "starting"
	// running: passes are run.
	running phase = "running"
	// ended: it does not run any more.
	ended phase = "ended"
)

// hosted is the controller of one object, as the object was when it was built. It may end and be launched again.
type hosted[T client.Object] struct {
	supervisor *supervisor[T]
	object     T
	key        types.NamespacedName

	mu sync.Mutex
	// phase is its state, which began at since; err is why it ended last time, delay how long it then stays ended. unbuilt
	// is true if err is the error of its build.
	phase   phase
	since   time.Time
	err     error
	delay   time.Duration
	unbuilt bool
	// sources are its watches, denials its passes that lack a permission.
	sources *sources
	denials *denials
	// cancel ends it. stopping is set once cancel was called, lost if a kind that cannot be watched was the reason.
	cancel   context.CancelFunc
	stopping bool
	lost     error

	// told is what report wrote last.
	told told
}

// state is what report needs to know.
type state struct {
	phase phase
	since time.Time
	// err is why it ended last time or, while it runs, the permission that it lacks. While it starts,
	// waiting names the resource that is not listed yet.
	err, waiting error
	delay        time.Duration
}

func (h *hosted[T]) state() state {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := state{phase: h.phase, since: h.since, err: h.err, delay: h.delay}
	if h.phase == starting && h.sources != nil {
		s.waiting = h.sources.waiting()
	}
	if h.phase == running {
		s.err = h.denials.reported()
	}
	return s
}

// runs reports whether it is the controller that o describes, with the rights that o says.
func (h *hosted[T]) runs(o T) bool {
	account := func(o T) string { return o.GetAnnotations()[v1alpha1.ServiceAccountAnnotation] }
	return h.object.GetUID() == o.GetUID() && h.object.GetGeneration() == o.GetGeneration() && account(h.object) == account(o)
}

// launch starts it in the background, as o describes it now: what was written on o meanwhile is no news for a build. It
// must not be there already.
func (h *hosted[T]) launch(o T) {
	s := h.supervisor
	h.object = o
	ctx, cancel := context.WithCancel(watching.WithLoss(s.root, h.lose))
	h.mu.Lock()
	h.phase, h.since, h.cancel, h.sources, h.lost = starting, s.Clock.Now(), cancel, nil, nil
	h.mu.Unlock()
	s.running.Go(func() {
		err := watching.Guarded(ctx, func() error { return h.run(ctx) })
		cancel() // ends its watches
		h.mu.Lock()
		if h.phase == running {
			h.delay = 0
		}
		h.delay = min(max(2*h.delay, firstAttempt), lastAttempt)
		if h.lost != nil {
			err = h.lost
		}
		if same, ok := errors.AsType[*watching.LostError](err); ok {
			err = same // whether a probe found it, or the next attempt
		}
		h.phase, h.since, h.err, h.unbuilt = ended, s.Clock.Now(), err, h.sources == nil
		h.mu.Unlock()
		h.look()
	})
}

// end ends it, and reports whether it has ended already.
func (h *hosted[T]) end() bool {
	h.mu.Lock()
	gone, told := h.phase == ended, h.stopping
	h.stopping = true
	h.cancel()
	h.mu.Unlock()
	s := h.supervisor
	switch {
	case !gone && !told:
		s.eventf(h.object, corev1.EventTypeNormal, "Stopping", "Stopping %s: %s", s.Noun, h.key.Name)
	case gone && told:
		s.eventf(h.object, corev1.EventTypeNormal, "Stopped", "Stopped %s: %s", s.Noun, h.key.Name)
	}
	return gone
}

// lose ends it, if it runs, because a kind that it watches cannot be watched any more. Its caches are stale, and it
// must not act on them. It is started again like one that could not be started.
func (h *hosted[T]) lose(why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.phase == running && h.lost == nil {
		h.lost = why
		h.cancel()
	}
}

// up notes that passes are run from now on.
func (h *hosted[T]) up() {
	s := h.supervisor
	h.mu.Lock()
	h.phase, h.since = running, s.Clock.Now()
	h.mu.Unlock()
	s.eventf(h.object, corev1.EventTypeNormal, "Started", "Started %s: %s", s.Noun, h.key.Name)
	h.look()
}

// look has the supervisor look at it again.
func (h *hosted[T]) look() { h.supervisor.queue.Add(reconcile.Request{NamespacedName: h.key}) }

// run builds the controller and runs it until ctx ends.
func (h *hosted[T]) run(ctx context.Context) error {
	s := h.supervisor
	name := s.name(h.key)
	ctx = log.IntoContext(ctx, s.log.WithValues("controller", name))
	built, err := s.Build(ctx, h.object)
	if err != nil {
		return err
	}
	if built.Close != nil {
		defer built.Close()
	}
	watched := &sources{all: built.Sources, up: h.up}
	denied := &denials{Reconciler: built.Reconciler, of: map[reconcile.Request]error{}, changed: h.look}
	built.Reconciler = denied
	h.built(watched, denied)
	c, err := s.Host.running(name, built, watched, s.log)
	if err != nil {
		return err
	}
	err = c.Start(ctx)
	if why := watched.failure(); why != nil {
		return why // without what controller-runtime says around it
	}
	return err
}

// Running returns what runs a built controller, for callers that start, end and close it themselves: a simulation, say.
// [Supervise] does all of that. name is that of the controller in logs and metrics. The error is that of
// controller-runtime about its options, and a mistake of the caller.
func (h *Host) Running(name string, built *Controller, l logr.Logger) (controller.Controller, error) {
	return h.running(name, built, &sources{all: built.Sources, up: func() {}}, l)
}

func (h *Host) running(name string, built *Controller, watched *sources, l logr.Logger) (controller.Controller, error) {
	limiter := built.Limiter
	if limiter == nil {
		limiter = workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](FirstRetry, LastRetry)
	}
	c, err := controller.NewUnmanaged(name, controller.Options{
		Reconciler:              built.Reconciler,
		MaxConcurrentReconciles: h.Workers,
		RateLimiter:             limiter,
		CacheSyncTimeout:        syncTimeout,
		RecoverPanic:            new(true),
		SkipNameValidation:      new(true), // its successor has its name
		Logger:                  l,
	})
	if err != nil {
		return nil, err
	}
	return c, c.Watch(watched)
}

// built sets its watches and its denials. The error of an earlier build is no longer reported.
func (h *hosted[T]) built(s *sources, d *denials) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sources, h.denials = s, d
	if h.unbuilt {
		h.err = nil
	}
}

// sources are several sources as one. controller-runtime starts each source in a goroutine of its own, where a panic
// would end the process, and gives no signal when the last one has started.
type sources struct {
	all []source.Source
	// up is called when the handlers have got everything that exists.
	up func()

	mu      sync.Mutex
	started []source.Source
	err     error
}

// String names the sources in logs.
func (s *sources) String() string { return fmt.Sprint(s.all) }

// Start starts all of them.
func (s *sources) Start(ctx context.Context, q watching.Queue) error {
	return s.note(watching.Guarded(ctx, func() error {
		for _, src := range s.all {
			if err := src.Start(ctx, q); err != nil {
				return err
			}
			s.mu.Lock()
			s.started = append(s.started, src)
			s.mu.Unlock()
		}
		return nil
	}))
}

// WaitForSync waits for those that can be waited for.
func (s *sources) WaitForSync(ctx context.Context) error {
	return s.note(watching.Guarded(ctx, func() error {
		for _, src := range s.all {
			if src, ok := src.(source.SyncingSource); ok {
				if err := src.WaitForSync(ctx); err != nil {
					return err
				}
			}
		}
		s.up()
		return nil
	}))
}

// note keeps why they could not be started.
func (s *sources) note(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	return err
}

func (s *sources) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// waiting returns what one of the started sources is waiting for, nil if none is.
func (s *sources) waiting() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, src := range s.started {
		if src, ok := src.(interface{ Waiting() error }); ok {
			if err := src.Waiting(); err != nil {
				return err
			}
		}
	}
	return nil
}
