package statefulset

// The reconciler on top of a fake API server, with a clock that stands still and events that are kept; and what people,
// schedulers and kubelets do there.

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cairn-dev/cairn/history"
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
	clock  *testingclock.FakeClock
}

// newWorld makes a world where everything is read from the server.
func newWorld(t testing.TB, objects ...client.Object) *world {
	t.Helper()
	return worldOf(t, fakeserver.New(t, objects...), nil, nil)
}

// worldOf makes a world whose cache is another reader than the server, unless that is nil. stores are what the
// consistency store waits for.
func worldOf(t testing.TB, s *fakeserver.Server, cache client.Reader, stores map[schema.GroupResource]ownership.Store) *world {
	t.Helper()
	w := &world{Server: s, t: t, events: &fakeserver.Recorder{}, clock: testingclock.NewFakeClock(now)}
	var c client.Client = s
	if cache != nil {
		c = fakeserver.Cached(s, cache)
	}
	w.r = newReconciler(pass.Config{
		Kind: statefulSets, Client: c, Live: s, Consistency: ownership.NewConsistencyStore(stores), Recorder: w.events, Clock: w.clock,
	}, false)
	return w
}

var request = reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "web"}}

func (w *world) mustReconcile() reconcile.Result {
	w.t.Helper()
	result, err := w.r.Reconcile(context.Background(), request)
	if err != nil {
		w.t.Fatal(err)
	}
	return result
}

func (w *world) set() *appsv1.StatefulSet {
	w.t.Helper()
	var set appsv1.StatefulSet
	w.must(w.Raw.Get(context.Background(), request.NamespacedName, &set))
	return &set
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// edit changes the StatefulSet's spec as a person would.
func (w *world) edit(change setOption) {
	w.t.Helper()
	set := w.set()
	change(set)
	set.Generation++
	w.must(w.Raw.Update(context.Background(), set))
}

func image(image string) setOption {
	return func(set *appsv1.StatefulSet) { set.Spec.Template.Spec.Containers[0].Image = image }
}

// list reads all objects of a kind in the namespace.
func (w *world) list(list client.ObjectList) {
	w.t.Helper()
	w.must(w.Raw.List(context.Background(), list, client.InNamespace("default")))
}

func (w *world) pods() []*corev1.Pod {
	w.t.Helper()
	var list corev1.PodList
	w.list(&list)
	var out []*corev1.Pod
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	return out
}

func (w *world) pod(ordinal int) *corev1.Pod {
	w.t.Helper()
	i := slices.IndexFunc(w.pods(), func(p *corev1.Pod) bool { return p.Name == "web-"+strconv.Itoa(ordinal) })
	if i < 0 {
		w.t.Fatalf("there is no pod %d", ordinal)
	}
	return w.pods()[i]
}

// settle is what kubelets do: every pod that is there becomes available, unless its image is broken.
func (w *world) settle() {
	w.t.Helper()
	for _, p := range w.pods() {
		p.Status.Phase, p.Status.StartTime = corev1.PodRunning, new(metav1.NewTime(now.Add(-time.Hour)))
		if strings.Contains(p.Spec.Containers[0].Image, "broken") {
			crashing(p)
		} else {
			ready(time.Hour)(p)
		}
		w.must(w.Raw.Status().Update(context.Background(), p))
	}
}

// rounds runs passes, with kubelets at work after each.
func (w *world) rounds(n int) {
	w.t.Helper()
	for range n {
		w.mustReconcile()
		w.settle()
	}
}

// images are the images of the pods that are there, lowest ordinal first.
func (w *world) images() string {
	w.t.Helper()
	var out []string
	for _, p := range w.pods() {
		out = append(out, p.Spec.Containers[0].Image)
	}
	return strings.Join(out, " ")
}

// thrice is what images returns where three pods have the same.
func thrice(image string) string { return strings.Join([]string{image, image, image}, " ") }

// revisions returns the number of each stored revision by the image that it holds.
func (w *world) revisions() map[string]int64 {
	w.t.Helper()
	var list appsv1.ControllerRevisionList
	w.list(&list)
	out := map[string]int64{}
	for i := range list.Items {
		out[imageOf(w.t, &list.Items[i])] = list.Items[i].Revision
	}
	return out
}

func imageOf(t testing.TB, o *appsv1.ControllerRevision) string {
	t.Helper()
	snapshot, err := history.StatefulSet().Target().Decode(o.Data.Raw)
	if err != nil {
		return "unreadable"
	}
	template, err := restore(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	return template.Spec.Containers[0].Image
}

// stored is a revision of web called web-<rev>, with an image.
func stored(t testing.TB, rev, img string, number int64) *appsv1.ControllerRevision {
	t.Helper()
	set := web(image(img))
	snapshot, err := history.StatefulSet().Target().Snapshot(set)
	if err != nil {
		t.Fatal(err)
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "web-" + rev, UID: types.UID("uid-of-" + rev),
			Labels:          map[string]string{"app": "web", "controller.kubernetes.io/hash": rev},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, kind)},
		},
		Data:     runtime.RawExtension{Raw: snapshot.Data()},
		Revision: number,
	}
}

// between is a set in the middle of a rollout from a to b, with its revisions; pods are the test's.
func between(t testing.TB, options []setOption, pods ...*corev1.Pod) []client.Object {
	t.Helper()
	set := web(append([]setOption{image("web:b")}, options...)...)
	set.Status.CurrentRevision, set.Status.UpdateRevision = "web-a", "web-b"
	out := []client.Object{set, stored(t, "a", "web:a", 1), stored(t, "b", "web:b", 2)}
	for _, p := range pods {
		out = append(out, p)
	}
	return out
}

func (w *world) condition(kind appsv1.StatefulSetConditionType) string {
	w.t.Helper()
	c := findCondition(w.set().Status.Conditions, kind)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason + ": " + c.Message
}

func findCondition(conditions []appsv1.StatefulSetCondition, t appsv1.StatefulSetConditionType) *appsv1.StatefulSetCondition {
	i := slices.IndexFunc(conditions, func(c appsv1.StatefulSetCondition) bool { return c.Type == t })
	if i < 0 {
		return nil
	}
	return &conditions[i]
}
