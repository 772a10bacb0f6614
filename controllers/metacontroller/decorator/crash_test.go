package decorator

// What is written when writes fail, answers are lost, and processes end, at every write there is.

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/fakeserver"
	"github.com/cairn-dev/cairn/internal/watching"
	"github.com/cairn-dev/cairn/pass"
)

// life is what happens to an object in the tests below, one after the other.
var life = []func(w *world){
	func(*world) {},
	func(w *world) {
		w.edit(statefulSets, "web", func(o *unstructured.Unstructured) {
			must(w.t, unstructured.SetNestedField(o.Object, int64(2), "spec", "replicas"))
			o.SetAnnotations(map[string]string{"service-per-pod-label": "other"})
		})
	},
	func(w *world) { w.edit(statefulSets, "web", optOut) },
}

// TestKilledAtEveryWrite ends the process at each write of an object's life, before the API server gets it and after. A
// new process comes to the same end, and on the way nothing is left without somebody who looks after it.
func TestKilledAtEveryWrite(t *testing.T) {
	for _, spec := range []string{perPod, strings.Replace(perPod, "InPlace", "Recreate", 1)} {
		clean := lives(t, spec, -1, false)
		total := len(clean.Writes())
		if total < 8 {
			t.Fatalf("only %d writes", total)
		}
		for k := range total {
			for _, lost := range []bool{false, true} {
				t.Run(fmt.Sprintf("write %d, answer lost %t", k, lost), func(t *testing.T) {
					w := lives(t, spec, k, lost)
					if diff := cmp.Diff(clean.dump(), w.dump()); diff != "" {
						t.Errorf("another end (-clean +killed):\n%s\n%s", diff, w.calls())
					}
				})
			}
		}
	}
}

// lives leads an object through its life, and ends the process at the k-th write.
func lives(t *testing.T, spec string, k int, lost bool) *world {
	t.Helper()
	s := controller(t, "service-per-pod", spec)
	w := newWorld(t, s, servicePerPod, web(t, 3))
	killed := errors.New("killed")
	dead := false
	var mu sync.Mutex
	writes := -1
	count := func(c fakeserver.Call) bool {
		if c.Verb == "get" || c.Verb == "list" {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		writes++
		dead = dead || writes == k
		return dead
	}
	hold := func(c fakeserver.Call) error {
		if count(c) {
			return killed
		}
		w.guarded(c)
		return nil
	}
	if lost {
		w.After = hold
		w.Before = func(fakeserver.Call) error {
			mu.Lock()
			defer mu.Unlock()
			if dead {
				return killed
			}
			return nil
		}
	} else {
		w.Before = hold
	}
	for _, happens := range life {
		happens(w)
		for range 20 {
			before := len(w.Writes())
			_, err := w.reconcile(webRequest)
			if dead {
				w.Before, w.After, dead = nil, nil, false
				w = worldOn(t, w.Server, s, servicePerPod) // a new process
				continue
			}
			must(t, err)
			if len(w.Writes()) == before {
				break
			}
		}
	}
	return w
}

// guarded checks what must hold at every write: a Service that we made has an object with our finalizer.
func (w *world) guarded(c fakeserver.Call) {
	o := w.get(statefulSets, "web")
	if c.Kind == "Service" && !w.r.finalized(o) {
		w.t.Errorf("%s while nobody would clean up", c)
	}
}

// dump is all that is stored, without what differs from run to run.
func (w *world) dump() string {
	var out []string
	for _, r := range []watching.Resource{statefulSets, services} {
		for _, name := range w.names(r) {
			o := w.get(r, name)
			metadata, _ := o.Object["metadata"].(map[string]any)
			for _, field := range []string{"uid", "resourceVersion", "creationTimestamp"} {
				delete(metadata, field)
			}
			out = append(out, encode(maps.Clone(o.Object)))
		}
	}
	return strings.Join(out, "\n")
}

// TestLostRaces: a write that meets a newer object is no failure, and the next pass looks again.
func TestLostRaces(t *testing.T) {
	conflict := apierrors.NewConflict(statefulSets.Resource.GroupResource(), "web", errors.New("it has changed"))
	gone := apierrors.NewNotFound(services.Resource.GroupResource(), "web-0")
	for _, c := range []struct {
		name, verb, kind string
		err              error
		again            bool
	}{
		{"finalizer", "patch", "StatefulSet", conflict, true},
		{"object gone", "patch", "StatefulSet", gone, false},
		{"attachment", "patch", "Service", conflict, true},
		{"attachment gone", "patch", "Service", gone, true},
		{"delete", "delete", "Service", conflict, true},
		{"delete gone", "delete", "Service", gone, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, controller(t, "service-per-pod", perPod), servicePerPod, web(t, 3))
			if c.kind == "Service" {
				w.settle(webRequest)
				life[1](w)
			}
			refuse := fakeserver.Refuse(c.verb, c.kind, c.err)
			w.Before = func(call fakeserver.Call) error {
				err := refuse(call)
				if errors.Is(err, conflict) && c.verb == "delete" { // it has been changed indeed
					w.touch(call.Name)
				}
				return err
			}
			result, err := w.reconcile(webRequest)
			if err != nil || (result.RequeueAfter > 0) != c.again || len(w.events.Events()) != 0 {
				t.Errorf("%+v, %v, events %v", result, err, w.events.Events())
			}
			w.Before = nil
			w.settle(webRequest)
		})
	}
}

// touch changes a Service.
func (w *world) touch(name string) {
	w.t.Helper()
	o := fakeserver.Of(services.Kind)
	if err := w.Raw.Get(w.t.Context(), client.ObjectKey{Namespace: "default", Name: name}, o); err != nil {
		w.t.Fatal(err)
	}
	o.SetAnnotations(map[string]string{"touched": "yes"})
	if err := w.Raw.Update(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

// TestPastIsNotActedOn: the first step that takes something away waits until the cache shows the object as it is.
func TestPastIsNotActedOn(t *testing.T) {
	w := newWorld(t, controller(t, "service-per-pod", perPod), servicePerPod, web(t, 3))
	w.settle(webRequest)
	old := w.get(statefulSets, "web")
	must(t, unstructured.SetNestedField(old.Object, int64(1), "spec", "replicas"))
	w.edit(statefulSets, "web", func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"edited": "since"}) })

	w = worldOn(t, w.Server, w.r.settings, servicePerPod) // a new process, with a cache that shows one replica
	w.r.Cache = past{w.Raw, old}
	result, err := w.reconcile(webRequest)
	if err != nil || result.RequeueAfter != pass.StaleRetry {
		t.Errorf("%+v, %v", result, err)
	}
	if got := w.names(services); len(got) != 3 {
		t.Errorf("services %v", got)
	}
	w.r.Cache = w.Raw
	w.edit(statefulSets, "web", func(o *unstructured.Unstructured) {
		must(t, unstructured.SetNestedField(o.Object, int64(1), "spec", "replicas"))
	})
	w.settle(webRequest)
	if got := w.names(services); !slices.Equal(got, []string{"web-0"}) {
		t.Errorf("services %v", got)
	}
	w.Forget()
	w.edit(statefulSets, "web", func(o *unstructured.Unstructured) {
		must(t, unstructured.SetNestedField(o.Object, int64(0), "spec", "replicas"))
	})
	w.mustReconcile(webRequest)
	if got := len(w.Calls("get")); got != 0 {
		t.Errorf("it was read past the cache again, %d times", got)
	}
}

// TestFinalizerStaysForWhatIsNotSeen: an attachment that the cache does not show yet keeps our finalizer on an object
// that is taken out: afterwards nobody would look.
func TestFinalizerStaysForWhatIsNotSeen(t *testing.T) {
	w := newWorld(t, controller(t, "service-per-pod", perPod), servicePerPod, web(t, 2))
	w.settle(webRequest)
	w.edit(statefulSets, "web", optOut)

	w = worldOn(t, w.Server, w.r.settings, servicePerPod) // a new process, with a cache that shows no Services yet
	w.r.Cache = empty{w.Raw}
	result, err := w.reconcile(webRequest)
	if err != nil || result.RequeueAfter != pass.StaleRetry || !w.r.finalized(w.get(statefulSets, "web")) {
		t.Errorf("%+v, %v", result, err)
	}
	w.r.Cache = w.Raw
	w.settle(webRequest)
	if got := w.names(services); len(got) != 0 || w.r.finalized(w.get(statefulSets, "web")) {
		t.Errorf("services %v, or the finalizer is still there", got)
	}
}

// TestNamespaceGoes: that nothing can be made in a namespace that is deleted is nobody's fault.
func TestNamespaceGoes(t *testing.T) {
	w := newWorld(t, controller(t, "service-per-pod", perPod), servicePerPod, web(t, 2))
	refused := apierrors.NewForbidden(services.Resource.GroupResource(), "web-0", errors.New("it is being deleted"))
	refused.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	w.Before = fakeserver.Refuse("create", "Service", refused)
	w.mustReconcile(webRequest)
	if got := w.events.Events(); len(got) != 0 {
		t.Errorf("events %v", got)
	}
}

// TestRefused: what the API server refuses is said on the object, in its words, and tried again.
func TestRefused(t *testing.T) {
	w := newWorld(t, controller(t, "service-per-pod", perPod), servicePerPod, web(t, 2))
	w.Before = fakeserver.Refuse("create", "Service", apierrors.NewForbidden(services.Resource.GroupResource(), "web-0", errors.New("no more services")))
	if _, err := w.reconcile(webRequest); !apierrors.IsForbidden(err) {
		t.Errorf("error %v", err)
	}
	if got := w.events.Events("SyncError"); len(got) != 1 || !strings.Contains(got[0], "create Service default/web-0: ") || !strings.Contains(got[0], "no more services") {
		t.Errorf("events %v", got)
	}
	w.Before = nil
	w.settle(webRequest)
	if got := w.names(services); len(got) != 2 {
		t.Errorf("services %v", got)
	}
}
