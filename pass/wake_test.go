package pass_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cairn-dev/cairn/internal/fakeserver"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

// What wakes a parent, and how soon.

// queue notes what is added, and when it is to be taken out.
type queue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]

	added []time.Duration
}

func (q *queue) Add(reconcile.Request)                             { q.added = append(q.added, 0) }
func (q *queue) AddAfter(_ reconcile.Request, after time.Duration) { q.added = append(q.added, after) }

func (w *world) updated(before, after client.Object) []time.Duration {
	q := &queue{}
	w.c.ParentEvents().Update(w.t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, q)
	return q.added
}

// TestOwnStatusWakesNobody: a status that differs in each pass, because it quotes an error with a number of its own,
// does not have the parent reconciled for ever. Everything else that happens to a parent wakes it.
func TestOwnStatusWakesNobody(t *testing.T) {
	w := newWorld(t, nil, web())
	for i := range 3 {
		before := w.set()
		w.run = func(ctx context.Context, p *pass.Pass) error {
			_, err := state(ctx, p, 1, fmt.Sprintf("request %d was denied", i), true)
			return err
		}
		if _, err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
		if after := w.set(); after.ResourceVersion == before.ResourceVersion || len(w.updated(before, after)) != 0 {
			t.Errorf("from version %s to %s: woken %v", before.ResourceVersion, after.ResourceVersion, w.updated(before, after))
		}
	}
	before := w.set()
	if got := w.updated(before, before); len(got) != 1 || got[0] != 0 {
		t.Errorf("a resync: woken %v", got)
	}
	for name, change := range map[string]func(*appsv1.ReplicaSet) error{
		"an edit": func(set *appsv1.ReplicaSet) error { set.Generation++; return w.Raw.Update(t.Context(), set) },
		"a label": func(set *appsv1.ReplicaSet) error {
			set.Labels = map[string]string{"a": "b"}
			return w.Raw.Update(t.Context(), set)
		},
		"somebody else's new status": func(set *appsv1.ReplicaSet) error {
			set.Status.Replicas = 7
			return w.Raw.Status().Update(t.Context(), set)
		},
	} {
		set := w.set()
		if err := change(set); err != nil {
			t.Fatal(err)
		}
		if got := w.updated(before, w.set()); len(got) != 1 || got[0] != 0 {
			t.Errorf("%s: woken %v", name, got)
		}
	}
}

// TestOwnStatusWakesWhoWaits: a pass that waits until the cache shows our own status is made as soon as it does.
func TestOwnStatusWakesWhoWaits(t *testing.T) {
	w := newWorld(t, nil, web())
	before := w.set()
	w.run = func(ctx context.Context, p *pass.Pass) error {
		if _, err := state(ctx, p, 1, "", true); err != nil {
			return err
		}
		return ownership.ErrStale
	}
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if got := w.updated(before, w.set()); len(got) != 1 {
		t.Errorf("woken %v", got)
	}
}

// TestBursts: child events that come while the last pass has not paid for itself wait, an edit of the parent does not,
// and neither does the first child event after a pause.
func TestBursts(t *testing.T) {
	w := newWorld(t, nil, web())
	w.run = func(context.Context, *pass.Pass) error {
		w.clock.Step(80 * time.Millisecond)
		return nil
	}
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	router := ownership.Parents{Reader: w.Server, Kind: setKind.GroupKind(), New: w.c.New}.Router()
	child := func() []time.Duration {
		q := &queue{}
		w.c.ChildEvents(router).Create(t.Context(), event.CreateEvent{Object: pod("a")}, q)
		return q.added
	}
	w.clock.Step(30 * time.Millisecond)
	if got := child(); len(got) != 1 || got[0] != 50*time.Millisecond {
		t.Errorf("a child event of the burst: %v", got)
	}
	edited := w.set()
	edited.Generation++
	edited.ResourceVersion = "7777"
	if got := w.updated(w.set(), edited); len(got) != 1 || got[0] != 0 {
		t.Errorf("an edit: %v", got)
	}
	w.clock.Step(50 * time.Millisecond)
	if got := child(); len(got) != 1 || got[0] != 0 {
		t.Errorf("a child event after a pause: %v", got)
	}
}

// TestBurstsAfterWrites: the wait is for what the pass thought, and for its writes no longer than their events take.
func TestBurstsAfterWrites(t *testing.T) {
	w := newWorld(t, nil, web())
	w.run = func(_ context.Context, p *pass.Pass) error {
		w.clock.Step(80 * time.Millisecond)
		return pass.SlowStart(p, pass.Writes[int]{Items: []int{1, 2, 3}, Still: func() error {
			w.clock.Step(2 * time.Second)
			return nil
		}, Do: func(int) error { return nil }})
	}
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	q := &queue{}
	router := ownership.Parents{Reader: w.Server, Kind: setKind.GroupKind(), New: w.c.New}.Router()
	w.c.ChildEvents(router).Create(t.Context(), event.CreateEvent{Object: pod("a")}, q)
	if got := q.added; len(got) != 1 || got[0] != 180*time.Millisecond {
		t.Errorf("a child event after writes of 2 s: %v", got)
	}
}

// TestOwnStatusBeforeItsAnswer: the event of our own status write comes before the answer to it. It wakes nobody
// either; what somebody else wrote meanwhile does, once the answer is there, and so does what came of a write whose
// answer was lost.
func TestOwnStatusBeforeItsAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		another, lost bool
		want          int
	}{
		"ours":           {want: 0},
		"another's":      {another: true, want: 1},
		"answer is lost": {lost: true, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil, web())
			before, q := w.set(), &queue{}
			w.After = func(call fakeserver.Call) error {
				if call.Verb != "patch status" {
					return nil
				}
				after := w.set()
				if c.another {
					after.ResourceVersion = "7777"
				}
				w.c.ParentEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, q)
				if len(q.added) != 0 {
					t.Errorf("woken %v before anybody knows whose it is", q.added)
				}
				if c.lost {
					return errBoom
				}
				return nil
			}
			w.run = func(ctx context.Context, p *pass.Pass) error {
				_, err := state(ctx, p, 1, "denied", true)
				return err
			}
			if _, err := w.reconcile(); (err != nil) != c.lost {
				t.Fatal(err)
			}
			if len(q.added) != c.want {
				t.Errorf("woken %v", q.added)
			}
		})
	}
}

// TestNotOurStatus: what is more than a change of the status cannot be ours, and does not wait for the answer to a
// status write.
func TestNotOurStatus(t *testing.T) {
	for name, change := range map[string]func(*appsv1.ReplicaSet){
		"an edit":      func(set *appsv1.ReplicaSet) { set.Generation++ },
		"a label":      func(set *appsv1.ReplicaSet) { set.Labels = map[string]string{"a": "b"} },
		"a finalizer":  func(set *appsv1.ReplicaSet) { set.Finalizers = []string{"a/b"} },
		"its deletion": func(set *appsv1.ReplicaSet) { set.DeletionTimestamp = &metav1.Time{Time: start} },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil, web())
			w.After = func(call fakeserver.Call) error {
				if call.Verb != "patch status" {
					return nil
				}
				after := w.set()
				after.ResourceVersion = "7777"
				change(after)
				if woken := w.updated(w.set(), after); len(woken) != 1 {
					t.Errorf("woken %v", woken)
				}
				return nil
			}
			w.run = func(ctx context.Context, p *pass.Pass) error {
				written, err := state(ctx, p, 1, "denied", true)
				if !written {
					t.Error("no status was written")
				}
				return err
			}
			if _, err := w.reconcile(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestStatusOnly: who sleeps through changes of the status is woken by all that people write.
func TestStatusOnly(t *testing.T) {
	before := pod("a")
	for name, c := range map[string]struct {
		change func(o client.Object)
		want   bool
	}{
		"nothing of that":   {func(client.Object) {}, true},
		"finalizers":        {func(o client.Object) { o.SetFinalizers([]string{"a/b"}) }, true},
		"another object":    {func(o client.Object) { o.SetUID("another") }, false},
		"generation":        {func(o client.Object) { o.SetGeneration(2) }, false},
		"labels":            {func(o client.Object) { o.SetLabels(map[string]string{"a": "b"}) }, false},
		"annotations":       {func(o client.Object) { o.SetAnnotations(map[string]string{"a": "b"}) }, false},
		"deletionTimestamp": {func(o client.Object) { o.SetDeletionTimestamp(&metav1.Time{Time: start}) }, false},
	} {
		after := before.DeepCopy()
		after.SetResourceVersion("2")
		c.change(after)
		if got := pass.StatusOnly(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
