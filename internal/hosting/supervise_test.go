package hosting

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	cairn "github.com/cairn-dev/cairn/api/cairn/v1alpha1"
	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/watching"
)

// hosting is a supervisor in a world, of controllers whose parents are ConfigMaps.
type hosting struct {
	*world

	host *Host
	// selector narrows the controllers.
	selector labels.Selector
	// build, pass and sources, if they are set, happen within the real ones.
	build   func(ctx context.Context, c *v1alpha1.CompositeController) error
	pass    func(ctx context.Context, req reconcile.Request) error
	sources []source.Source

	built, alive, closed atomic.Int32
	mu                   sync.Mutex
	passes               []string
	times                []time.Time
}

// host starts a supervisor.
func (w *world) host(change ...func(*hosting)) *hosting {
	w.Helper()
	h := &hosting{world: w, host: w.shared(nil)}
	for _, f := range change {
		f(h)
	}
	of := kind(h.make)
	of.Selector = h.selector
	if err := Supervise(w, h.host, of); err != nil {
		w.Fatal(err)
	}
	settle(time.Second) // controller-runtime asks ten times a second whether there is something to watch
	return h
}

func (h *hosting) make(ctx context.Context, c *v1alpha1.CompositeController) (*Controller, error) {
	if h.build != nil {
		if err := h.build(ctx, c); err != nil {
			return nil, err
		}
	}
	h.built.Add(1)
	if h.alive.Add(1) > 1 && c.Name == "one" {
		h.Error("two controllers of one object at once")
	}
	generation := c.Generation
	return &Controller{
		Reconciler: reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			h.mu.Lock()
			h.passes = append(h.passes, fmt.Sprintf("%s@%d", req.Name, generation))
			h.times = append(h.times, time.Now())
			h.mu.Unlock()
			if h.pass != nil {
				return reconcile.Result{}, h.pass(ctx, req)
			}
			return reconcile.Result{}, nil
		}),
		Sources: append([]source.Source{
			&watching.Events{Cache: h.host.Cache, Object: configMap(""), Handler: &handler.EnqueueRequestForObject{}},
		}, h.sources...),
		Close: func() {
			h.alive.Add(-1)
			h.closed.Add(1)
		},
	}, nil
}

// passed returns the passes since it was asked last.
func (h *hosting) passed() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := strings.Join(h.passes, ", ")
	h.passes = nil
	return out
}

func TestHostedControllerLives(t *testing.T) {
	inWorld(t, func(w *world) {
		h := w.host()
		if err := w.client.Create(w.ctx, configMap("a")); err != nil {
			t.Fatal(err)
		}
		c := w.describe("one")
		settle(startTimeout / 2)
		if got := h.passed(); got != "a@1" {
			t.Error(got)
		}
		if got := w.ready(c); got != "True Running: the controller runs" {
			t.Error(got)
		}

		// What is no part of the spec starts nothing, and is not answered with a write.
		w.change(c, func(c *v1alpha1.CompositeController) { c.Annotations = map[string]string{"a": "b"} })
		settle(time.Hour)
		if built, written := h.built.Load(), w.written(); built != 1 || written != 1 {
			t.Errorf("built %d times, written %d times", built, written)
		}

		w.edit(c)
		settle(0)
		if got := h.passed(); got != "a@2" {
			t.Error(got)
		}
		if got := w.ready(c); got != "True Running: the controller runs" || w.written() != 2 {
			t.Errorf("%s, written %d times", got, w.written())
		}

		// Another object of the same name is another controller.
		w.remove(c)
		settle(0)
		if h.alive.Load() != 0 {
			t.Error("it outlives its object")
		}
		c = w.describe("one")
		settle(0)
		w.change(c, func(c *v1alpha1.CompositeController) { c.UID = "another" })
		settle(0)
		if got := h.passed(); got != "a@1, a@1" {
			t.Error(got)
		}
		const life = "Starting Started Stopping Stopped "
		if got := w.happened(); got != life+life+life+"Starting Started" {
			t.Error(got)
		}
		if built, closed := h.built.Load(), h.closed.Load(); built != 4 || closed != 3 {
			t.Errorf("built %d times, closed %d times", built, closed)
		}
	})
}

// TestNextControllerWaitsForTheLastPass: while a pass of the old one runs, the new one is not even built; if there are
// several edits meanwhile, only the last one counts.
func TestNextControllerWaitsForTheLastPass(t *testing.T) {
	inWorld(t, func(w *world) {
		var passing atomic.Int32
		release := make(chan struct{})
		h := w.host(func(h *hosting) {
			h.pass = func(ctx context.Context, _ reconcile.Request) error {
				if passing.Add(1) > 1 {
					t.Error("two passes over one parent at once")
				}
				defer passing.Add(-1)
				<-ctx.Done()
				<-release // a write is under way
				return ctx.Err()
			}
		})
		if err := w.client.Create(w.ctx, configMap("a")); err != nil {
			t.Fatal(err)
		}
		c := w.describe("one")
		settle(0)
		w.edit(c)
		settle(time.Minute)
		w.edit(c)
		settle(time.Minute)
		if built := h.built.Load(); built != 1 {
			t.Errorf("built %d times while a pass ran", built)
		}
		close(release)
		settle(0)
		if got := h.passed(); got != "a@1, a@3" {
			t.Error(got)
		}
		if got := w.happened(); got != "Starting Started Stopping Stopped Starting Started" {
			t.Error(got)
		}
	})
}

// TestOneControllerDoesNotWaitForAnother: neither for one that is built for ever, nor for one whose kind cannot be
// listed.
func TestOneControllerDoesNotWaitForAnother(t *testing.T) {
	inWorld(t, func(w *world) {
		w.caches.listing("Secret", forbidden())
		var blocked atomic.Int32
		h := w.host(func(h *hosting) {
			h.build = func(ctx context.Context, c *v1alpha1.CompositeController) error {
				if strings.HasPrefix(c.Name, "slow") {
					blocked.Add(1)
					<-ctx.Done()
					return ctx.Err()
				}
				return nil
			}
		})
		for i := range 2 * maxConcurrentStarts {
			w.describe(fmt.Sprint("slow", i))
		}
		settle(0)
		c := w.describe("one")
		settle(0)
		if got := w.ready(c); got != "True Running: the controller runs" || blocked.Load() != 2*maxConcurrentStarts {
			t.Errorf("%s beside %d", got, blocked.Load())
		}
		slow := &v1alpha1.CompositeController{}
		slow.Name = "slow0"
		settle(startTimeout)
		if got := w.ready(slow); got != "False Starting: the controller is being built" {
			t.Error(got)
		}
		if h.alive.Load() != 1 {
			t.Error("it is there before it was built")
		}
	})
}

func TestControllersAreSelected(t *testing.T) {
	inWorld(t, func(w *world) {
		h := w.host(func(h *hosting) { h.selector = labels.SelectorFromSet(labels.Set{"mine": "true"}) })
		c := w.describe("one")
		settle(0)
		if h.built.Load() != 0 {
			t.Error("it runs one that it was not to run")
		}
		w.change(c, func(c *v1alpha1.CompositeController) { c.Labels = map[string]string{"mine": "true"} })
		settle(0)
		if h.alive.Load() != 1 {
			t.Error("it does not run one that it was to run")
		}
		w.change(c, func(c *v1alpha1.CompositeController) { c.Labels = nil })
		settle(0)
		if h.alive.Load() != 0 {
			t.Error("it goes on with one that was taken from it")
		}
	})
}

// TestAnotherAccountIsAnotherController: with whose rights it runs is part of what it is.
func TestAnotherAccountIsAnotherController(t *testing.T) {
	inWorld(t, func(w *world) {
		h := w.host()
		c := w.describe("one")
		settle(0)
		for n, account := range []string{"team/a", "team/b"} {
			w.change(c, func(c *v1alpha1.CompositeController) {
				c.Annotations = map[string]string{cairn.ServiceAccountAnnotation: account, "a": "b"}
			})
			settle(time.Hour)
			if built, alive := h.built.Load(), h.alive.Load(); built != int32(n)+2 || alive != 1 {
				t.Errorf("%s: built %d times, %d run", account, built, alive)
			}
		}
	})
}

func TestSupervisorEndsWithItsControllers(t *testing.T) {
	inWorld(t, func(w *world) {
		h := w.host(func(h *hosting) {
			h.pass = func(ctx context.Context, _ reconcile.Request) error {
				<-ctx.Done()
				time.Sleep(100 * time.Millisecond) //nolint:forbidigo // a write that is under way; time is that of the bubble
				return nil
			}
		})
		for i := range 10 {
			w.describe(fmt.Sprint("of-many-", i))
		}
		if err := w.client.Create(w.ctx, configMap("a")); err != nil {
			t.Fatal(err)
		}
		settle(0)
		before := time.Now()
		w.end()
		w.running.Wait()
		if took := time.Since(before); took != 100*time.Millisecond || h.closed.Load() != 10 {
			t.Errorf("%d of 10 have ended after %s", h.closed.Load(), took)
		}
		if got := w.recorder.Events("Stopping"); len(got) != 0 {
			t.Error(got)
		}
	})
}

func TestKindThatTheSchemeDoesNotKnow(t *testing.T) {
	inWorld(t, func(w *world) {
		shared := w.shared(nil)
		w.scheme = runtime.NewScheme()
		err := Supervise(w, shared, kind(func(context.Context, *v1alpha1.CompositeController) (*Controller, error) {
			return nil, errors.ErrUnsupported
		}))
		if err == nil {
			t.Error("no error")
		}
	})
}
