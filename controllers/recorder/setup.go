package recorder

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/cairn-dev/cairn/api/cairn/v1alpha1"
	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/internal/hosting"
	"github.com/cairn-dev/cairn/internal/schemas"
	"github.com/cairn-dev/cairn/internal/watching"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

// This file makes a controller of each HistoryPolicy.

// Name is that of the controller in a manager.
const Name = "recorder"

// Setup adds to mgr what runs a controller for each HistoryPolicy. It returns an error if mgr cannot take it. mgr's
// scheme must have the types of api/cairn/v1alpha1.
//
// as returns the API server with the rights of the account that a policy names, until a context ends.
func Setup(ctx context.Context, mgr ctrl.Manager, shared *hosting.Host, as Account) error {
	// The revisions of all policies are in the manager's cache, beside those of other controllers.
	revisions := map[schema.GroupResource]client.Object{history.AppsResource: &appsv1.ControllerRevision{}}
	if _, err := ownership.NewConsistencyStoreFor(ctx, mgr, revisions, nil); err != nil {
		return err
	}
	asker, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("ask the API server for its schemas: %w", err)
	}
	own := &hosting.Host{Server: shared.Server, Workers: shared.Workers, Recorder: mgr.GetEventRecorder("history-recorder")}
	f := &factory{Host: own, manager: manager{mgr.GetClient(), mgr.GetAPIReader(), mgr.GetCache()}, schemas: asker.OpenAPIV3()}
	return hosting.Supervise(mgr, own, hosting.Kind[*v1alpha1.HistoryPolicy]{
		Name: Name, Noun: "recorder", Known: discloses,
		Build: func(ctx context.Context, policy *v1alpha1.HistoryPolicy) (*hosting.Controller, error) {
			if policy.DeletionTimestamp != nil { // it records nothing, whatever account it names
				return f.remover(policy), nil
			}
			server, err := as(ctx, policy)
			if err != nil {
				return nil, err
			}
			return f.as(server).build(ctx, policy)
		},
		Status: func(p *v1alpha1.HistoryPolicy) hosting.Status {
			return hosting.Status{ObservedGeneration: p.Status.ObservedGeneration, Conditions: p.Status.Conditions}
		},
	})
}

// discloses says who may read what a policy records: rights on revisions are not those on what they are made from.
func discloses(policy *v1alpha1.HistoryPolicy) string {
	left := ", but for values that look like secrets"
	if policy.Spec.AllowSensitive {
		left = ", secrets among it"
	}
	return fmt.Sprintf("who may read ControllerRevisions there may read what it records of %s%s, also of versions that were replaced",
		policy.Spec.Resource.Resource, left)
}

// Account returns the API server with the rights that a policy names, until ctx ends. Errors are those of a
// [hosting.Build].
type Account func(ctx context.Context, policy client.Object) (*watching.Server, error)

// factory makes controllers.
type factory struct {
	// Host reads what is recorded, with the rights of the policy's account.
	*hosting.Host

	manager manager
	schemas openapi.Client
}

// manager reads policies and revisions, and writes, with the manager's rights.
type manager struct {
	client client.Client
	live   client.Reader
	cache  cache.Cache
}

// as returns a factory that reads what is recorded from another server.
func (f *factory) as(server *watching.Server) *factory {
	host := *f.Host
	host.Server = server
	out := *f
	out.Host = &host
	return &out
}

// past reads past every cache: revisions with the manager's rights, what is recorded with those of the account.
type past struct{ revisions, objects client.Reader }

func (p past) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return p.of(o).Get(ctx, key, o, opts...)
}

func (p past) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return p.of(list).List(ctx, list, opts...)
}

func (p past) of(o any) client.Reader {
	switch o.(type) {
	case *appsv1.ControllerRevision, *appsv1.ControllerRevisionList:
		return p.revisions
	default:
		return p.objects
	}
}

// build makes the controller that a policy describes, unless it is terminating. Errors are for its condition: see
// [hosting.Build].
func (f *factory) build(ctx context.Context, policy *v1alpha1.HistoryPolicy) (*hosting.Controller, error) {
	if err := f.finalizer(ctx, policy, policy.Spec.WhenDeleted == v1alpha1.Delete); err != nil {
		return nil, err
	}
	if err := validate(policy); err != nil {
		return nil, err
	}
	var all v1alpha1.HistoryPolicyList
	if err := f.manager.client.List(ctx, &all); err != nil {
		return nil, fmt.Errorf("list policies: %w", err)
	}
	if other := overlapping(policy, all.Items); other != nil {
		return nil, refused(Overlaps, "HistoryPolicy %s, which is older, records %s; narrow or delete one of the two",
			other.Name, policy.Spec.Resource.Resource)
	}
	return f.recording(ctx, policy)
}

// describe asks the API server about a resource.
func (f *factory) describe(r v1alpha1.RecordedResource) (described, error) {
	found, err := f.Resource(r.APIVersion, r.Resource)
	if err != nil {
		return described{}, err
	}
	out := described{Resource: found}
	if err := f.fields(found, &out); err != nil {
		return described{}, err
	}
	out.scaled, err = f.HasScale(found)
	return out, err
}

// fields asks which there are, if there is anybody to ask.
func (f *factory) fields(of watching.Resource, out *described) error {
	if f.schemas == nil {
		return nil
	}
	d, err := schemas.Fetch(f.schemas, of.Kind.GroupVersion())
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || d == nil && err == nil:
	case err != nil:
		return fmt.Errorf("read the API server's schema of %s: %w", of.Kind.GroupVersion(), err)
	default:
		out.fields, _ = d.Fields(of.Kind)
	}
	return nil
}

// Build returns the controller of one policy for a host that runs no others, and whose cache has the revisions, wired
// by [ownership.NewConsistencyStoreFor]. It leaves the policy's finalizer and its conditions alone: they are the
// supervisor's. Errors are those of [hosting.Build].
func Build(ctx context.Context, h *hosting.Host, policy *v1alpha1.HistoryPolicy) (*hosting.Controller, error) {
	f := &factory{Host: h, manager: manager{h.Client, h.Live, h.Cache}}
	return f.recording(ctx, policy)
}

// recording is the controller of a policy that is not terminating and has no rival.
func (f *factory) recording(ctx context.Context, policy *v1alpha1.HistoryPolicy) (*hosting.Controller, error) {
	resource, err := f.describe(policy.Spec.Resource)
	if err != nil {
		return nil, err
	}
	s, err := read(policy, resource)
	if err != nil {
		return nil, err
	}
	return f.controller(ctx, s)
}

// controller wires the controller of one policy: its consistency store, its log, and which event enqueues which object.
func (f *factory) controller(ctx context.Context, s *settings) (*hosting.Controller, error) {
	consistency, err := f.consistency(ctx, s)
	if err != nil {
		return nil, err
	}
	r := newReconciler(f, s, consistency)
	parents := r.Parents()
	sources := []source.Source{
		source.Func(r.counts.run),
		&watching.Events{Cache: f.Cache, Object: s.newParent(), Handler: r.parentEvents()},
		&watching.Events{Cache: f.manager.cache, Object: &appsv1.ControllerRevision{}, Handler: r.ChildEvents(parents.Router())},
	}
	if s.namespaces != nil && s.resource.Namespaced {
		namespace := &unstructured.Unstructured{}
		namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		sources = append(sources, &watching.Events{Cache: f.Cache, Object: namespace, Handler: inNamespace(parents)})
	}
	return &hosting.Controller{Reconciler: r, Limiter: r.Limiter(), Sources: sources, Close: r.Close}, nil
}

// consistency store is over the store of the objects, and over that of their revisions.
func (f *factory) consistency(ctx context.Context, s *settings) (*ownership.ConsistencyStore, error) {
	stores := map[schema.GroupResource]ownership.Store{}
	add := func(from cache.Cache, resource schema.GroupResource, o client.Object) error {
		informer, err := from.GetInformer(ctx, o, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch %s: %w", resource, err)
		}
		shared, ok := informer.(toolscache.SharedIndexInformer)
		if !ok {
			return fmt.Errorf("the cache of %s is a %T, which has no store to read our own writes from", resource, informer)
		}
		stores[resource] = shared.GetStore()
		return nil
	}
	if err := add(f.manager.cache, history.AppsResource, &appsv1.ControllerRevision{}); err != nil {
		return nil, err
	}
	if err := add(f.Cache, s.resource.Resource.GroupResource(), s.newParent()); err != nil {
		return nil, err
	}
	return ownership.NewConsistencyStore(stores), nil
}

// newReconciler returns a Reconciler for one policy.
func newReconciler(f *factory, s *settings, consistency *ownership.ConsistencyStore) *Reconciler {
	r := &Reconciler{settings: s, factory: f}
	format := s.format(r.authors.of)
	live := past{revisions: f.manager.live, objects: f.Live}
	r.Controller = pass.New(pass.Config{
		Kind: pass.Kind{
			GVK: s.resource.Kind, Resource: s.resource.Resource.GroupResource(), New: s.newParent, NewList: s.resource.NewList,
			ClusterScoped: !s.resource.Namespaced, Selector: format.Selector,
		},
		Client: f.manager.client, Live: live, Cache: f.Cache, Consistency: consistency, Recorder: f.Recorder, Clock: f.Clock, Run: r.pass,
	})
	r.counts = newCounts(f.manager.client, f.Clock, s.policy)
	r.log = history.New(format, history.Options{
		Client: f.manager.client, Live: live, Lists: f.manager.cache, Indexed: true, Mine: mine, Consistency: consistency,
		Reread: func(fresh client.Object) { r.authors.note(fresh, s.target) },
	})
	r.OnForget(r.log.Forget)
	r.OnForget(r.authors.forget)
	return r
}

// inNamespace enqueues the objects of a namespace whose labels changed.
func inNamespace(parents ownership.Parents) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, namespace client.Object) []reconcile.Request {
		var out []reconcile.Request
		for _, name := range parents.Select(ctx, namespace.GetName(), func(client.Object) bool { return true }) {
			out = append(out, reconcile.Request{NamespacedName: name})
		}
		return out
	})
}
