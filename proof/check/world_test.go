package check_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/check/recording"
	"github.com/cairn-dev/cairn/proof/internal/catset"
)

// This file builds histories by hand: a store that numbers writes, three nodes, and a DaemonSet with a pod on each.

const (
	namespace = "ns"
	manager   = "system:serviceaccount:cairn-system:cairn"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// world is the store. What it is told before begin exists from the start.
type world struct {
	testing.TB

	rv, origin      uint64
	objects         map[check.Key]client.Object
	listed, watched []recording.Change
	by              map[uint64]*check.Entry
	// actor does the next writes, in a pass if that is known. byName and anyVersion are deletes without a precondition.
	actor              string
	pass               *check.Pass
	byName, anyVersion bool
	// log holds all requests in their order, notes what hooks said.
	log   []*check.Entry
	notes []check.Note
}

func newWorld(t testing.TB) *world {
	t.Helper()
	initial := []client.Object{daemonSet("web", "web-uid", "app:1"), revision("web", "web-uid", 1, "h1", "app:1")}
	for _, name := range []string{"n1", "n2", "n3"} {
		initial = append(initial, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}, pod("web", "web-uid", name, "h1", "app:1"))
	}
	return worldOf(t, initial...)
}

// worldOf is a store in which some objects exist from the start.
func worldOf(t testing.TB, initial ...client.Object) *world {
	t.Helper()
	w := &world{TB: t, rv: 100, objects: map[check.Key]client.Object{}, by: map[uint64]*check.Entry{}, actor: "user"}
	for _, o := range initial {
		w.put(o)
	}
	for _, o := range w.objects {
		w.listed = append(w.listed, recording.Change{Resource: resourceOf(o), Object: o})
	}
	w.origin, w.watched = w.rv, nil
	w.actor = manager
	return w
}

func resourceOf(o client.Object) schema.GroupVersionResource {
	switch o.(type) {
	case *corev1.Node:
		return corev1.SchemeGroupVersion.WithResource("nodes")
	case *corev1.Pod:
		return corev1.SchemeGroupVersion.WithResource("pods")
	case *appsv1.DaemonSet:
		return appsv1.SchemeGroupVersion.WithResource("daemonsets")
	case *appsv1.StatefulSet:
		return appsv1.SchemeGroupVersion.WithResource("statefulsets")
	case *corev1.ReplicationController:
		return corev1.SchemeGroupVersion.WithResource("replicationcontrollers")
	case *appsv1.ReplicaSet:
		return appsv1.SchemeGroupVersion.WithResource("replicasets")
	case *corev1.PersistentVolumeClaim:
		return corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
	case *appsv1.ControllerRevision:
		return appsv1.SchemeGroupVersion.WithResource("controllerrevisions")
	case *corev1.ConfigMap:
		return corev1.SchemeGroupVersion.WithResource("configmaps")
	case *unstructured.Unstructured:
		if o.GetObjectKind().GroupVersionKind() == catset.Kind {
			return catset.Resource
		}
		return catset.Revisions
	}
	panic(fmt.Sprintf("%T", o))
}

// copyOf keeps what the store holds apart from what a test changes.
func copyOf[T client.Object](o T) T { return o.DeepCopyObject().(T) }

// put creates or updates an object and returns the resource version.
func (w *world) put(o client.Object) uint64 {
	w.rv++
	o = copyOf(o)
	o.SetResourceVersion(strconv.FormatUint(w.rv, 10))
	w.objects[recording.KeyOf(resourceOf(o), o)] = o
	w.watched = append(w.watched, recording.Change{Resource: resourceOf(o), Object: o})
	w.note("update")
	return w.rv
}

func (w *world) note(verb string) {
	e := &check.Entry{User: w.actor, Verb: verb, Code: 200, RV: w.rv, Pass: w.pass}
	if n := len(w.log); n > 0 && w.by[w.rv] == w.log[n-1] {
		w.log = w.log[:n-1] // what put noted for the same write
	}
	w.by[w.rv], w.log = e, append(w.log, e)
}

// in does writes in one pass.
func (w *world) in(p *check.Pass, f func()) {
	before := w.pass
	w.pass = p
	f()
	w.pass = before
}

// read is a read of the parent past every cache, or of the revisions without a UID.
func (w *world) read(uid types.UID, rv uint64) {
	e := check.Entry{User: w.actor, Verb: "list", Group: "apps", Resource: "controllerrevisions", Namespace: namespace, Code: 200, RV: rv, Pass: w.pass}
	if uid != "" {
		e.Verb, e.Resource, e.Name, e.UID = "get", "daemonsets", "web", uid
	}
	w.log = append(w.log, &e)
}

// deleted notes a delete of an object as it was.
func (w *world) deleted(was client.Object) {
	w.note("delete")
	e := w.by[w.rv]
	if !w.byName {
		e.Precondition = was.GetUID()
	}
	if !w.anyVersion {
		e.PreconditionRV = was.GetResourceVersion()
	}
}

// as does writes as somebody.
func (w *world) as(actor string, f func()) {
	before := w.actor
	w.actor = actor
	f()
	w.actor = before
}

// get returns an object to change.
func get[T client.Object](w *world, like T, name string) T {
	w.Helper()
	k := check.Key{Resource: resourceOf(like), Namespace: namespace, Name: name}
	o, ok := w.objects[k]
	if !ok {
		w.Fatalf("there is no %s", k)
	}
	return copyOf(o.(T))
}

func (w *world) ds(change func(*appsv1.DaemonSet)) {
	ds := get(w, &appsv1.DaemonSet{}, "web")
	change(ds)
	w.put(ds)
}

func (w *world) pod(name string, change func(*corev1.Pod)) {
	p := get(w, &corev1.Pod{}, name)
	change(p)
	w.put(p)
}

func (w *world) revision(name string, change func(*appsv1.ControllerRevision)) {
	r := get(w, &appsv1.ControllerRevision{}, name)
	change(r)
	w.put(r)
}

// mark sets the deletion timestamp, remove ends an object.
func (w *world) mark(name string) {
	was := get(w, &corev1.Pod{}, name)
	w.pod(name, func(p *corev1.Pod) {
		p.DeletionTimestamp = &metav1.Time{Time: start.Add(time.Hour + 30*time.Second)}
		p.DeletionGracePeriodSeconds = new(int64(30))
	})
	w.deleted(was)
}

func (w *world) remove(like client.Object, name string) {
	was := get(w, like, name)
	w.rv++
	delete(w.objects, recording.KeyOf(resourceOf(was), was))
	gone := copyOf(was)
	gone.SetResourceVersion(strconv.FormatUint(w.rv, 10))
	w.watched = append(w.watched, recording.Change{Resource: resourceOf(gone), Object: gone, Deleted: true})
	w.deleted(was)
}

// replace is a pod's whole way from one revision to the next.
func (w *world) replace(node, from, to, image string) {
	w.mark("web-" + node + "-" + from)
	w.as("kubelet", func() { w.remove(&corev1.Pod{}, "web-"+node+"-"+from) })
	fresh := pod("web", "web-uid", node, to, image)
	ready := fresh.Status
	fresh.Status = corev1.PodStatus{}
	w.put(fresh)
	w.as("kubelet", func() { w.pod(fresh.Name, func(p *corev1.Pod) { p.Status = ready }) })
}

// edit is a user who sets the image.
func (w *world) edit(image string) {
	w.as("user", func() {
		w.ds(func(ds *appsv1.DaemonSet) {
			ds.Spec.Template.Spec.Containers[0].Image = image
			ds.Generation++
		})
	})
}

// report is a controller that says what it saw.
func (w *world) report(updated, available int32) {
	w.ds(func(ds *appsv1.DaemonSet) {
		ds.Status = status(ds.Generation, updated, available)
	})
}

func (w *world) history() *check.History {
	w.Helper()
	h, err := recording.NewHistory(w.origin, w.rv, w.listed, w.watched)
	if err != nil {
		w.Fatal(err)
	}
	h.Audited, h.Manager = true, func(e *check.Entry) bool { return e.User == manager }
	h.Requests = w.log
	for _, e := range w.log {
		h.Reads = h.Reads || e.Verb == "get" || e.Verb == "list"
	}
	for i, e := range h.Events {
		h.Events[i].By = w.by[e.RV]
	}
	h.Notes = w.notes
	return h
}

func status(generation int64, updated, available int32) appsv1.DaemonSetStatus {
	return appsv1.DaemonSetStatus{
		ObservedGeneration: generation, DesiredNumberScheduled: 3, CurrentNumberScheduled: 3, NumberReady: available,
		NumberAvailable: available, NumberUnavailable: 3 - available, UpdatedNumberScheduled: updated,
	}
}

func template(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}},
	}
}

func daemonSet(name string, uid types.UID, image string) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uid, Generation: 1},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: template(image), RevisionHistoryLimit: new(int32(2)),
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{
				Type:          appsv1.RollingUpdateDaemonSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: new(intstr.FromInt32(1)), MaxSurge: new(intstr.FromInt32(0))},
			},
		},
		Status: status(1, 3, 3),
	}
}

func owner(name string, uid types.UID) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: name, UID: uid, Controller: new(true)}}
}

func revision(parent string, uid types.UID, number int64, hash, image string) *appsv1.ControllerRevision {
	t, err := json.Marshal(template(image))
	if err != nil {
		panic(err)
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: parent + "-" + hash, UID: uid + types.UID(hash), OwnerReferences: owner(parent, uid),
			Labels: map[string]string{"controller-revision-hash": hash, "app": "web"},
		},
		Revision: number,
		Data:     runtime.RawExtension{Raw: fmt.Appendf(nil, `{"spec":{"template":%s}}`, t)},
	}
}

var incarnation atomic.Int64

func pod(parent string, uid types.UID, node, hash, image string) *corev1.Pod {
	t := template(image)
	t.Labels["controller-revision-hash"] = hash
	t.Spec.NodeName = node
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: parent + "-" + node + "-" + hash, UID: types.UID(fmt.Sprintf("pod-%d", incarnation.Add(1))),
			OwnerReferences: owner(parent, uid), Labels: t.Labels, CreationTimestamp: metav1.NewTime(start),
		},
		Spec: t.Spec,
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{
			Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(start),
		}}},
	}
}
