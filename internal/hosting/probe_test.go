package hosting

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/watching"
)

// authority is what the tests say of kinds.
type authority struct {
	mu sync.Mutex
	// served are the resources of each version. What is not here is not served.
	served map[string][]metav1.APIResource
	// refused are verbs that are not allowed. failing, if it is set, is the answer to everything.
	refused map[string]bool
	failing error
}

func (a *authority) set(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}

func (a *authority) ServerResourcesForGroupVersion(version string) (*metav1.APIResourceList, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.failing != nil {
		return nil, a.failing
	}
	list, there := a.served[version]
	if !there {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, version)
	}
	return &metav1.APIResourceList{APIResources: list}, nil
}

func (a *authority) Allowed(_ context.Context, verb string, r schema.GroupVersionResource, _ string) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.refused[verb+" "+r.Resource], a.failing
}

var catsets = watching.Resource{
	Kind:       schema.GroupVersionKind{Group: "ctl.example", Version: "v1", Kind: "CatSet"},
	Resource:   schema.GroupVersionResource{Group: "ctl.example", Version: "v1", Resource: "catsets"},
	Namespaced: true,
}

func catsetsServed(namespaced bool) map[string][]metav1.APIResource {
	return map[string][]metav1.APIResource{"ctl.example/v1": {
		{Name: "catsets/status", Kind: "CatSet", Namespaced: namespaced}, {Name: "catsets", Kind: "CatSet", Namespaced: namespaced},
	}}
}

// forgetful is a mapper that knows the scope of CatSets for as long as it is not renewed, and makes all else
// namespaced.
type forgetful struct {
	meta.RESTMapper // nil: what is not below is not called

	mu      sync.Mutex
	scope   meta.RESTScope
	from    *authority
	renewed int
}

func (f *forgetful) Renew() {
	list, err := f.from.ServerResourcesForGroupVersion("ctl.example/v1")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renewed++
	f.scope = nil
	if err == nil && len(list.APIResources) > 1 {
		f.know(list)
	}
}

func (f *forgetful) know(list *metav1.APIResourceList) {
	f.scope = meta.RESTScopeRoot
	if list.APIResources[0].Namespaced {
		f.scope = meta.RESTScopeNamespace
	}
}

func (f *forgetful) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if kind != catsets.Kind.GroupKind() {
		resource, _ := meta.UnsafeGuessKindToResource(kind.WithVersion(versions[0]))
		return &meta.RESTMapping{Resource: resource, Scope: meta.RESTScopeNamespace}, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.scope == nil {
		list, err := f.from.ServerResourcesForGroupVersion("ctl.example/v1")
		if err != nil || len(list.APIResources) < 2 {
			return nil, &meta.NoKindMatchError{GroupKind: kind}
		}
		f.know(list)
	}
	return &meta.RESTMapping{Resource: catsets.Resource, Scope: f.scope}, nil
}

// watchCatSets hosts controllers that watch CatSets, in a world where an authority speaks.
func (w *world) watchCatSets() (*hosting, *authority) {
	a := &authority{served: catsetsServed(true), refused: map[string]bool{}}
	w.mapper = &forgetful{scope: meta.RESTScopeNamespace, from: a}
	shared := w.shared(a)
	return w.host(func(h *hosting) {
		h.host = shared
		h.sources = []source.Source{&watching.Events{Cache: shared.Cache, Object: catsets.New(), Handler: &handler.EnqueueRequestForObject{}}}
	}), a
}

// TestListRefusedFromTheStart: the condition names the refused list immediately, and is written few times.
func TestListRefusedFromTheStart(t *testing.T) {
	inWorld(t, func(w *world) {
		w.caches.listing("CatSet", forbidden())
		h, a := w.watchCatSets()
		a.refused["list catsets"], a.refused["watch catsets"] = true, true
		c := w.describe("one")
		settle(15 * time.Second)
		const want = "False ResourceNotListed: CatSet of ctl.example/v1: its objects could not be listed yet: the role of the manager " +
			"does not let it watch catsets.ctl.example: grant that (cairn roles prints what is needed); the controller starts by itself then"
		if got := w.ready(c); got != want {
			t.Error(got)
		}
		settle(10 * time.Minute)
		if written := h.written(); written > 3 {
			t.Errorf("the status was written %d times", written)
		}
		w.caches.listing("CatSet", nil)
		a.set(func() { a.refused = nil })
		settle(2 * lastAttempt)
		if got := w.ready(c); got != "True Running: the controller runs" {
			t.Error(got)
		}
	})
}

// inProbedWorld runs a test in which CatSets are watched, and an authority speaks. A controller named one runs.
func inProbedWorld(t *testing.T, test func(h *hosting, a *authority, c *v1alpha1.CompositeController)) {
	t.Helper()
	inWorld(t, func(w *world) {
		h, a := w.watchCatSets()
		c := w.describe("one")
		settle(time.Second)
		if got := w.ready(c); got != "True Running: the controller runs" {
			t.Fatal(got)
		}
		settle(time.Minute)
		if h.built.Load() != 1 {
			t.Fatalf("built %d times, although nothing happened", h.built.Load())
		}
		test(h, a, c)
	})
}

// TestKindsThatAreLost: within ten seconds the condition says why, what is watched is let go of, and the controller
// runs again by itself when it can.
func TestKindsThatAreLost(t *testing.T) {
	for name, c := range map[string]struct {
		lose, find func(a *authority)
		want       string
		// dropped says that what was known of the kind is forgotten.
		dropped bool
	}{
		"the group is gone": {
			func(a *authority) { a.served = nil }, func(a *authority) { a.served = catsetsServed(true) },
			"False ResourceNotServed: catsets of ctl.example/v1 is not served any more: " +
				"install its CRD again, or change the spec; the controller starts by itself then", true,
		},
		"another kind of the group stays": {
			func(a *authority) { a.served = map[string][]metav1.APIResource{"ctl.example/v1": {{Name: "dogs"}}} },
			func(a *authority) { a.served = catsetsServed(true) },
			"False ResourceNotServed: catsets of ctl.example/v1 is not served any more: " +
				"install its CRD again, or change the spec; the controller starts by itself then", true,
		},
		"gone, and there again with another scope": {
			func(a *authority) { a.served = nil }, func(a *authority) { a.served = catsetsServed(false) },
			"False ResourceNotServed: catsets of ctl.example/v1 is not served any more: " +
				"install its CRD again, or change the spec; the controller starts by itself then", true,
		},
		"it may not be watched": {
			func(a *authority) { a.refused["watch catsets"] = true }, func(a *authority) { a.refused = nil },
			"False ResourceNotListed: the role of the manager does not let it watch catsets.ctl.example: " +
				"grant that (cairn roles prints what is needed); the controller starts by itself then", false,
		},
		"it may not be listed": {
			func(a *authority) { a.refused["list configmaps"] = true }, func(a *authority) { a.refused = nil },
			"False ResourceNotListed: the role of the manager does not let it list configmaps: " +
				"grant that (cairn roles prints what is needed); the controller starts by itself then", false,
		},
		"it may be neither listed nor watched": {
			func(a *authority) { a.refused["list catsets"], a.refused["watch catsets"] = true, true },
			func(a *authority) { a.refused = nil },
			"False ResourceNotListed: the role of the manager does not let it list catsets.ctl.example: " +
				"grant that (cairn roles prints what is needed); the controller starts by itself then", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inProbedWorld(t, func(h *hosting, a *authority, cc *v1alpha1.CompositeController) {
				a.set(func() { c.lose(a) })
				settle(10 * time.Second)
				if got := h.ready(cc); got != c.want {
					t.Errorf("got  %s\nwant %s", got, c.want)
				}
				if dropped := !strings.Contains(h.caches.watched(), "CatSet"); dropped != c.dropped || h.alive.Load() != 0 {
					t.Errorf("watched are %s, %d run", h.caches.watched(), h.alive.Load())
				}
				settle(10 * time.Minute) // no flapping
				if got := h.ready(cc); got != c.want {
					t.Errorf("later it is %s", got)
				}
				if written := h.written(); written > 4 {
					t.Errorf("the status was written %d times", written)
				}
				a.set(func() { c.find(a) })
				settle(lastAttempt + 10*time.Second)
				if got := h.ready(cc); got != "True Running: the controller runs" || !strings.Contains(h.caches.watched(), "CatSet") {
					t.Errorf("it is back, and it is %s, watched are %s", got, h.caches.watched())
				}
				if got := h.recorder.Events("Stopped"); len(got) != 1 {
					t.Errorf("%d events, the first is %q", len(got), got[:1])
				}
				settle(time.Minute)
				if h.alive.Load() != 1 {
					t.Errorf("%d run", h.alive.Load())
				}
			})
		})
	}
}

// TestKindOfAnotherScope: a CRD is deleted and made again between two looks.
func TestKindOfAnotherScope(t *testing.T) {
	inProbedWorld(t, func(h *hosting, a *authority, cc *v1alpha1.CompositeController) {
		a.set(func() { a.served = catsetsServed(false) })
		settle(10 * time.Second)
		if got := h.ready(cc); got != "True Running: the controller runs" || h.built.Load() != 2 {
			t.Errorf("%s, built %d times", got, h.built.Load())
		}
		settle(time.Minute)
		if renewed := h.mapper.(*forgetful).renewed; h.built.Load() != 2 || renewed != 1 {
			t.Errorf("built %d times, %d times renewed", h.built.Load(), renewed)
		}
	})
}

// TestUnknownIsNoLoss: an API server that does not answer has taken nothing away.
func TestUnknownIsNoLoss(t *testing.T) {
	inProbedWorld(t, func(h *hosting, a *authority, cc *v1alpha1.CompositeController) {
		a.set(func() { a.failing = errors.New("connection refused") })
		settle(time.Hour)
		if got := h.ready(cc); got != "True Running: the controller runs" || h.built.Load() != 1 {
			t.Errorf("%s, built %d times", got, h.built.Load())
		}
	})
}

// TestAnErrorHasAnEventOfItsOwn: operators, and Metacontroller's tests, look for SyncError.
func TestAnErrorHasAnEventOfItsOwn(t *testing.T) {
	inWorld(t, func(w *world) {
		w.host(func(h *hosting) {
			h.build = func(context.Context, *v1alpha1.CompositeController) error {
				return &Error{Reason: "NoStatusSubresource", Event: "SyncError", Err: errors.New("it has none")}
			}
		})
		c := w.describe("one")
		settle(5 * time.Minute)
		if got := w.ready(c); got != "False NoStatusSubresource: it has none" {
			t.Error(got)
		}
		if got := w.recorder.Events("SyncError"); len(got) != 1 || !strings.HasSuffix(got[0], "it has none") {
			t.Errorf("%q", got)
		}
	})
}
