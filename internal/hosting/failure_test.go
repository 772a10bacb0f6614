package hosting

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/watching"
)

// This file starts controllers that cannot be started, and breaks them in all places where they can break.

// TestABuildIsTriedWithTheObjectAsItIs: what its condition says was written meanwhile, so that a build which writes on
// the object needs its new version.
func TestABuildIsTriedWithTheObjectAsItIs(t *testing.T) {
	inWorld(t, func(w *world) {
		var mu sync.Mutex
		version := ""
		w.host(func(h *hosting) {
			h.build = func(_ context.Context, c *v1alpha1.CompositeController) error {
				mu.Lock()
				defer mu.Unlock()
				version = c.ResourceVersion
				return errors.New("not yet")
			}
		})
		o := w.describe("one")
		settle(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if err := w.client.Get(w.ctx, client.ObjectKeyFromObject(o), o); err != nil || version != o.ResourceVersion || w.written() == 0 {
			t.Errorf("it was tried with version %s of %s (%v)", version, o.ResourceVersion, err)
		}
	})
}

func TestBuildThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		panics bool
		ready  string
	}{
		"not served": {
			err:   fmt.Errorf("find: %w", &meta.NoResourceMatchError{PartialResource: schema.GroupVersionResource{Resource: "cats"}}),
			ready: "False ResourceNotServed: find: no matches for /, Resource=cats",
		},
		"its own word": {err: &Error{Reason: "InvalidSpec", Err: errors.New("no selector")}, ready: "False InvalidSpec: no selector"},
		"anything":     {err: errors.New("no idea"), ready: "False CreateError: no idea"},
		"a panic":      {panics: true, ready: "False CreateError: panic: nil map"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				var mu sync.Mutex
				var attempts []time.Time
				var works atomic.Bool
				h := w.host(func(h *hosting) {
					h.build = func(context.Context, *v1alpha1.CompositeController) error {
						mu.Lock()
						attempts = append(attempts, time.Now())
						mu.Unlock()
						switch {
						case works.Load():
							return nil
						case c.panics:
							panic("nil map")
						}
						return c.err
					}
				})
				o := w.describe("one")
				settle(10 * time.Minute)
				if got := w.ready(o); !strings.HasPrefix(got, c.ready) {
					t.Errorf("%q, not %q", got, c.ready)
				}
				if got := w.happened(); got != "Starting CreateError" {
					t.Error(got)
				}
				if written := w.written(); written != 1 {
					t.Errorf("one failure, %d writes", written)
				}
				mu.Lock()
				before := len(attempts)
				var waits []time.Duration
				for i := range attempts[1:] {
					waits = append(waits, attempts[i+1].Sub(attempts[i]))
				}
				s := time.Second
				if want := []time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 30 * s, 30 * s}; !slices.Equal(waits[:len(want)], want) {
					t.Errorf("tried again after %s", waits)
				}

				mu.Unlock()

				// An edit is tried at once.
				w.edit(o)
				settle(0)
				mu.Lock()
				if len(attempts) != before+1 {
					t.Errorf("an edit was tried %d times", len(attempts)-before)
				}
				mu.Unlock()
				works.Store(true)
				settle(2 * time.Second)
				if got := w.ready(o); got != "True Running: the controller runs" || h.alive.Load() != 1 {
					t.Error(got)
				}
			})
		})
	}
}

// TestBuildSucceedsAtLast: once the controller is built, the error of the last attempt is not reported, also while the
// controller waits for a list.
func TestBuildSucceedsAtLast(t *testing.T) {
	inWorld(t, func(w *world) {
		w.caches.listing("Secret", forbidden())
		var works atomic.Bool
		w.host(func(h *hosting) {
			h.sources = []source.Source{&watching.Events{Cache: h.host.Cache, Object: secretResource.New(), Handler: handler.Funcs{}}}
			h.build = func(context.Context, *v1alpha1.CompositeController) error {
				if works.Load() {
					return nil
				}
				return errors.New("no account")
			}
		})
		c := w.describe("one")
		settle(2 * startTimeout)
		if got := w.ready(c); got != "False CreateError: no account" {
			t.Error(got)
		}
		works.Store(true)
		settle(10 * time.Second)
		if got := w.ready(c); got != "False Starting: Secret of v1: its objects could not be listed yet" {
			t.Error(got)
		}
	})
}

func TestKindThatCannotBeListed(t *testing.T) {
	inWorld(t, func(w *world) {
		w.caches.listing("Secret", forbidden())
		h := w.host(func(h *hosting) {
			h.sources = []source.Source{&watching.Events{Cache: h.host.Cache, Object: secretResource.New(), Handler: handler.Funcs{}}}
		})
		c := w.describe("one")
		settle(2 * startTimeout)
		if got := w.ready(c); got != "False Starting: Secret of v1: its objects could not be listed yet" {
			t.Error(got)
		}
		settle(syncTimeout - startTimeout)
		if got := w.ready(c); got != "False ResourceNotListed: Secret of v1: its objects could not be listed yet" {
			t.Error(got)
		}
		if h.passed() != "" {
			t.Error("passes over half of what there is")
		}
		if h.closed.Load() != 1 {
			t.Error("it was not closed")
		}
		// The next attempts say nothing new.
		settle(10 * syncTimeout)
		if closed, written := h.closed.Load(), w.written(); closed < 5 || written != 2 {
			t.Errorf("%d attempts, %d writes", closed, written)
		}
		if got := w.happened(); got != "Starting CreateError" {
			t.Error(got)
		}
		w.caches.listing("Secret", nil)
		settle(2 * syncTimeout)
		if got := w.ready(c); got != "True Running: the controller runs" {
			t.Error(got)
		}
	})
}

// TestPanics: none of them ends the process, and each is told where it belongs.
func TestPanics(t *testing.T) {
	boom := func() { panic("boom") }
	t.Run("in a pass", func(t *testing.T) {
		inWorld(t, func(w *world) {
			h := w.host(func(h *hosting) {
				h.pass = func(_ context.Context, req reconcile.Request) error {
					if req.Name == "bad" {
						boom()
					}
					return nil
				}
			})
			for _, name := range []string{"bad", "good"} { // before it lists: the fake client's watches begin later than their lists
				if err := w.client.Create(w.ctx, configMap(name)); err != nil {
					t.Fatal(err)
				}
			}
			w.describe("one")
			settle(time.Hour)
			passes := h.passed()
			if !strings.Contains(passes, "good@1") || strings.Count(passes, "bad@1") < 60 {
				t.Error(passes)
			}
			// It is retried after a minute at the latest, and not after a quarter of an hour.
			last := h.times[len(h.times)-2:]
			if wait := last[1].Sub(last[0]); wait != time.Minute {
				t.Errorf("it is retried after %s", wait)
			}
		})
	})
	for name, c := range map[string]struct {
		source source.Source
		ready  string
	}{
		"when a source starts": {source.Func(func(context.Context, watching.Queue) error { boom(); return nil }), "False CreateError: panic: boom"},
		"when it is synced":    {unsyncable{boom}, "False CreateError: "},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				h := w.host(func(h *hosting) { h.sources = []source.Source{c.source} })
				o := w.describe("one")
				settle(0)
				if got := w.ready(o); !strings.HasPrefix(got, c.ready) || !strings.Contains(got, "panic: boom") {
					t.Error(got)
				}
				if h.alive.Load() != 0 {
					t.Error("it was not closed")
				}
			})
		})
	}
	t.Run("when it is closed", func(t *testing.T) {
		inWorld(t, func(w *world) {
			if err := Supervise(w, w.shared(nil), kind(func(context.Context, *v1alpha1.CompositeController) (*Controller, error) {
				return &Controller{Reconciler: reconcile.Func(nil), Close: boom}, nil
			})); err != nil {
				t.Fatal(err)
			}
			c := w.describe("one")
			settle(time.Second)
			w.edit(c)
			settle(0)
			if got := w.happened(); got != "Starting Started Stopping Stopped Starting Started" {
				t.Error(got)
			}
		})
	})
}

// unsyncable is a source that cannot be waited for.
type unsyncable struct{ wait func() }

func (unsyncable) Start(context.Context, watching.Queue) error { return nil }

func (u unsyncable) WaitForSync(context.Context) error { u.wait(); return nil }

func TestStatusThatCannotBeWritten(t *testing.T) {
	inWorld(t, func(w *world) {
		w.refuse = errors.New("the API server is away")
		h := w.host()
		c := w.describe("one")
		settle(time.Second)
		if h.alive.Load() != 1 {
			t.Error("it does not run because nobody can be told")
		}
		w.mu.Lock()
		w.refuse = nil
		w.mu.Unlock()
		settle(time.Minute)
		if got := w.ready(c); got != "True Running: the controller runs" {
			t.Error(got)
		}
	})
}

// TestStatusThatIsNotKept: Metacontroller's CRDs have no such fields, and nothing is written over and over for that.
func TestStatusThatIsNotKept(t *testing.T) {
	inWorld(t, func(w *world) {
		w.prune = true
		w.host(func(h *hosting) {
			h.build = func(context.Context, *v1alpha1.CompositeController) error { return errors.New("no idea") }
		})
		w.describe("one")
		settle(time.Hour)
		if written := w.written(); written != 1 || w.happened() != "Starting CreateError" {
			t.Errorf("%d writes, events %s", written, w.happened())
		}
	})
}

// TestStatusOfAnotherObjectIsNotWritten: the patch names the UID that was read, so that a successor is not told of it.
func TestStatusOfAnotherObjectIsNotWritten(t *testing.T) {
	inWorld(t, func(w *world) {
		w.host()
		c := w.describe("one")
		settle(0)
		if w.written() != 1 || !strings.Contains(w.statuses[0], fmt.Sprintf(`"metadata":{"uid":%q}`, c.UID)) {
			t.Errorf("%q", w.statuses)
		}
	})
}
