// Package fakeserver is an API server for the tests of controllers: controller-runtime's fake client with what it lacks
// and they rely on, which is UIDs and UID preconditions, and with a list of requests, any of which can be made to fail
// before it is applied or after. [Recorder] keeps events.
//
// What may not come in: a kind's rules, a controller.
package fakeserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cairn-dev/cairn/internal/anyobject"
)

// Call is one request.
type Call struct {
	// Verb is that of RBAC, with the subresource after a space: "patch status", or that of a dry run. Kind is what
	// [TypeOf] says.
	Verb, Kind, Name string
	// Body is the patch, if it is one.
	Body string
	// UID and Version are the preconditions, empty if there are none.
	UID, Version string
	// Object is what was to be created.
	Object client.Object
}

// String returns verb, kind and name.
func (c Call) String() string { return c.Verb + " " + c.Kind + " " + c.Name }

// Server is the API server. The embedded client is the one for the code under test.
type Server struct {
	client.Client

	// Raw reads and writes without any of what is in this package.
	Raw client.WithWatch
	// Before may refuse a request; it runs unlocked, so that it may wait for other requests. After may return an error for
	// a request that was carried out. Set them while no request runs.
	Before, After func(Call) error

	t    testing.TB
	mu   sync.Mutex
	log  []Call
	uids int
}

// New returns a server of what the built-in workloads need that holds objects, as they are. [NewWith] serves other
// kinds.
func New(t testing.TB, objects ...client.Object) *Server {
	t.Helper()
	return NewWith(t, builtin, objects...)
}

func serve(t testing.TB, raw client.WithWatch) *Server {
	t.Helper()
	s := &Server{t: t, Raw: raw}
	s.Client = interceptor.NewClient(s.Raw, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return s.Serve(Call{Verb: "get", Kind: TypeOf(o), Name: key.Name}, func() error { return c.Get(ctx, key, o, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return s.Serve(Call{Verb: "list", Kind: TypeOf(list)}, func() error { return c.List(ctx, list, opts...) })
		},
		Create: s.create,
		Delete: s.delete,
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			var options client.PatchOptions
			options.ApplyOptions(opts)
			if !dryRun(options.DryRun) {
				return s.patch(ctx, "patch", o, patch, func() error { return c.Patch(ctx, o, patch, opts...) })
			}
			body, err := patch.Data(o)
			if err != nil {
				return err
			}
			return s.patch(ctx, TryPatch, o, patch, func() error { return s.tryPatch(ctx, o, body) })
		},
		SubResourcePatch: func(
			ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
		) error {
			return s.patch(ctx, "patch "+sub, o, patch, func() error { return c.SubResource(sub).Patch(ctx, o, patch, opts...) })
		},
	})
	return s
}

func (s *Server) create(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
	var options client.CreateOptions
	options.ApplyOptions(opts)
	if dryRun(options.DryRun) {
		return s.tryCreate(ctx, o)
	}
	return s.Serve(Call{Verb: "create", Kind: TypeOf(o), Name: o.GetName(), Object: o}, func() error {
		s.uids++
		o.SetUID(types.UID(fmt.Sprintf("uid-%d", s.uids)))
		if err := c.Create(ctx, o, opts...); err != nil {
			return err
		}
		return c.Update(ctx, o) // the fake's first version is 1: no cache can be older
	})
}

func (s *Server) delete(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
	var options client.DeleteOptions
	options.ApplyOptions(opts)
	request := Call{Verb: "delete", Kind: TypeOf(o), Name: o.GetName()}
	if p := options.Preconditions; p != nil && p.UID != nil {
		request.UID = string(*p.UID)
	}
	if p := options.Preconditions; p != nil && p.ResourceVersion != nil {
		request.Version = *p.ResourceVersion
	}
	return s.Serve(request, func() error {
		if err := s.sameUID(ctx, o, request.UID); err != nil {
			return err
		}
		return c.Delete(ctx, o, opts...)
	})
}

func (s *Server) patch(ctx context.Context, verb string, o client.Object, patch client.Patch, do func() error) error {
	body, err := patch.Data(o)
	if err != nil {
		return err
	}
	var p metav1.PartialObjectMetadata
	if err := json.Unmarshal(body, &p); err != nil {
		return err
	}
	request := Call{Verb: verb, Kind: TypeOf(o), Name: o.GetName(), Body: string(body), UID: string(p.UID), Version: p.ResourceVersion}
	return s.Serve(request, func() error {
		if err := s.sameUID(ctx, o, request.UID); err != nil {
			return err
		}
		return do()
	})
}

// Serve records a request and carries it out, unless it is to fail. Tests that need a response which the fake client
// cannot give, to a dry run say, override a method of the client and call Serve themselves.
func (s *Server) Serve(c Call, do func() error) error {
	s.mu.Lock()
	s.log = append(s.log, c)
	before := s.Before
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
	if s.After != nil {
		return s.After(c)
	}
	return nil
}

func (s *Server) sameUID(ctx context.Context, o client.Object, uid string) error {
	stored := anyobject.Blank(o)
	if err := s.Raw.Get(ctx, client.ObjectKeyFromObject(o), stored); err != nil || uid == "" || uid == string(stored.GetUID()) {
		return err
	}
	return apierrors.NewConflict(schema.GroupResource{}, o.GetName(), errors.New("it has another UID"))
}

// TypeOf returns the name of an object's Go type, which is what [Call.Kind] holds, and the kind of an unstructured
// object.
func TypeOf(o any) string {
	if u, ok := o.(runtime.Unstructured); ok {
		return u.GetObjectKind().GroupVersionKind().Kind
	}
	name := fmt.Sprintf("%T", o)
	return name[strings.LastIndex(name, ".")+1:]
}

// Calls returns the requests with one of verbs, or all, in their order.
func (s *Server) Calls(verbs ...string) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.log), func(c Call) bool { return len(verbs) > 0 && !slices.Contains(verbs, c.Verb) })
}

// Count is how many requests with a verb there were about objects of a kind.
func (s *Server) Count(verb, kind string) (n int) {
	for _, c := range s.Calls(verb) {
		if c.Kind == kind {
			n++
		}
	}
	return n
}

// Writes returns the requests that change something, in their order.
func (s *Server) Writes() []Call { return s.Calls("create", "patch", "patch status", "delete") }

// WritesTo returns the writes to one kind as text, "verb name", sorted.
func (s *Server) WritesTo(kind string) []string {
	out := []string{}
	for _, c := range s.Writes() {
		if c.Kind == kind {
			out = append(out, c.Verb+" "+c.Name)
		}
	}
	slices.Sort(out)
	return out
}

// Forget empties the list of requests.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = nil
}

// Refuse gives err to requests of that verb and kind; it is for [Server.Before] and [Server.After].
func Refuse(verb, kind string, err error) func(Call) error {
	return func(c Call) error {
		if c.Verb == verb && c.Kind == kind {
			return err
		}
		return nil
	}
}
