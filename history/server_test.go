package history_test

// An API server for the tests of this package: controller-runtime's fake client, with what it lacks and the log relies
// on: UIDs, UID preconditions, dry runs that know defaults. Every request is written down, and any can be made to fail,
// before it is applied or after.

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
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cairn-dev/cairn/ownership"
)

var revisions = schema.GroupResource{Group: "apps", Resource: "controllerrevisions"}

// call is one request. Verbs are those of RBAC, except that a dry run has one of its own.
type call struct {
	verb, kind, name string
	body             string
	uid, version     string // preconditions
}

func (c call) String() string { return fmt.Sprintf("%s %s %s", c.verb, c.kind, c.name) }

type server struct {
	client.Client // as the code under test sees it

	t    testing.TB
	raw  client.WithWatch // without any of what is in this file
	mu   sync.Mutex
	log  []call
	uids int
	// before may refuse a request; after may say that one failed that was carried out.
	before, after func(call) error
}

func newServer(t testing.TB, objects ...client.Object) *server {
	t.Helper()
	s := &server{t: t}
	s.raw = fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).
		WithIndex(&appsv1.ControllerRevision{}, ownership.ControllerIndex, ownership.IndexController).
		WithObjects(objects...).Build()
	s.Client = interceptor.NewClient(s.raw, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return s.serve(call{verb: "get", kind: kindOf(o), name: key.Name}, func() error { return c.Get(ctx, key, o, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return s.serve(call{verb: "list", kind: kindOf(list)}, func() error { return c.List(ctx, list, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return s.serve(call{verb: "create", kind: kindOf(o), name: o.GetName()}, func() error {
				s.uids++
				o.SetUID(types.UID(fmt.Sprintf("uid-%d", s.uids)))
				return c.Create(ctx, o, opts...)
			})
		},
		Delete: s.delete,
		Patch:  s.patch,
	})
	return s
}

func kindOf(o any) string {
	name := fmt.Sprintf("%T", o)
	return name[strings.LastIndex(name, ".")+1:]
}

// serve writes a request down and carries it out, one at a time.
func (s *server) serve(c call, do func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, c)
	if s.before != nil {
		if err := s.before(c); err != nil {
			return err
		}
	}
	if err := do(); err != nil {
		return err
	}
	if s.after != nil {
		return s.after(c)
	}
	return nil
}

func (s *server) delete(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
	var options client.DeleteOptions
	options.ApplyOptions(opts)
	request := call{verb: "delete", kind: kindOf(o), name: o.GetName()}
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
}

func (s *server) patch(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
	var options client.PatchOptions
	options.ApplyOptions(opts)
	body, err := patch.Data(o)
	if err != nil {
		return err
	}
	request := call{verb: "patch", kind: kindOf(o), name: o.GetName(), body: string(body)}
	if len(options.DryRun) > 0 {
		request.verb = "dry-run"
		return s.serve(request, func() error { return s.dryRun(ctx, o, body) })
	}
	var metadata struct {
		Metadata struct{ UID, ResourceVersion string }
	}
	if err := json.Unmarshal(body, &metadata); err != nil {
		return err
	}
	request.uid, request.version = metadata.Metadata.UID, metadata.Metadata.ResourceVersion
	return s.serve(request, func() error {
		if err := s.sameUID(ctx, o, request.uid); err != nil {
			return err
		}
		return c.Patch(ctx, o, patch, opts...)
	})
}

func (s *server) sameUID(ctx context.Context, o client.Object, uid string) error {
	stored := ownership.Blank(o)
	if err := s.raw.Get(ctx, client.ObjectKeyFromObject(o), stored); err != nil || uid == "" || uid == string(stored.GetUID()) {
		return err
	}
	return apierrors.NewConflict(revisions, o.GetName(), errors.New("it has another UID"))
}

// dryRun is a patch of a DaemonSet's template that stores nothing. This server defaults dnsPolicy, like a real one.
func (s *server) dryRun(ctx context.Context, o client.Object, body []byte) error {
	var stored appsv1.DaemonSet
	if err := s.raw.Get(ctx, client.ObjectKeyFromObject(o), &stored); err != nil {
		return err
	}
	var ops []struct {
		Path  string
		Value json.RawMessage
	}
	if err := json.Unmarshal(body, &ops); err != nil {
		return err
	}
	for _, op := range ops {
		switch op.Path {
		case "/metadata/uid", "/metadata/resourceVersion":
			if want := string(op.Value); want != fmt.Sprintf("%q", stored.UID) && want != fmt.Sprintf("%q", stored.ResourceVersion) {
				return apierrors.NewConflict(schema.GroupResource{Resource: "daemonsets"}, o.GetName(), errors.New(op.Path))
			}
		case "/spec/template":
			var template corev1.PodTemplateSpec
			if err := json.Unmarshal(op.Value, &template); err != nil {
				return err
			}
			if template.Spec.DNSPolicy == "" {
				template.Spec.DNSPolicy = corev1.DNSClusterFirst
			}
			if !apiequality.Semantic.DeepEqual(template, stored.Spec.Template) {
				stored.Generation++
			}
		default:
			return apierrors.NewBadRequest("no such path here: " + op.Path)
		}
	}
	stored.DeepCopyInto(o.(*appsv1.DaemonSet))
	return nil
}

// calls returns the requests with one of verbs, or all, and forgets nothing.
func (s *server) calls(verbs ...string) []call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.log), func(c call) bool { return len(verbs) > 0 && !slices.Contains(verbs, c.verb) })
}

func (s *server) writes() []call { return s.calls("create", "patch", "delete") }

// forget starts a new list of requests.
func (s *server) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = nil
}

// fail returns a hook that gives err for requests with that verb.
func fail(verb string, err error) func(call) error {
	return func(c call) error {
		if c.verb == verb {
			return err
		}
		return nil
	}
}
