package replicaset

// The reconciler on top of a fake API server, with a clock that stands still and events that are kept.

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cairn-dev/cairn/internal/fakeserver"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

// world is a server with a reconciler.
type world struct {
	*fakeserver.Server

	t      testing.TB
	r      *Reconciler
	events *fakeserver.Recorder
}

// newWorld makes a world where everything is read from the server.
func newWorld(t testing.TB, f parentKind, objects ...client.Object) *world {
	t.Helper()
	return worldOf(t, f, fakeserver.New(t, objects...), nil)
}

// worldOf makes a world whose cache is another reader than the server, unless that is nil.
func worldOf(t testing.TB, f parentKind, s *fakeserver.Server, cache client.Reader) *world {
	t.Helper()
	w := &world{Server: s, t: t, events: &fakeserver.Recorder{}}
	var c client.Client = s
	if cache != nil {
		c = fakeserver.Cached(s, cache)
	}
	w.r = newReconciler(f, pass.Config{
		Kind: f.watched(), Client: c, Live: s, Consistency: ownership.NewConsistencyStore(nil), Recorder: w.events,
		Clock: testingclock.NewFakeClock(now),
	})
	return w
}

var request = reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "web"}}

func (w *world) reconcile() (reconcile.Result, error) {
	w.t.Helper()
	return w.r.Reconcile(context.Background(), request)
}

func (w *world) mustReconcile() reconcile.Result {
	w.t.Helper()
	result, err := w.reconcile()
	w.must(err)
	return result
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// set is the parent as it is stored, as a ReplicaSet.
func (w *world) set() *appsv1.ReplicaSet {
	w.t.Helper()
	parent := w.r.kind.New()
	w.must(w.Raw.Get(context.Background(), request.NamespacedName, parent))
	return w.r.kind.read(parent)
}

// pods are those that are alive.
func (w *world) pods() []corev1.Pod {
	w.t.Helper()
	var list corev1.PodList
	w.must(w.Raw.List(context.Background(), &list, client.InNamespace("default")))
	var out []corev1.Pod
	for i := range list.Items {
		if active(&list.Items[i]) {
			out = append(out, list.Items[i])
		}
	}
	return out
}

// scale changes the ReplicaSet as a person, or a Deployment, would.
func (w *world) scale(replicas int32) {
	w.t.Helper()
	set := w.set()
	set.Spec.Replicas = &replicas
	set.Generation++
	w.must(w.Raw.Update(context.Background(), set))
}

// ready is what kubelets do.
func (w *world) ready() {
	w.t.Helper()
	for _, p := range w.pods() {
		readyFor(0)(&p)
		w.must(w.Raw.Status().Update(context.Background(), &p))
	}
}

// failure is the condition, as text.
func (w *world) failure() string {
	w.t.Helper()
	for _, c := range w.set().Status.Conditions {
		if isFailure(c) {
			return string(c.Status) + " " + c.Reason + ": " + c.Message
		}
	}
	return ""
}

// webController is web as a ReplicationController.
func webController(replicas int32) *corev1.ReplicationController {
	set := web(replicas)
	return &corev1.ReplicationController{ObjectMeta: set.ObjectMeta, Spec: corev1.ReplicationControllerSpec{
		Replicas: &replicas, Selector: set.Spec.Selector.MatchLabels, Template: &set.Spec.Template,
	}}
}

func owned(by *metav1.OwnerReference) podOption {
	return func(p *corev1.Pod) {
		p.OwnerReferences = nil
		if by != nil {
			p.OwnerReferences = []metav1.OwnerReference{*by}
		}
	}
}

func labelled(labels map[string]string) podOption {
	return func(p *corev1.Pod) { p.Labels = labels }
}
