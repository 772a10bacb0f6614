package daemonset

// An API server and a controller for the tests of writes: controller-runtime's fake client with UIDs, UID preconditions
// and a list of requests, any of which can be made to fail before it is applied or after; the reconciler on top of it,
// with a clock that stands still and events that are kept.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cairn-dev/cairn/ownership"
)

// call is one request.
type call struct {
	verb, kind, name string
	body             string
	uid, version     string // preconditions
	object           client.Object
}

func (c call) String() string { return c.verb + " " + c.kind + " " + c.name }

type server struct {
	client.Client // as the code under test sees it

	t             testing.TB
	raw           client.WithWatch // without any of what is in this file
	mu            sync.Mutex
	log           []call
	uids          int
	before, after func(call) error // before runs unlocked, so that it may wait for other requests
}

func newServer(t testing.TB, objects ...client.Object) *server {
	t.Helper()
	s := &server{t: t}
	s.raw = fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithStatusSubresource(&appsv1.DaemonSet{}).
		WithIndex(&appsv1.ControllerRevision{}, ownership.ControllerIndex, ownership.IndexController).
		WithIndex(&corev1.Pod{}, ownership.ControllerIndex, ownership.IndexController).
		WithObjects(objects...).Build()
	s.Client = interceptor.NewClient(s.raw, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return s.serve(call{verb: "get", kind: typeOf(o), name: key.Name}, func() error { return c.Get(ctx, key, o, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return s.serve(call{verb: "list", kind: typeOf(list)}, func() error { return c.List(ctx, list, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return s.serve(call{verb: "create", kind: typeOf(o), name: o.GetName(), object: o}, func() error {
				s.uids++
				o.SetUID(types.UID(fmt.Sprintf("uid-%d", s.uids)))
				if err := c.Create(ctx, o, opts...); err != nil {
					return err
				}
				return c.Update(ctx, o) // the fake's first version is 1, which no cache can be behind
			})
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			var options client.DeleteOptions
			options.ApplyOptions(opts)
			request := call{verb: "delete", kind: typeOf(o), name: o.GetName()}
			if p := options.Preconditions; p != nil && p.UID != nil {
				request.uid = string(*p.UID)
			}
			if p := options.Preconditions; p != nil && p.ResourceVersion != nil {
				request.version = *p.ResourceVersion
			}
			return s.serve(request, func() error {
				if err := s.sameUID(ctx, o, request.uid); err != nil {
					return err
				}
				return c.Delete(ctx, o, opts...)
			})
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return s.patch(ctx, "patch", o, patch, func() error { return c.Patch(ctx, o, patch, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return s.patch(ctx, "patch "+sub, o, patch, func() error { return c.SubResource(sub).Patch(ctx, o, patch, opts...) })
		},
	})
	return s
}

func typeOf(o any) string {
	name := fmt.Sprintf("%T", o)
	return name[strings.LastIndex(name, ".")+1:]
}

func (s *server) serve(c call, do func() error) error {
	s.mu.Lock()
	s.log = append(s.log, c)
	before := s.before
	s.mu.Unlock()
	if before != nil {
		if err := before(c); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := do(); err != nil {
		return err
	}
	if s.after != nil {
		return s.after(c)
	}
	return nil
}

func (s *server) patch(ctx context.Context, verb string, o client.Object, patch client.Patch, do func() error) error {
	body, err := patch.Data(o)
	if err != nil {
		return err
	}
	var preconditions struct {
		Metadata struct{ UID, ResourceVersion string }
	}
	if err := json.Unmarshal(body, &preconditions); err != nil {
		return err
	}
	p := preconditions.Metadata
	return s.serve(call{verb: verb, kind: typeOf(o), name: o.GetName(), body: string(body), uid: p.UID, version: p.ResourceVersion}, func() error {
		if err := s.sameUID(ctx, o, p.UID); err != nil {
			return err
		}
		return do()
	})
}

func (s *server) sameUID(ctx context.Context, o client.Object, uid string) error {
	stored := ownership.Blank(o)
	if err := s.raw.Get(ctx, client.ObjectKeyFromObject(o), stored); err != nil || uid == "" || uid == string(stored.GetUID()) {
		return err
	}
	return apierrors.NewConflict(schema.GroupResource{}, o.GetName(), errors.New("it has another UID"))
}

// calls returns the requests with one of verbs, or all, in their order.
func (s *server) calls(verbs ...string) []call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.log), func(c call) bool { return len(verbs) > 0 && !slices.Contains(verbs, c.verb) })
}

func (s *server) writes() []call { return s.calls("create", "patch", "patch status", "delete") }

// podWrites returns the writes to pods, as text.
func (s *server) podWrites() []string {
	out := []string{}
	for _, c := range s.writes() {
		if c.kind == "Pod" {
			out = append(out, c.verb+" "+c.name)
		}
	}
	slices.Sort(out)
	return out
}

func (s *server) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = nil
}

// refuse gives err to requests of that verb and kind.
func refuse(verb, kind string, err error) func(call) error {
	return func(c call) error {
		if c.verb == verb && c.kind == kind {
			return err
		}
		return nil
	}
}

// recorder keeps events.
type recorder struct {
	mu     sync.Mutex
	events []string
}

func (r *recorder) Eventf(_, _ runtime.Object, eventtype, reason, _, note string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, eventtype+" "+reason+" "+fmt.Sprintf(note, args...))
}

// with returns the events of one reason.
func (r *recorder) with(reason string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.events), func(e string) bool { return strings.Fields(e)[1] != reason })
}

// world is a server with a reconciler.
type world struct {
	*server

	r      *Reconciler
	events *recorder
	clock  *testingclock.FakeClock
}

// newWorld makes a world where everything is read from the server. stores are what the ledger waits for.
func newWorld(t testing.TB, objects ...client.Object) *world {
	t.Helper()
	return worldOf(newServer(t, objects...), nil, nil)
}

// worldOf makes a world whose cache is another reader than the server, unless that is nil.
func worldOf(s *server, cache client.Reader, stores map[schema.GroupResource]ownership.Store) *world {
	w := &world{server: s, events: &recorder{}, clock: testingclock.NewFakeClock(now)}
	ledger := ownership.NewLedger(stores)
	var c client.Client = s
	if cache != nil {
		c = cached{Client: s, cache: cache}
	}
	w.r = newReconciler(c, s, ledger, w.events, Options{Clock: w.clock})
	return w
}

// cached is a client that reads from something else than it writes to.
type cached struct {
	client.Client
	cache client.Reader
}

func (c cached) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return c.cache.Get(ctx, key, o, opts...)
}

func (c cached) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.cache.List(ctx, list, opts...)
}
