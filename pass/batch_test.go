package pass_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

// TestEachIsBounded: however many there are, AtOnce are under way at a time, and each is done.
func TestEachIsBounded(t *testing.T) {
	const items = 3000
	synctest.Test(t, func(t *testing.T) {
		var running atomic.Int64
		proceed := make(chan struct{})
		result := make(chan error)
		go func() {
			result <- pass.Each(make([]int, items), func(int) error {
				running.Add(1)
				<-proceed
				return errors.New("no")
			})
		}()
		synctest.Wait()
		if got := running.Load(); got != pass.AtOnce {
			t.Errorf("%d are under way", got)
		}
		close(proceed)
		joined, ok := (<-result).(interface{ Unwrap() []error })
		if !ok || len(joined.Unwrap()) != items || running.Load() != items {
			t.Errorf("%d of %d were done", running.Load(), items)
		}
	})
}

func TestSlowStart(t *testing.T) {
	for name, c := range map[string]struct{ fails, done int }{
		"the first fails":                      {1, 1},
		"the second fails, the third is begun": {2, 3},
		"one of the third batch fails":         {5, 7},
		"none fails":                           {0, 20},
	} {
		t.Run(name, func(t *testing.T) {
			var done atomic.Int32
			items := make([]int, 20)
			for i := range items {
				items[i] = i + 1
			}
			err := pass.SlowStart(newPass(), pass.Writes[int]{Items: items, Do: func(i int) error {
				done.Add(1)
				if i == c.fails {
					return context.Canceled
				}
				return nil
			}})
			if int(done.Load()) != c.done || errors.Is(err, context.Canceled) != (c.fails > 0) {
				t.Errorf("%d done, %v", done.Load(), err)
			}
		})
	}
}

// newPass is a pass that nothing has failed before.
func newPass() *pass.Pass {
	return pass.New(pass.Config{Consistency: ownership.NewConsistencyStore(nil), Clock: clock.RealClock{}}).NewPass(web())
}

// Between batches it asks whether to go on.
func TestSlowStartStops(t *testing.T) {
	for asks, want := range []int{1, 3, 7, 10} { // done when the answer changes after so many
		done, asked := atomic.Int32{}, 0
		err := pass.SlowStart(newPass(), pass.Writes[int]{
			Items: make([]int, 10),
			Still: func() error {
				if asked++; asked > asks {
					return ownership.ErrStale
				}
				return nil
			},
			Do: func(int) error {
				done.Add(1)
				return nil
			},
		})
		if int(done.Load()) != want || pass.IsStale(err) != (want < 10) {
			t.Errorf("%d times yes: %d done, %v", asks, done.Load(), err)
		}
	}
}

func TestEachJoinsErrors(t *testing.T) {
	err := pass.Each([]error{context.Canceled, nil, context.DeadlineExceeded}, func(err error) error { return err })
	if !errors.Is(err, context.Canceled) || !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if err := pass.Each(nil, func(int) error { return context.Canceled }); err != nil {
		t.Error(err)
	}
}

// TestUnedited (docs/design/pass.md): what the cache shows of a parent while a pass about it goes on.
func TestUnedited(t *testing.T) {
	at := func(generation int64, changes ...func(*appsv1.ReplicaSet)) *appsv1.ReplicaSet {
		p := web()
		p.Generation = generation
		for _, change := range changes {
			change(p)
		}
		return p
	}
	deleting := func(p *appsv1.ReplicaSet) { p.DeletionTimestamp = &metav1.Time{Time: start} }
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		shown *appsv1.ReplicaSet // nil is none
		err   error
		want  error
	}{
		"the same":              {shown: at(3)},
		"its status is written": {shown: at(3, func(p *appsv1.ReplicaSet) { p.ResourceVersion = "99" })},
		"the cache is stale":    {shown: at(2)},
		"edited":                {shown: at(4), want: ownership.ErrStale},
		"deleted":               {shown: at(3, deleting), want: ownership.ErrGone},
		"gone":                  {want: ownership.ErrGone},
		"replaced":              {shown: at(3, func(p *appsv1.ReplicaSet) { p.UID = "other" }), want: ownership.ErrGone},
		"not to be read":        {err: boom},
	} {
		t.Run(name, func(t *testing.T) {
			cache := shows{c.shown, c.err}
			if err := pass.Unedited(t.Context(), cache, at(3))(); !errors.Is(err, c.want) || c.want == nil && err != nil ||
				pass.IsStale(err) != (c.want != nil) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
	if err := pass.Unedited(t.Context(), shows{at(4, deleting), nil}, at(4, deleting))(); err != nil {
		t.Error("a pass about a parent that is being deleted:", err)
	}
}

// shows is a cache of one ReplicaSet, or of none.
type shows struct {
	parent *appsv1.ReplicaSet
	err    error
}

func (s shows) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if s.err != nil || s.parent == nil {
		return cmp.Or(s.err, error(apierrors.NewNotFound(setResource, key.Name)))
	}
	*into.(*appsv1.ReplicaSet) = *s.parent
	return nil
}

func (shows) List(context.Context, client.ObjectList, ...client.ListOption) error {
	panic("nothing is listed")
}

// TestWhatFailedLastIsTriedLast: an item that is always refused keeps those behind it waiting for one pass, and what is
// missing later for none, however often passes have failed by then. A pass that makes all it can costs one refused
// request.
func TestWhatFailedLastIsTriedLast(t *testing.T) {
	w := newWorld(t, nil, web())
	var mu sync.Mutex
	var tried []int
	items, refused := []int{0, 1, 2, 3, 4}, []int{2}
	w.run = func(_ context.Context, p *pass.Pass) error {
		tried = nil
		missing := slices.Clone(items)
		return pass.SlowStart(p, pass.Writes[int]{Items: missing, Name: strconv.Itoa, Do: func(i int) error {
			mu.Lock()
			defer mu.Unlock()
			tried = append(tried, i)
			if slices.Contains(refused, i) {
				return errBoom
			}
			items = slices.DeleteFunc(items, func(j int) bool { return i == j })
			return nil
		}})
	}
	for _, step := range []struct {
		missing, refused []int
		want             [][]int // what each pass tries
	}{
		{missing: []int{0, 1, 2, 3, 4}, refused: []int{2}, want: [][]int{{0, 1, 2}, {3, 2, 4}, {2}, {2}, {2}}},
		{missing: []int{2, 4}, refused: []int{2}, want: [][]int{{4, 2}, {2}}}, // 4 was lost
		{missing: []int{0, 1, 2}, refused: []int{0, 1, 2}, want: [][]int{{0}, {1}, {2}, {0}, {1}}},
		{missing: []int{0, 1, 2}, want: [][]int{{2, 0, 1}}},
		{missing: []int{0, 1, 2}, want: [][]int{{0, 1, 2}}}, // a pass that did all it should ends it
	} {
		items, refused = step.missing, step.refused
		for i, want := range step.want {
			if _, err := w.reconcile(); (err != nil) != (len(refused) > 0) {
				t.Error(err)
			}
			if len(tried) > 1 {
				slices.Sort(tried[1:]) // those of one batch are tried at once
			}
			slices.Sort(want[min(1, len(want)):])
			if !slices.Equal(tried, want) {
				t.Errorf("missing %v, refused %v, pass %d: tried %v, want %v", step.missing, refused, i, tried, want)
			}
		}
	}
}

// TestMostWrites: the bound counts from what is tried first.
func TestMostWrites(t *testing.T) {
	w := newWorld(t, nil, web())
	var made atomic.Int32
	all := make([]int, 2*pass.MostWrites)
	for i := range all {
		all[i] = i
	}
	w.run = func(_ context.Context, p *pass.Pass) error {
		return pass.SlowStart(p, pass.Writes[int]{Items: all, Name: strconv.Itoa, Do: func(i int) error {
			if i == 0 {
				return errBoom
			}
			made.Add(1)
			return nil
		}})
	}
	for range 2 {
		_, _ = w.reconcile()
	}
	if made.Load() != pass.MostWrites {
		t.Errorf("made %d", made.Load())
	}
}
