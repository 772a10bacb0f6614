package host

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/ownership"
)

// served is a mapper of a few resources, two of which share name and version.
func served() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "Event"},
		{Group: "events.k8s.io", Version: "v1", Kind: "Event"},
		{Group: "example.com", Version: "v1", Kind: "Cat"},
		{Group: "example.com", Version: "v2", Kind: "Cat"},
	} {
		m.Add(kind, meta.RESTScopeNamespace)
	}
	m.Add(schema.GroupVersionKind{Version: "v1", Kind: "Node"}, meta.RESTScopeRoot)
	return m
}

// lazy is a mapper that has looked at a group once somebody asked for one of its kinds.
type lazy struct {
	meta.RESTMapper

	core bool
	err  error
}

func (l *lazy) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	l.core = l.core || kind.Group == ""
	if l.err != nil {
		return nil, l.err
	}
	return l.RESTMapper.RESTMapping(kind, versions...)
}

func (l *lazy) KindsFor(r schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	kinds, err := l.RESTMapper.KindsFor(r)
	var known []schema.GroupVersionKind
	for _, kind := range kinds {
		if kind.Group != "" || l.core {
			known = append(known, kind)
		}
	}
	return known, err
}

func TestResource(t *testing.T) {
	for name, c := range map[string]struct {
		version, resource string
		want              Resource
		missing, wrong    bool
	}{
		"a custom resource": {version: "example.com/v2", resource: "cats", want: Resource{
			schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Cat"},
			schema.GroupVersionResource{Group: "example.com", Version: "v2", Resource: "cats"},
			true,
		}},
		"one of the core group": {version: "v1", resource: "events", want: Resource{
			schema.GroupVersionKind{Version: "v1", Kind: "Event"}, schema.GroupVersionResource{Version: "v1", Resource: "events"}, true,
		}},
		"one without a namespace": {version: "v1", resource: "nodes", want: Resource{
			schema.GroupVersionKind{Version: "v1", Kind: "Node"}, schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, false,
		}},
		"another version":  {version: "example.com/v3", resource: "cats", missing: true},
		"another group":    {version: "example.org/v1", resource: "cats", missing: true},
		"no group":         {version: "v1", resource: "cats", missing: true},
		"a singular":       {version: "example.com/v1", resource: "cat", missing: true},
		"a kind":           {version: "example.com/v1", resource: "Cat", missing: true},
		"a subresource":    {version: "example.com/v1", resource: "cats/status", missing: true},
		"no version":       {version: "", resource: "cats", missing: true},
		"a broken version": {version: "a/b/c", resource: "cats", wrong: true},
	} {
		t.Run(name, func(t *testing.T) {
			env := &Environment{Mapper: &lazy{RESTMapper: served()}}
			got, err := env.Resource(c.version, c.resource)
			if (err != nil) != (c.missing || c.wrong) || meta.IsNoMatchError(err) != c.missing {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestResourceWhileTheAPIServerIsAway(t *testing.T) {
	away := errors.New("connection refused")
	for _, version := range []string{"v1", "example.com/v1"} {
		env := &Environment{Mapper: &lazy{RESTMapper: served(), err: away}}
		if _, err := env.Resource(version, "cats"); !errors.Is(err, away) || meta.IsNoMatchError(err) {
			t.Errorf("%s: %v", version, err)
		}
	}
}

func TestObjectsOfResources(t *testing.T) {
	if _, ok := Revisions.New().(*v1alpha1.ControllerRevision); !ok {
		t.Errorf("a revision is a %T", Revisions.New())
	}
	if _, ok := Revisions.NewList().(*v1alpha1.ControllerRevisionList); !ok {
		t.Errorf("revisions are a %T", Revisions.NewList())
	}
	cats := Resource{Kind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Cat"}}
	if _, ok := cats.New().(*unstructured.Unstructured); !ok || cats.New().GetObjectKind().GroupVersionKind() != cats.Kind {
		t.Errorf("a cat is a %T", cats.New())
	}
	list, ok := cats.NewList().(*unstructured.UnstructuredList)
	if !ok || list.GetKind() != "CatList" || list.GetAPIVersion() != "example.com/v1" {
		t.Errorf("cats are %v", list)
	}
}

var (
	pods           = Resource{schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, schema.GroupVersionResource{Version: "v1", Resource: "pods"}, true}
	secretResource = Resource{schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, true}
)

// TestLedgerOfRunningInformers: children are indexed while their informer runs, twice is once, and the ledger looks into
// the stores of all.
func TestLedgerOfRunningInformers(t *testing.T) {
	inWorld(t, func(w *world) {
		env := w.environment()
		child := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "child", OwnerReferences: []metav1.OwnerReference{{UID: "p", Controller: new(true)}},
		}}
		if err := w.client.Create(w.ctx, child); err != nil {
			t.Fatal(err)
		}
		informer, err := env.Cache.GetInformer(w.ctx, pods.New())
		if err != nil {
			t.Fatal(err)
		}
		settle(time.Second)
		ledger, err := env.LedgerOf(w.ctx, []Resource{Revisions, pods}, []Resource{configMapResource})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := env.Index(w.ctx, pods); err != nil {
				t.Fatal(err)
			}
		}
		indexer := informer.(toolscache.SharedIndexInformer).GetIndexer()
		if found, err := indexer.ByIndex("field:"+ownership.ControllerIndex, "p"); err != nil || len(found) != 1 {
			t.Errorf("%v, %v", found, err)
		}
		settle(time.Second)
		for _, r := range []Resource{pods, configMapResource, Revisions} {
			o := r.New()
			o.SetNamespace("ns")
			o.SetName("written")
			if err := w.client.Create(w.ctx, o); err != nil {
				t.Fatal(err)
			}
			settle(time.Second)
			ledger.Deleted("p", r.Resource.GroupResource(), o)
			if ledger.Unseen("p") == "" {
				t.Errorf("the ledger does not see that %s still hold what was deleted", r)
			}
			ledger.Forget("p")
		}
	})
}

// TestIndexDoesNotWait: a kind that cannot be listed holds up nobody.
func TestIndexDoesNotWait(t *testing.T) {
	inWorld(t, func(w *world) {
		w.caches.listing("Secret", forbidden())
		env := w.environment()
		ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
		defer cancel()
		before := time.Now()
		if err := env.Index(ctx, secretResource); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(before); took != 0 {
			t.Errorf("it took %s", took)
		}
	})
}

// TestKindsAreLetGo: a kind is watched as long as somebody needs it and a little longer, so that a new start lists nothing.
func TestKindsAreLetGo(t *testing.T) {
	inWorld(t, func(w *world) {
		env := w.environment()
		hold := func(r Resource, times int) (letGo context.CancelFunc) {
			ctx, cancel := context.WithCancel(w.ctx)
			for range times {
				if err := env.Index(ctx, r); err != nil {
					t.Fatal(err)
				}
			}
			return cancel
		}
		expect := func(want string) {
			t.Helper()
			settle(linger)
			if got := w.caches.watched(); got != want {
				t.Errorf("watched: %q, not %q", got, want)
			}
		}
		first, second, other := hold(pods, 3), hold(pods, 1), hold(secretResource, 1)
		_ = hold(configMapResource, 1)
		expect("ConfigMap Pod Secret")
		first()
		other()
		settle(linger / 2)
		other = hold(secretResource, 1) // it comes back in time
		expect("ConfigMap Pod Secret")
		second()
		expect("ConfigMap Secret")
		other()
		expect("ConfigMap")
		defer hold(pods, 1)()
		expect("ConfigMap Pod")
	})
}
