package decorator

// Which event wakes which object, and how requests of several kinds share a queue.

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// drain returns what is in a queue, as text.
func drain(q queue) []string {
	out := []string{}
	for q.Len() > 0 {
		req, _ := q.Get()
		q.Done(req)
		out = append(out, req.String())
	}
	return out
}

func newQueue(t *testing.T) queue {
	t.Helper()
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(q.ShutDown)
	return q
}

func changed(o *unstructured.Unstructured, change func(*unstructured.Unstructured)) *unstructured.Unstructured {
	out := o.DeepCopy()
	out.SetResourceVersion(o.GetResourceVersion() + "1")
	change(out)
	return out
}

func TestObjectEvents(t *testing.T) {
	const quiet = `
resources: [{apiVersion: apps/v1, resource: statefulsets, annotationSelector: {matchExpressions: [{key: service-per-pod-label, operator: Exists}]}, ignoreStatusChanges: true}]
hooks: {sync: {}, finalize: {}}
`
	restated := func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(o.Object, int64(1), "status", "replicas")
	}
	edited := func(o *unstructured.Unstructured) { o.SetGeneration(2) }
	optedOut := web(t, 1)
	optOut(optedOut)
	held := optedOut.DeepCopy()
	held.SetFinalizers([]string{finalizerPrefix + "c"})
	for _, c := range []struct {
		name, spec    string
		before, after *unstructured.Unstructured
		wakes         bool
	}{
		{"new", perPod, nil, web(t, 1), true},
		{"new, and none of ours", perPod, nil, optedOut, false},
		{"new, with our finalizer", perPod, nil, held, true},
		{"status", perPod, web(t, 1), changed(web(t, 1), restated), true},
		{"status, which is ignored", quiet, web(t, 1), changed(web(t, 1), restated), false},
		{"spec", quiet, web(t, 1), changed(web(t, 1), edited), true},
		{"label", quiet, web(t, 1), changed(web(t, 1), func(o *unstructured.Unstructured) { o.SetLabels(nil) }), true},
		{"taken out, held by our finalizer", quiet, changed(held, func(o *unstructured.Unstructured) { o.SetAnnotations(web(t, 1).GetAnnotations()) }), held, true},
		{"deleted", quiet, web(t, 1), changed(web(t, 1), going), true},
		{"opted in", quiet, optedOut, web(t, 1), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, controller(t, "c", c.spec), servicePerPod)
			h, q := w.r.objectEvents(w.r.resources[0]), newQueue(t)
			if c.before == nil {
				h.Create(context.Background(), event.CreateEvent{Object: c.after}, q)
			} else {
				h.Update(context.Background(), event.UpdateEvent{ObjectOld: c.before, ObjectNew: c.after}, q)
			}
			if got := drain(q); len(got) > 0 != c.wakes {
				t.Errorf("it wakes %v", got)
			}
		})
	}
}

// TestForgotten: nothing is remembered of an object that is gone, so that one of its name inherits nothing (X1).
func TestForgotten(t *testing.T) {
	successor := changed(web(t, 1), func(o *unstructured.Unstructured) { o.SetUID("another") })
	for name, gone := range map[string]func(h handler.EventHandler, q queue){
		"deleted": func(h handler.EventHandler, q queue) {
			h.Delete(context.Background(), event.DeleteEvent{Object: web(t, 1)}, q)
		},
		"replaced": func(h handler.EventHandler, q queue) {
			h.Update(context.Background(), event.UpdateEvent{ObjectOld: web(t, 1), ObjectNew: successor}, q)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, controller(t, "c", perPod), servicePerPod)
			uid := web(t, 1).GetUID()
			w.r.confirmed.Store(uid, struct{}{})
			w.r.stated.Store(uid, stated{})
			gone(w.r.objectEvents(w.r.resources[0]), newQueue(t))
			_, confirmed := w.r.confirmed.Load(uid)
			_, kept := w.r.stated.Load(uid)
			if confirmed || kept {
				t.Errorf("confirmed %t, stated %t", confirmed, kept)
			}
		})
	}
}

func TestAttachmentEvents(t *testing.T) {
	const zones = `
resources:
- {apiVersion: apps/v1, resource: statefulsets, annotationSelector: {matchExpressions: [{key: service-per-pod-label, operator: Exists}]}}
- {apiVersion: v1, resource: namespaces}
attachments: [{apiVersion: v1, resource: services}]
`
	of := func(kind, name string, uid types.UID) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: map[string]string{"StatefulSet": "apps/v1beta1", "Namespace": "v1", "Pod": "v1"}[kind], Kind: kind, Name: name, UID: uid, Controller: new(true)}
	}
	attached := func(refs ...metav1.OwnerReference) *unstructured.Unstructured {
		o := service(t, "web-0", 1)
		o.SetResourceVersion("5")
		o.SetAnnotations(map[string]string{Annotation: "c"})
		o.SetOwnerReferences(refs)
		return o
	}
	ours := attached(of("StatefulSet", "web", "uid-of-web"))
	const wakesWeb = "default/statefulsets.apps/web"
	for _, c := range []struct {
		name          string
		before, after client.Object
		want          []string
	}{
		{"new", nil, ours, []string{wakesWeb}},
		{"changed", ours, changed(ours, drifted), []string{wakesWeb}},
		{"seen again", ours, ours, nil},
		{"gone", ours, nil, []string{wakesWeb}},
		{"let go", ours, changed(ours, func(o *unstructured.Unstructured) { o.SetOwnerReferences(nil) }), []string{wakesWeb}},
		{"not known as ours any more", ours, changed(ours, unmarked), []string{wakesWeb}},
		{"another controller's", nil, changed(ours, unmarked), nil},
		{"of one that is not there", nil, attached(of("StatefulSet", "db", "uid-of-db")), nil},
		{"of an earlier one of that name", nil, attached(of("StatefulSet", "web", "earlier")), nil},
		{"of a kind that is not decorated", nil, attached(of("Pod", "web", "uid-of-web")), nil},
		{"of one that left", nil, attached(of("StatefulSet", "out", "uid-of-out")), nil},
		{"of one outside of namespaces", nil, attached(of("Namespace", "team", "uid-of-team")), []string{"/namespaces/team"}},
		{"orphan", nil, attached(), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := changed(web(t, 1), func(o *unstructured.Unstructured) {
				o.SetName("out")
				o.SetUID("uid-of-out")
				optOut(o)
			})
			out.SetResourceVersion("")
			w := newWorld(t, controller(t, "c", zones), servicePerPod, web(t, 1), out, object(t, `{apiVersion: v1, kind: Namespace, metadata: {name: team, uid: uid-of-team}}`))
			h, q := w.r.attachmentEvents(), newQueue(t)
			switch {
			case c.before == nil:
				h.Create(context.Background(), event.CreateEvent{Object: c.after}, q)
			case c.after == nil:
				h.Delete(context.Background(), event.DeleteEvent{Object: c.before}, q)
			default:
				h.Update(context.Background(), event.UpdateEvent{ObjectOld: c.before, ObjectNew: c.after}, q)
			}
			if got := drain(q); !slices.Equal(got, c.want) {
				t.Errorf("it wakes %v, want %v", got, c.want)
			}
		})
	}
}

// TestSharedQueue: a source that knows of one kind only names objects of that kind, with the priority that it asks for.
func TestSharedQueue(t *testing.T) {
	fern := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "fern"}}
	adds := func(q queue) {
		q.Add(fern)
		if p, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
			low := fern
			low.Name = "low"
			p.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, low)
		}
		later := fern
		later.Name = "later"
		q.AddAfter(later, time.Millisecond)
		limited := fern
		limited.Name = "limited"
		q.AddRateLimited(limited)
	}
	inOrder := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	byPriority := priorityqueue.New[reconcile.Request]("test")
	for _, c := range []struct {
		name string
		q    queue
		want []string
	}{
		{"in order", inOrder, []string{"fern", "later", "limited"}},
		{"by priority", byPriority, []string{"fern", "later", "limited", "low"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer c.q.ShutDown()
			s := ofKind{source.Func(func(_ context.Context, q queue) error {
				adds(q)
				return nil
			}), &decorated{Resource: plants}}
			must(t, s.Start(context.Background(), c.q))
			must(t, s.WaitForSync(context.Background()))
			var got []string
			for range c.want {
				req, _ := c.q.Get()
				c.q.Done(req)
				got = append(got, req.String())
			}
			slices.Sort(got)
			want := []string{}
			for _, name := range c.want {
				want = append(want, "default/plants.example.com/"+name)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEverything: a resync means the objects that the controller has to do with, of all kinds.
func TestEverything(t *testing.T) {
	out := changed(web(t, 1), func(o *unstructured.Unstructured) { o.SetName("out"); optOut(o) })
	out.SetResourceVersion("")
	w := newWorld(t, controller(t, "c", `
resources:
- {apiVersion: v1, resource: namespaces}
- {apiVersion: apps/v1, resource: statefulsets, annotationSelector: {matchExpressions: [{key: service-per-pod-label, operator: Exists}]}}
`), servicePerPod, web(t, 1), out, object(t, `{apiVersion: v1, kind: Namespace, metadata: {name: team}}`))
	var got []string
	for _, key := range w.r.everything(context.Background()) {
		got = append(got, key.String())
	}
	if diff := cmp.Diff([]string{"/namespaces/team", "default/statefulsets.apps/web"}, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}
