package pass_test

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cairn-dev/cairn/internal/fakeserver"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

// What the tests share: a parent on a fake API server, a controller whose pass is a function of the test, and a clock.

var (
	setKind     = appsv1.SchemeGroupVersion.WithKind("ReplicaSet")
	setResource = schema.GroupResource{Group: appsv1.GroupName, Resource: "replicasets"}
	podResource = schema.GroupResource{Resource: "pods"}
	request     = reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "web"}}
	start       = time.Date(2026, time.March, 4, 5, 6, 7, 0, time.UTC)
)

func web() *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "web-uid", Generation: 1},
		Spec:       appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	}
}

// world is a controller over a fake API server.
type world struct {
	*fakeserver.Server

	t      *testing.T
	c      *pass.Controller
	clock  *testingclock.FakeClock
	events *fakeserver.Recorder
	// run is the next pass.
	run func(ctx context.Context, p *pass.Pass) error
}

func newWorld(t *testing.T, stores map[schema.GroupResource]ownership.Store, objects ...client.Object) *world {
	t.Helper()
	w := &world{
		Server: fakeserver.New(t, objects...), t: t, clock: testingclock.NewFakeClock(start), events: &fakeserver.Recorder{},
		run: func(context.Context, *pass.Pass) error { return nil },
	}
	w.c = pass.New(pass.Config{
		Kind:   pass.Kind{GVK: setKind, Resource: setResource, New: func() client.Object { return &appsv1.ReplicaSet{} }},
		Client: w.Server, Live: w.Server, Consistency: ownership.NewConsistencyStore(stores), Recorder: w.events, Clock: w.clock,
		Run: func(ctx context.Context, p *pass.Pass) error { return w.run(ctx, p) },
	})
	return w
}

func (w *world) reconcile() (reconcile.Result, error) { return w.c.Reconcile(w.t.Context(), request) }

// set returns the parent as it is stored.
func (w *world) set() *appsv1.ReplicaSet {
	w.t.Helper()
	var set appsv1.ReplicaSet
	if err := w.Raw.Get(w.t.Context(), request.NamespacedName, &set); err != nil {
		w.t.Fatal(err)
	}
	return &set
}

// state is a status write of a pass: so many replicas, and a word in a condition.
func state(ctx context.Context, p *pass.Pass, replicas int32, word string, urgent bool) (bool, error) {
	set := p.Parent.(*appsv1.ReplicaSet)
	after := set.DeepCopy()
	after.Status.Replicas = replicas
	after.Status.Conditions = []appsv1.ReplicaSetCondition{{Type: "Word", Status: corev1.ConditionTrue, Message: word}}
	return p.WriteStatus(ctx, set, after, urgent)
}

// store is an informer's store that has seen all up to a version.
type store struct{ version string }

func (s *store) LastStoreSyncResourceVersion() string { return s.version }
func (s *store) GetByKey(string) (any, bool, error)   { return nil, false, nil }
