package replicaset

// What goes wrong: refusals, lost answers, caches that are behind, names that are taken, and parents that cannot work.

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/fakeserver"
	"github.com/cairn-dev/cairn/pass"
)

var podsResource = schema.GroupResource{Resource: "pods"}

func firstNames(n int) []string {
	return names("web", "web-uid", n, nil, func(string) bool { return false }, nil)
}

// TestEditedMeanwhile: pods take their time, fewer are asked for, and no more are made than were on their way. That is
// no failure.
func TestEditedMeanwhile(t *testing.T) {
	w := newWorld(t, replicaSets, web(8))
	var once sync.Once
	w.Before = func(call fakeserver.Call) error {
		if call.Verb == "create" && len(w.Calls("create")) > 1 {
			once.Do(func() { w.scale(2) })
		}
		return nil
	}
	w.mustReconcile()
	if got := len(w.pods()); got != 3 || w.failure() != "" || len(w.events.Events("FailedCreate")) != 0 {
		t.Errorf("%d pods, condition %q, events %v", got, w.failure(), w.events.Events())
	}
	w.mustReconcile()
	if got := len(w.pods()); got != 2 {
		t.Errorf("%d pods in the end", got)
	}
}

// TestQuota: a refusal ends the batch, is an event and a condition, is retried, and the condition goes with its cause.
func TestQuota(t *testing.T) {
	for name, c := range kinds(8) {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.kind, c.parent)
			var created atomic.Int32 // a batch is created at once
			w.Before = func(call fakeserver.Call) error {
				if call.Verb != "create" {
					return nil
				}
				if created.Add(1) > 2 {
					return apierrors.NewForbidden(podsResource, call.Name, errors.New("exceeded quota: pods=2"))
				}
				return nil
			}
			if _, err := w.reconcile(); !apierrors.IsForbidden(err) {
				t.Fatalf("error %v", err)
			}
			// One pod, then two of which one is refused, then no more.
			if got := len(w.Calls("create")); got != 3 {
				t.Errorf("%d creates", got)
			}
			if got := w.failure(); !strings.HasPrefix(got, "True FailedCreate: create pod web-") || !strings.Contains(got, "exceeded quota") {
				t.Errorf("condition %q", got)
			}
			if got := w.events.Events("FailedCreate"); len(got) != 1 || !strings.Contains(got[0], "exceeded quota") {
				t.Errorf("events %v", got)
			}
			w.Before = nil
			w.mustReconcile()
			if got := w.failure(); got != "" || len(w.pods()) != 8 {
				t.Errorf("condition %q, %d pods", got, len(w.pods()))
			}
		})
	}
}

// TestDeleteRefused: a delete that is refused is said. An admission webhook can refuse with the code that else says
// that somebody was faster.
func TestDeleteRefused(t *testing.T) {
	for _, refused := range []error{
		apierrors.NewForbidden(podsResource, "a", errors.New("no")), apierrors.NewConflict(podsResource, "a", errors.New("no")),
	} {
		w := newWorld(t, replicaSets, web(0), pod("a"))
		w.Before = fakeserver.Refuse("delete", "Pod", refused)
		if _, err := w.reconcile(); err == nil {
			t.Fatal("no error")
		}
		if got := w.failure(); !strings.HasPrefix(got, "True FailedDelete") || len(w.events.Events("FailedDelete")) != 1 {
			t.Errorf("condition %q, events %v", got, w.events.Events())
		}
	}
}

// TestInvalidTemplate: a template that the API server refuses is said, with its words.
func TestInvalidTemplate(t *testing.T) {
	w := newWorld(t, replicaSets, web(2))
	w.Before = fakeserver.Refuse("create", "Pod", apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "web-x", nil))
	if _, err := w.reconcile(); !apierrors.IsInvalid(err) {
		t.Fatalf("error %v", err)
	}
	if got := w.failure(); !strings.Contains(got, "is invalid") || len(w.Calls("create")) != 1 {
		t.Errorf("condition %q", got)
	}
}

// TestNamespaceGoing: what cannot succeed is not tried again, and the status reports why.
func TestNamespaceGoing(t *testing.T) {
	w := newWorld(t, replicaSets, web(5))
	err := apierrors.NewForbidden(podsResource, "web-x", errors.New("the namespace is going"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	w.Before = fakeserver.Refuse("create", "Pod", err)
	w.mustReconcile()
	if len(w.Calls("create")) != 1 || len(w.events.Events()) != 0 || !strings.HasPrefix(w.failure(), "True FailedCreate: its namespace is being deleted") {
		t.Errorf("%v, events %v, condition %q", w.Calls("create"), w.events.Events(), w.failure())
	}
}

// TestLostResponses: a create or delete that was carried out and whose answer was lost is not done twice, whether the
// cache shows it by then or not; and the next step waits for a consistent list.
func TestLostResponses(t *testing.T) {
	lost := apierrors.NewGenericServerResponse(http.StatusBadGateway, "", podsResource, "", "lost", 0, true)
	t.Run("create", func(t *testing.T) {
		before := fakeserver.New(t, web(1)) // a cache that shows nothing
		w := worldOf(t, replicaSets, fakeserver.New(t, web(1)), before)
		w.After = fakeserver.Refuse("create", "Pod", lost)
		if _, err := w.reconcile(); err == nil {
			t.Fatal("no error")
		}
		w.After = nil
		w.Forget()
		if result := w.mustReconcile(); result.RequeueAfter != pass.StaleRetry {
			t.Errorf("again in %v", result.RequeueAfter)
		}
		if got := len(w.Calls("list")); got != 1 {
			t.Errorf("%d lists past the cache", got)
		}
		w.r.Client = w.Server // the cache caught up
		w.mustReconcile()
		if diff := cmp.Diff(firstNames(1)[0], w.pods()[0].Name); diff != "" || len(w.pods()) != 1 {
			t.Errorf("pods %v", w.pods())
		}
	})
	t.Run("delete", func(t *testing.T) {
		w := newWorld(t, replicaSets, web(1), pod("a"), pod("b"))
		w.After = fakeserver.Refuse("delete", "Pod", lost)
		if _, err := w.reconcile(); err == nil {
			t.Fatal("no error")
		}
		w.After = nil
		w.mustReconcile()
		if len(w.pods()) != 1 {
			t.Errorf("%d pods", len(w.pods()))
		}
	})
}

// TestLateRequest: a create without an answer may arrive late. What is asked for again has its name, although the name
// before it has become free meanwhile; once the pod was there, that name is given to no other.
func TestLateRequest(t *testing.T) {
	first := firstNames(3)
	w := newWorld(t, replicaSets, web(1), pod(first[0], going))
	w.Before = fakeserver.Refuse("create", "Pod", apierrors.NewGenericServerResponse(http.StatusBadGateway, "", podsResource, "", "lost", 0, true))
	if _, err := w.reconcile(); err == nil {
		t.Fatal("no error")
	}
	w.Before = nil
	for i, want := range []string{first[1], first[2]} {
		var p corev1.Pod
		if err := w.Raw.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: first[i]}, &p); err != nil {
			t.Fatal(err)
		}
		p.Finalizers = nil
		if err := errors.Join(w.Raw.Update(t.Context(), &p), client.IgnoreNotFound(w.Raw.Delete(t.Context(), &p))); err != nil {
			t.Fatal(err)
		}
		w.Forget()
		w.mustReconcile()
		w.mustReconcile()
		if got := w.WritesTo("Pod"); len(got) != 1 || got[0] != "create "+want {
			t.Errorf("writes %v, want the create of %s", got, want)
		}
	}
	w.r.unanswered.add("web-uid", "a")
	w.r.unanswered.forget("web-uid")
	if len(w.r.unanswered.all) != 0 {
		t.Errorf("left over: %v", w.r.unanswered.all)
	}
}

// TestAnotherManagersPods: what another manager made meanwhile is what we wanted, and no second pod is made.
func TestAnotherManagersPods(t *testing.T) {
	first := firstNames(2)
	cache := fakeserver.New(t, web(2))
	w := worldOf(t, replicaSets, fakeserver.New(t, web(2), pod(first[0]), pod(first[1])), cache)
	w.r.pods.Fresh.Live = cache // the other one is faster than our list
	w.mustReconcile()
	if len(w.pods()) != 2 || len(w.events.Events()) != 0 {
		t.Errorf("%d pods, events %v", len(w.pods()), w.events.Events())
	}
}

// TestAnotherManagersPodInBetween: a pod that another manager made comes into the cache after the pods were listed. Its
// name must not be passed over as one that somebody else has: that would make one pod too many.
func TestAnotherManagersPodInBetween(t *testing.T) {
	first := firstNames(1)
	s := fakeserver.New(t, web(1), pod(first[0]))
	cache := fakeserver.Hiding{Reader: s, Name: first[0]}
	w := worldOf(t, replicaSets, s, cache)
	w.r.pods.Fresh.Live = cache
	if result := w.mustReconcile(); result.RequeueAfter != pass.StaleRetry || len(w.WritesTo("Pod")) != 0 {
		t.Errorf("again in %v, writes %v", result.RequeueAfter, w.Writes())
	}
}

// TestNameTaken: a name that somebody has whom the cache does not show ends the pass; once it does, the next name is
// used.
func TestNameTaken(t *testing.T) {
	first := firstNames(2)
	for name, holder := range map[string]*corev1.Pod{
		"ours, going": pod(first[0], going),
		"ours, ended": pod(first[0], phase(corev1.PodFailed)),
		"somebody's":  pod(first[0], owned(nil), labelled(nil)),
	} {
		t.Run(name, func(t *testing.T) {
			cache := fakeserver.New(t, web(1))
			w := worldOf(t, replicaSets, fakeserver.New(t, web(1), holder), cache)
			w.r.pods.Fresh.Live = cache
			if result := w.mustReconcile(); result.RequeueAfter != pass.StaleRetry || w.failure() != "" {
				t.Errorf("again in %v, condition %q", result.RequeueAfter, w.failure())
			}
			w.r.Client, w.r.pods.Fresh.Live = w.Server, w.Server
			w.Forget()
			w.mustReconcile()
			if got := w.WritesTo("Pod"); len(got) != 1 || got[0] != "create "+first[1] {
				t.Errorf("writes %v", got)
			}
		})
	}
}

// TestStaleCache: a process that just started makes and deletes nothing by a cache that is behind.
func TestStaleCache(t *testing.T) {
	for name, c := range map[string]struct{ cached, live []client.Object }{
		"before creating": {[]client.Object{web(1)}, []client.Object{web(1), pod("a")}},
		"before deleting": {[]client.Object{web(1), pod("a"), pod("b")}, []client.Object{web(1), pod("a")}},
	} {
		t.Run(name, func(t *testing.T) {
			w := worldOf(t, replicaSets, fakeserver.New(t, c.live...), fakeserver.New(t, c.cached...))
			if result := w.mustReconcile(); result.RequeueAfter != pass.StaleRetry || len(w.Writes()) != 0 {
				t.Errorf("again in %v, writes %v", result.RequeueAfter, w.Writes())
			}
		})
	}
}

// TestStaleParent: a process that finds undone what it did before, or that just started, makes and deletes nothing by a
// parent that was edited since: somebody else may have done that who knows of the edit. An edit that the
// cache has just shown is followed without asking.
func TestStaleParent(t *testing.T) {
	edited := func(replicas int32) *appsv1.ReplicaSet {
		return web(replicas, func(set *appsv1.ReplicaSet) { set.Generation = 2 })
	}
	for name, c := range map[string]struct {
		cached *appsv1.ReplicaSet
		known  int64
		wait   bool
	}{
		"after a start, edited since":       {web(1), 0, true},
		"looked at before, edited since":    {web(1), 1, true},
		"looked at before, scaled up since": {web(4), 1, true},
		"from before what was looked at":    {web(1), 2, true},
		"looked at before, and as it is":    {edited(1), 2, false},
		"edited just now":                   {edited(1), 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			pods := []client.Object{pod("a"), pod("b")}
			w := worldOf(t, replicaSets, fakeserver.New(t, append(pods, edited(1))...), fakeserver.New(t, append(pods, c.cached)...))
			if c.known > 0 {
				w.r.generations.Store(c.cached.UID, c.known)
			}
			result := w.mustReconcile()
			if waits := result.RequeueAfter == pass.StaleRetry && len(w.Writes()) == 0; waits != c.wait {
				t.Errorf("again in %v, writes %v", result.RequeueAfter, w.Writes())
			}
			if asked := len(w.Calls("get")); (asked == 0) != (name == "edited just now") {
				t.Errorf("the parent was read %d times past the cache", asked)
			}
		})
	}
}

// TestSelector: a parent whose selector cannot be used touches nothing, and says so. One that does not match its own
// template would make pods for ever, and let each go.
func TestSelector(t *testing.T) {
	empty := webController(3)
	empty.Spec.Selector = nil
	for name, c := range map[string]struct {
		kind   parentKind
		parent client.Object
	}{
		"none":  {replicaSets, web(3, func(s *appsv1.ReplicaSet) { s.Spec.Selector = nil })},
		"empty": {replicaSets, web(3, func(s *appsv1.ReplicaSet) { s.Spec.Selector = &metav1.LabelSelector{} })},
		"malformed": {replicaSets, web(3, func(s *appsv1.ReplicaSet) {
			s.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Operator: "?"}}
		})},
		"v1": {replicationControllers, empty},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.kind, c.parent, pod("orphan", owned(nil)))
			w.mustReconcile()
			want := "True SelectingAll: spec.selector is empty"
			switch name {
			case "mismatch":
				want = "True InvalidSelector: spec.selector does not match"
			case "malformed":
				want = "True InvalidSelector: spec.selector cannot be read: "
			}
			if got := w.failure(); !strings.HasPrefix(got, want) || len(w.WritesTo("Pod")) != 0 || len(w.events.Events()) != 1 {
				t.Errorf("condition %q, writes %v, events %v", got, w.WritesTo("Pod"), w.events.Events())
			}
		})
	}
}
