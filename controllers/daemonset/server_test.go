package daemonset

// The reconciler over a fake API server, with a clock that stands still and events that are kept.

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/internal/fakeserver"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

// server is an API server, and what tests ask of it.
type server struct {
	*fakeserver.Server

	t testing.TB
}

func newServer(t testing.TB, objects ...client.Object) *server {
	t.Helper()
	return &server{fakeserver.New(t, objects...), t}
}

// world is a server with a reconciler.
type world struct {
	*server

	r      *Reconciler
	events *fakeserver.Recorder
	clock  *testingclock.FakeClock
}

// newWorld makes a world where everything is read from the server.
func newWorld(t testing.TB, objects ...client.Object) *world {
	t.Helper()
	return worldOf(newServer(t, objects...), nil, nil)
}

// worldOf makes a world whose cache is another reader than the server, unless that is nil. stores are what the
// consistency store waits for.
func worldOf(s *server, cache client.Reader, stores map[schema.GroupResource]ownership.Store) *world {
	w := &world{server: s, events: &fakeserver.Recorder{}, clock: testingclock.NewFakeClock(now)}
	var c client.Client = s
	if cache != nil {
		c = fakeserver.Cached(s, cache)
	}
	w.r = newReconciler(pass.Config{
		Kind: daemonSets, Client: c, Live: s, Consistency: ownership.NewConsistencyStore(stores), Recorder: w.events, Clock: w.clock,
	}, false)
	return w
}

// act carries out a plan.
func (w *world) act(f facts, p *plan) error {
	p.from = f
	return w.r.act(w.t.Context(), w.r.NewPass(f.ds), p)
}

// relabel is what points pods at another revision.
func (w *world) relabel(o *observed) history.Relabel {
	pods := w.r.pods.Claimed(w.r.NewPass(o.ds), o.selector, o.pods)
	o.children = []pass.Family{pods}
	return pods.Relabel
}

func findCondition(conditions []appsv1.DaemonSetCondition, t appsv1.DaemonSetConditionType) *appsv1.DaemonSetCondition {
	i := slices.IndexFunc(conditions, func(c appsv1.DaemonSetCondition) bool { return c.Type == t })
	if i < 0 {
		return nil
	}
	return &conditions[i]
}
