package decorator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/metacontroller/apply"
	"github.com/cairn-dev/cairn/internal/metacontroller/children"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
	"github.com/cairn-dev/cairn/internal/metacontroller/host"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

// This file makes a controller of each DecoratorController.

// remembered is how many attachments of one DecoratorController are remembered beside what the cache holds.
const remembered = 4096

// Name is that of the controller in a manager.
const Name = "decorator"

// Setup adds to mgr what runs a controller for each DecoratorController there is. It returns an error if mgr cannot take it.
// mgr's scheme must have the types of api/metacontroller/v1alpha1.
func Setup(mgr ctrl.Manager, o host.Options) error {
	env, err := host.NewEnvironment(mgr, o)
	if err != nil {
		return err
	}
	config := mgr.GetConfig()
	if o.Config != nil {
		config = o.Config
	}
	served, err := discovery.NewDiscoveryClientForConfigAndClient(config, mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("make a discovery client: %w", err)
	}
	return host.Supervise(mgr, env, Name, func(ctx context.Context, dc *v1alpha1.DecoratorController) (*host.Controller, error) {
		return Build(ctx, env, served, dc)
	})
}

// Build makes the controller that dc describes. [Setup] does so for each DecoratorController there is; call it to run one
// without a manager that hosts others. The errors are for the condition of dc: see [host.Build].
func Build(ctx context.Context, env *host.Environment, served Lister, dc *v1alpha1.DecoratorController) (*host.Controller, error) {
	b := builder{env: env, served: served}
	return b.build(ctx, dc)
}

// builder makes controllers.
type builder struct {
	env    *host.Environment
	served Lister
}

// Lister lists what the API server serves of a version, subresources included. A discovery client does.
type Lister interface {
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
}

// build returns the controller that dc describes.
func (b *builder) build(ctx context.Context, dc *v1alpha1.DecoratorController) (*host.Controller, error) {
	if dc.Spec.Hooks == nil {
		return nil, &host.Error{Reason: "NoHooks", Err: errors.New("spec.hooks: no hooks defined")}
	}
	s, err := read(dc, b.env)
	if err != nil {
		return nil, err
	}
	if err := b.findStatuses(s); err != nil {
		return nil, err
	}
	plain := make([]host.Resource, 0, len(s.resources))
	for _, d := range s.resources {
		plain = append(plain, d.Resource)
	}
	ledger, err := b.env.LedgerOf(ctx, s.attachments, plain)
	if err != nil {
		return nil, err
	}
	h, err := b.hooks(dc, s)
	if err != nil {
		return nil, err
	}
	r := newReconciler(s, b.env.Cache, b.env.Client, b.env.Live, ledger, b.env.Recorder, b.env.Clock, b.env.FieldManager, b.env.Compared)
	r.forgotten = b.env.Memory.Forget
	if h.Sync != nil {
		r.sync = h.Sync
	}
	if h.Finalize != nil {
		r.finalize = h.Finalize
	}
	return &host.Controller{Reconciler: r, Limiter: r.Limiter(), Sources: b.sources(ctx, dc, r, h), Close: h.Close}, nil
}

// findStatuses finds out which kinds have a status that is a resource of its own.
func (b *builder) findStatuses(s *settings) error {
	for _, d := range s.resources {
		list, err := b.served.ServerResourcesForGroupVersion(d.Resource.Resource.GroupVersion().String())
		if err != nil {
			return fmt.Errorf("find out whether %s have a status: %w", d, err)
		}
		d.status = slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool {
			return r.Name == d.Resource.Resource.Resource+"/status"
		})
	}
	return nil
}

// hooks makes the hooks that dc declares.
func (b *builder) hooks(dc *v1alpha1.DecoratorController, s *settings) (*host.Hooks, error) {
	c, err := b.env.Controller(hook.Decorator, dc, s.attachments)
	if err != nil {
		return nil, err
	}
	declared := dc.Spec.Hooks
	return b.env.Hooks(c, declared.Sync, declared.Finalize, declared.Customize, dc.Spec.EndpointConfigs)
}

// sources wake objects: for their own changes, for those of attachments and of related objects, and from time to time.
func (b *builder) sources(ctx context.Context, dc *v1alpha1.DecoratorController, r *Reconciler, h *host.Hooks) []source.Source {
	everything := func() []types.NamespacedName { return r.everything(ctx) }
	resync := host.NewResync(dc.Spec.ResyncPeriodSeconds, everything, b.env.Clock)
	r.resync = resync
	out := []source.Source{resync}
	version := hook.Version(dc.Spec.Hooks.Customize.EffectiveVersion())
	for _, d := range r.resources {
		related := b.env.NewRelated(h.Customize, version, d.Resource)
		r.related[d.Kind.GroupKind()] = related
		out = append(out, ofKind{related.Source(), d},
			&host.Events{Cache: b.env.Cache, Object: d.New(), Handler: r.objectEvents(d)})
	}
	for _, a := range r.attachments {
		out = append(out, &host.Events{Cache: b.env.Cache, Object: a.New(), Handler: r.attachmentEvents()})
	}
	return out
}

// newReconciler returns a Reconciler without hooks. It reads from cache and, past it, from live. fieldManager, unless it is
// empty, is the name under which attachments are kept by server-side apply. compared may be nil.
func newReconciler(
	s *settings, cache client.Reader, c client.Client, live client.Reader, ledger *ownership.Ledger, recorder events.EventRecorder,
	now clock.PassiveClock, fieldManager string, compared *apply.Memo,
) *Reconciler {
	r := &Reconciler{
		settings: s,
		related:  map[schema.GroupKind]relatedObjects{},
		owned:    map[schema.GroupKind]*pass.Children[*unstructured.Unstructured]{},
	}
	r.Controller = pass.New(pass.Config{
		New:    func() client.Object { return &unstructured.Unstructured{} }, // requests name objects of several kinds: see Reconcile
		Client: c, Live: live, Cache: cache, Ledger: ledger, Recorder: recorder, Clock: now,
		Run: r.run, Deleted: true, Stale: []error{host.ErrNotSynced}, FirstRetry: host.FirstRetry, LastRetry: host.LastRetry,
	})
	r.OnUncertain(func(object types.UID) { r.confirmed.Delete(object) })
	resources := map[schema.GroupKind]schema.GroupResource{}
	for _, a := range s.attachments {
		kind := a.Kind.GroupKind()
		resources[kind] = a.Resource.GroupResource()
		r.owned[kind] = pass.NewChildren[*unstructured.Unstructured](r.Controller, a.Kind, a.Resource.GroupResource(), a.NewList)
	}
	r.keeper = children.New(children.Config{
		Client: c, Live: live, Cache: cache, Ledger: ledger, Clock: now, FieldManager: fieldManager, Resources: resources,
		Size: remembered, Memo: compared,
	})
	return r
}
