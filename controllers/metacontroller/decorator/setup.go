package decorator

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/hosting"
	"github.com/cairn-dev/cairn/internal/metacontroller/children"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
	"github.com/cairn-dev/cairn/internal/metacontroller/host"
	"github.com/cairn-dev/cairn/internal/metacontroller/related"
	"github.com/cairn-dev/cairn/internal/watching"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

// This file makes a controller of each DecoratorController.

// remembered is how many attachments of one DecoratorController are remembered beside what the cache holds.
const remembered = 4096

// Name is that of the controller in a manager.
const Name = "decorator"

// Setup adds to mgr what runs a controller for each DecoratorController. It returns an error if mgr cannot take it.
// mgr's scheme must have the types of api/metacontroller/v1alpha1.
func Setup(mgr ctrl.Manager, env *host.Environment) error {
	return hosting.Supervise(mgr, env.Host, hosting.Kind[*v1alpha1.DecoratorController]{
		Name: Name, Noun: "controller", Selector: env.Selector,
		Status: func(dc *v1alpha1.DecoratorController) hosting.Status { return hosting.Status(dc.Status) },
		Build: func(ctx context.Context, dc *v1alpha1.DecoratorController) (*hosting.Controller, error) {
			own, err := env.For(ctx, dc)
			if err != nil {
				return nil, err
			}
			return Build(ctx, own, dc)
		},
	})
}

// Build makes the controller that dc describes. [Setup] calls it for each DecoratorController; call it to run one
// without a manager that hosts others. The errors are for the condition of dc: see [hosting.Build].
func Build(ctx context.Context, env *host.Environment, dc *v1alpha1.DecoratorController) (*hosting.Controller, error) {
	if dc.Spec.Hooks == nil {
		return nil, &hosting.Error{Reason: "NoHooks", Err: errors.New("spec.hooks: no hooks defined")}
	}
	s, err := read(dc, env)
	if err != nil {
		return nil, err
	}
	plain := make([]watching.Resource, 0, len(s.resources))
	for _, d := range s.resources {
		if d.status, err = env.HasStatus(d.Resource); err != nil {
			return nil, err
		}
		plain = append(plain, d.Resource)
	}
	consistency, err := env.ConsistencyOf(ctx, s.attachments, plain)
	if err != nil {
		return nil, err
	}
	identity, err := env.Controller(hook.Decorator, dc, s.attachments)
	if err != nil {
		return nil, err
	}
	declared := dc.Spec.Hooks
	h, err := env.Hooks(identity, declared.Sync, declared.Finalize, declared.Customize, dc.Spec.EndpointConfigs)
	if err != nil {
		return nil, err
	}
	r := newReconciler(env, s, consistency)
	r.forgotten = env.Memory.Forget
	if h.Sync != nil {
		r.sync = h.Sync
	}
	if h.Finalize != nil {
		r.finalize = h.Finalize
	}
	return &hosting.Controller{Reconciler: r, Limiter: r.Limiter(), Sources: r.sources(ctx, env, dc, h), Close: func() {
		h.Close()
		r.Close()
	}}, nil
}

// sources enqueue objects: for their own changes, for those of attachments and of related objects, and periodically.
func (r *Reconciler) sources(ctx context.Context, env *host.Environment, dc *v1alpha1.DecoratorController, h *host.Hooks) []source.Source {
	everything := func() []types.NamespacedName { return r.everything(ctx) }
	resync := watching.NewResync(dc.Spec.ResyncPeriodSeconds, everything, env.Clock)
	r.resync = resync
	out := []source.Source{resync}
	version := dc.Spec.Hooks.Customize.EffectiveVersion()
	for _, d := range r.resources {
		objects := related.New(env.Server, h.Customize, version, d.Resource)
		r.related[d.Kind.GroupKind()] = objects
		out = append(out, ofKind{objects.Source(), d},
			&watching.Events{Cache: env.Cache, Object: d.New(), Handler: r.objectEvents(d)})
	}
	for _, a := range r.attachments {
		out = append(out, &watching.Events{Cache: env.Cache, Object: a.New(), Handler: r.attachmentEvents()})
	}
	return out
}

// newReconciler returns a Reconciler without hooks.
func newReconciler(env *host.Environment, s *settings, consistency *ownership.ConsistencyStore) *Reconciler {
	r := &Reconciler{
		settings: s,
		related:  map[schema.GroupKind]relatedObjects{},
	}
	r.Controller = pass.New(pass.Config{
		// Requests name objects of several kinds: see Reconcile.
		Kind:   pass.Kind{New: func() client.Object { return &unstructured.Unstructured{} }},
		Client: env.Client, Live: env.Live, Cache: env.Cache, Consistency: consistency, Recorder: env.Recorder, Clock: env.Clock,
		Run: r.run, Deleted: true, Stale: []error{watching.ErrNotSynced},
	})
	r.OnUnknownOutcome(func(object types.UID) { r.confirmed.Delete(object) })
	r.kinds = children.NewKinds(r.Controller, s.attachments, nil)
	r.keeper = children.New(children.Config{
		Client: env.Client, Live: env.Live, Cache: env.Cache, Consistency: consistency, Clock: env.Clock, FieldManager: env.FieldManager,
		Kinds: r.kinds, Size: remembered, Memo: env.Compared,
	})
	return r
}
