package daemonset

// Passes that rest on an old read wait, and write nothing.

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

// store is an informer's store as far as the consistency store looks at it.
type store struct {
	version string
	shows   *corev1.Pod
}

func (s *store) LastStoreSyncResourceVersion() string { return s.version }

func (s *store) GetByKey(key string) (any, bool, error) {
	if s.shows != nil && client.ObjectKeyFromObject(s.shows).String() == key {
		return s.shows, true, nil
	}
	return nil, false, nil
}

// TestOwnWrites: a pass waits until the caches show what the last one wrote (kubernetes#129795), and reads nothing
// else.
func TestOwnWrites(t *testing.T) {
	waits := func(t *testing.T, w *world, catchUp func()) {
		t.Helper()
		w.Forget()
		if result := w.mustReconcile(); result.RequeueAfter != pass.UnseenRetry || len(w.Calls()) != 1 {
			t.Errorf("result %+v with %v", result, w.Calls())
		}
		catchUp()
		if w.mustReconcile(); len(w.Calls("list")) == 0 {
			t.Error("the pass is still waiting")
		}
	}
	all := func() map[schema.GroupResource]ownership.Store {
		return map[schema.GroupResource]ownership.Store{
			podResource: &store{version: "99999"}, history.AppsResource: &store{version: "99999"}, daemonSetResource: &store{version: "99999"},
		}
	}
	for _, resource := range []schema.GroupResource{podResource, history.AppsResource, daemonSetResource} {
		t.Run(resource.String(), func(t *testing.T) {
			stores, behind := all(), &store{version: "1"}
			stores[resource] = behind
			w := worldOf(newServer(t, three()...), nil, stores)
			w.mustReconcile()
			waits(t, w, func() { behind.version = "99999" })
		})
	}
	// Every other write, each by itself: the store of what it writes is behind from then on.
	for name, c := range map[string]struct {
		objects  []client.Object
		resource schema.GroupResource
	}{
		"an adopted pod":     {append(three(), stored(t, "agent:1", "one", 1), pod("n1", "one", func(p *corev1.Pod) { p.OwnerReferences = nil }), pod("n2", "one"), pod("n3", "one")), podResource},
		"a relabelled pod":   {append(three(), stored(t, "agent:1", "twin", 1), stored(t, "agent:1", "one", 2), pod("n1", "twin"), pod("n2", "one"), pod("n3", "one")), podResource},
		"a stamped revision": {append(three(), stored(t, "agent:1", "one", 1)), history.AppsResource},
	} {
		t.Run(name, func(t *testing.T) {
			stores, behind := all(), &store{version: "1"}
			stores[c.resource] = behind
			w := worldOf(newServer(t, c.objects...), nil, stores)
			w.mustReconcile()
			waits(t, w, func() { behind.version = "99999" })
		})
	}
	t.Run("a deleted pod", func(t *testing.T) {
		gone := pod("n1", hashOld, phase(corev1.PodFailed))
		stores, shows := all(), &store{version: "99999", shows: gone}
		stores[podResource] = shows
		w := worldOf(newServer(t, append(three(), gone)...), nil, stores)
		w.mustReconcile()
		waits(t, w, func() { shows.shows = nil })
	})
}

// TestStaleRead: the DaemonSet that the cache shows is not the one that there is. Nothing is written, and the pass
// is repeated soon, without an error that would be logged.
func TestStaleRead(t *testing.T) {
	s := newServer(t, three()...)
	old := newServer(t, three()...)
	w := worldOf(s, old.Raw, nil)
	s.edit(image("agent:2"))
	if result := w.mustReconcile(); result.RequeueAfter != pass.StaleRetry || len(w.Writes()) != 0 || len(w.events.Events()) != 0 {
		t.Errorf("result %+v, wrote %v, events %v", result, w.Writes(), w.events.Events())
	}
}

// TestPauseWithSurge: whoever asks for a surge wants a pod on each node all the time, so that a failed pod stays for a
// minute at most.
func TestPauseWithSurge(t *testing.T) {
	for surge, want := range map[string]time.Duration{"0": 8 * time.Minute, "0%": 8 * time.Minute, "1": time.Minute, "1%": time.Minute} {
		w := newWorld(t, three(rolling(1, surge))...)
		p := w.r.NewPass(w.ds())
		for range 10 {
			p.Replaced(hashNew, "n1")
		}
		if got := w.gathered(p).pause(hashNew, "n1").Length; got != want && (surge[0] != '0' || got < want) {
			t.Errorf("maxSurge %s: %s, want %s", surge, got, want)
		}
	}
}

// gathered makes the reads of a pass.
func (w *world) gathered(p *pass.Pass) *observed {
	w.t.Helper()
	selector, err := pass.Selector(w.ds().Spec.Selector)
	if err != nil {
		w.t.Fatal(err)
	}
	o, err := w.r.gather(w.t.Context(), p, w.ds(), selector)
	if err != nil {
		w.t.Fatal(err)
	}
	return o
}
