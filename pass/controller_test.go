package pass_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

// When a pass is made again: what each kind of end leads to.

var errBoom = errors.New("boom")

// TestTimerBesideAnError: a pass that fails comes again when its timer says, if that is sooner than the back-off, and
// otherwise when the back-off says.
func TestTimerBesideAnError(t *testing.T) {
	w := newWorld(t, nil, web())
	var timer time.Duration
	w.run = func(_ context.Context, p *pass.Pass) error {
		p.RequeueAfter(timer)
		return errBoom
	}
	var got []time.Duration
	for failure := range 20 {
		if failure == 19 {
			timer = 3 * time.Second
		}
		if result, err := w.reconcile(); !errors.Is(err, errBoom) || result != (reconcile.Result{}) {
			t.Fatalf("%+v, %v", result, err)
		}
		got = append(got, w.c.Limiter().When(request))
	}
	for i, want := range map[int]time.Duration{0: 5 * time.Millisecond, 1: 10 * time.Millisecond, 10: 5120 * time.Millisecond, 18: time.Minute, 19: 3 * time.Second} {
		if got[i] != want {
			t.Errorf("failure %d: again in %s, want %s", i+1, got[i], want)
		}
	}
}

// TestWaitingIsNoSuccess: a pass that waits for a cache, or was dropped, says nothing about the failure before it
// . Only a pass that did all it should ends a failure.
func TestWaitingIsNoSuccess(t *testing.T) {
	w := newWorld(t, nil, web())
	next := func(err error) time.Duration {
		w.run = func(context.Context, *pass.Pass) error { return err }
		result, failed := w.reconcile()
		if failed == nil {
			w.c.Limiter().Forget(request) // as controller-runtime does
			return result.RequeueAfter
		}
		return w.c.Limiter().When(request)
	}
	for i, c := range []struct {
		err  error
		want time.Duration
	}{
		{errBoom, 5 * time.Millisecond},
		{errBoom, 10 * time.Millisecond},
		{fmt.Errorf("pods: %w", ownership.ErrStale), pass.StaleRetry},
		{fmt.Errorf("pods: %w", ownership.ErrStale), 2 * pass.StaleRetry},
		{fmt.Errorf("web: %w", ownership.ErrGone), 0},
		{errBoom, 20 * time.Millisecond},
		{fmt.Errorf("pods: %w", ownership.ErrStale), pass.StaleRetry},
		{nil, 0},
		{errBoom, 5 * time.Millisecond},
	} {
		if got := next(c.err); got != c.want {
			t.Errorf("step %d (%v): again in %s, want %s", i, c.err, got, c.want)
		}
	}
}

// A child that is gone may have made room for another one a moment later, in a quota or on a node: the back-off begins
// anew. One that comes, or changes, is no reason.
func TestBackOffBeginsAnewWhenAChildIsGone(t *testing.T) {
	w := newWorld(t, nil, web())
	w.run = func(context.Context, *pass.Pass) error { return errors.New("refused") }
	fail := func() time.Duration {
		_, _ = w.reconcile()
		return w.c.Limiter().When(request)
	}
	events := w.c.ChildEvents(ownership.Parents{Reader: w.Server, Kind: setKind.GroupKind(), New: w.c.New}.Router())
	for range 19 {
		fail()
	}
	if got := fail(); got != time.Minute {
		t.Errorf("after 20 failures it is made again in %s", got)
	}
	events.Create(t.Context(), event.CreateEvent{Object: pod("a")}, &queue{})
	events.Update(t.Context(), event.UpdateEvent{ObjectOld: pod("a"), ObjectNew: pod("a")}, &queue{})
	if got := fail(); got != time.Minute {
		t.Errorf("after the event of a child that is there it is made again in %s", got)
	}
	events.Delete(t.Context(), event.DeleteEvent{Object: pod("a")}, &queue{})
	for _, want := range []time.Duration{320 * time.Millisecond, 640 * time.Millisecond, 1280 * time.Millisecond} {
		if got := fail(); got != want {
			t.Errorf("after the end of a child it is made again in %s, want %s", got, want)
		}
		events.Delete(t.Context(), event.DeleteEvent{Object: pod("b")}, &queue{}) // soon after the first one
	}
	w.clock.Step(10 * time.Second)
	if got := fail(); got != 320*time.Millisecond {
		t.Errorf("after the end of another child, a while later, it is made again in %s", got)
	}
}

// Runs are deleted all the time, so that their end says nothing.
func TestBackOffGoesOnWhenARunIsGone(t *testing.T) {
	w := newWorld(t, nil, web())
	w.c.Runs = true
	w.run = func(context.Context, *pass.Pass) error { return errors.New("refused") }
	events := w.c.ChildEvents(ownership.Parents{Reader: w.Server, Kind: setKind.GroupKind(), New: w.c.New}.Router())
	for _, want := range []time.Duration{5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond} {
		_, _ = w.reconcile()
		if got := w.c.Limiter().When(request); got != want {
			t.Errorf("it is made again in %s, want %s", got, want)
		}
		events.Delete(t.Context(), event.DeleteEvent{Object: pod("a")}, &queue{})
	}
}

// TestNoteConflict: a pass that another writer was faster than is made again soon, whether it failed or not, and later
// each time.
func TestNoteConflict(t *testing.T) {
	w := newWorld(t, nil, web())
	again := func(overtaken bool, err error) time.Duration {
		w.run = func(_ context.Context, p *pass.Pass) error {
			if overtaken {
				p.NoteConflict()
			}
			return err
		}
		result, failed := w.reconcile()
		if !errors.Is(failed, err) {
			t.Fatal(failed)
		}
		return result.RequeueAfter
	}
	for i, times := range []int{1, 2, 4, 8, 16, 32, 64, 75, 75} {
		if got := again(true, nil); got != time.Duration(times)*pass.StaleRetry {
			t.Errorf("time %d: again in %s", i, got)
		}
	}
	if got := again(false, nil); got != 0 {
		t.Errorf("again in %s", got)
	}
	if got := again(true, nil); got != pass.StaleRetry {
		t.Errorf("again in %s", got)
	}
}

// TestUnseen: no pass is made before the caches show what the last one wrote, and waiting gets longer.
func TestUnseen(t *testing.T) {
	behind := &store{version: "1"}
	w := newWorld(t, map[schema.GroupResource]ownership.Store{podResource: behind}, web())
	w.c.Consistency.WroteAt("web-uid", podResource, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7"}})
	w.run = func(context.Context, *pass.Pass) error {
		t.Error("a pass was made")
		return nil
	}
	for _, times := range []int{1, 2, 4, 8, 16, 32, 50, 50} {
		want := time.Duration(times) * pass.UnseenRetry
		if result, err := w.reconcile(); err != nil || result.RequeueAfter != want {
			t.Errorf("%+v, %v, want %s", result, err, want)
		}
	}
	made := false
	w.run = func(context.Context, *pass.Pass) error { made = true; return nil }
	behind.version = "7"
	if _, err := w.reconcile(); err != nil || !made {
		t.Errorf("no pass was made, %v", err)
	}
}

// TestParentsThatAreDeleted have no passes, unless the controller asks for them.
func TestParentsThatAreDeleted(t *testing.T) {
	gone := web()
	gone.Finalizers, gone.DeletionTimestamp = []string{"example.com/wait"}, &metav1.Time{Time: start}
	for _, asked := range []bool{false, true} {
		w, made := newWorld(t, nil, gone.DeepCopy()), false
		w.c.Deleted = asked
		w.run = func(context.Context, *pass.Pass) error { made = true; return nil }
		if _, err := w.reconcile(); err != nil || made != asked {
			t.Errorf("asked for: %v, made: %v, %v", asked, made, err)
		}
	}
}

// TestForget: nothing is left of a parent that is gone, also if it went while a pass was under way, which went on to
// note things (invariant X1).
func TestForget(t *testing.T) {
	for _, meanwhile := range []bool{false, true} {
		w := newWorld(t, map[schema.GroupResource]ownership.Store{podResource: &store{version: "1"}}, web())
		forgotten := 0
		w.c.OnForget(func(types.UID) { forgotten++ })
		w.run = func(context.Context, *pass.Pass) error {
			if meanwhile {
				w.c.Forget("web-uid")
			}
			w.c.Consistency.WroteAt("web-uid", podResource, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7"}})
			return errBoom
		}
		if _, err := w.reconcile(); err == nil {
			t.Error("no error")
		}
		if !meanwhile {
			w.c.Forget("web-uid")
		}
		if got := w.c.Remembered(); got != 0 || forgotten != 1 || w.c.Consistency.Unseen("web-uid") != "" {
			t.Errorf("meanwhile: %v; %d things are remembered, forgotten %d times", meanwhile, got, forgotten)
		}
	}
}

// leaving is a cache from which the parent goes as soon as a pass has read it, before the pass has begun.
type leaving struct {
	client.Reader

	w     *world
	reads int
}

func (l *leaving) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	err := l.Reader.Get(ctx, key, o, opts...)
	if l.reads++; l.reads == 2 { // a pass reads twice: see [ownership.ConsistencyStore.Read]
		if err := l.w.Raw.Delete(ctx, l.w.set()); err != nil {
			return err
		}
		l.w.c.Forget("web-uid")
	}
	return err
}

// TestForgetBeforeItBegins: nothing is left of a parent either that went between its read and the pass.
func TestForgetBeforeItBegins(t *testing.T) {
	w := newWorld(t, nil, web())
	w.c.Cache = &leaving{Reader: w.Raw, w: w}
	w.run = func(context.Context, *pass.Pass) error { return errBoom }
	if _, err := w.reconcile(); err != nil {
		t.Error(err)
	}
	if got := w.c.Remembered(); got != 0 {
		t.Errorf("%d things are remembered", got)
	}
}

// TestPanics: a pass that panics has a back-off like any other that fails.
func TestPanics(t *testing.T) {
	w := newWorld(t, nil, web())
	w.run = func(context.Context, *pass.Pass) error { panic("a bug") }
	for _, want := range []time.Duration{5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond} {
		func() {
			defer func() { _ = recover() }() // as controller-runtime does
			_, _ = w.reconcile()
		}()
		if got := w.c.Limiter().When(request); got != want {
			t.Errorf("again in %s, want %s", got, want)
		}
	}
}
