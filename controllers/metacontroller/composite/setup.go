package composite

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
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

// This file makes a running controller of each CompositeController: hooks, indexes, consistency store, and which event
// enqueues which parent.

// childrenSize is for how many children one hosted controller remembers something. The rest is computed again.
const childrenSize = 16384

// Setup adds to mgr what runs a controller for each CompositeController. It returns an error if mgr cannot take it.
// mgr's scheme must have the types of api/metacontroller/v1alpha1.
func Setup(mgr ctrl.Manager, env *host.Environment) error {
	if err := addOverlaps(mgr, env, Name+"-overlap"); err != nil {
		return err
	}
	return hosting.Supervise(mgr, env.Host, hosting.Kind[*v1alpha1.CompositeController]{
		Name: Name, Noun: "controller", Selector: env.Selector,
		Status: func(cc *v1alpha1.CompositeController) hosting.Status { return hosting.Status(cc.Status) },
		Build: func(ctx context.Context, cc *v1alpha1.CompositeController) (*hosting.Controller, error) {
			own, err := env.For(ctx, cc)
			if err != nil {
				return nil, err
			}
			return build(ctx, own, cc, listIn(mgr.GetCache()))
		},
	})
}

// Build makes the controller of the parents of cc. [Setup] calls it for each CompositeController; call it to run one
// without a manager that hosts others. The errors are for the condition of cc: see [hosting.Build].
func Build(ctx context.Context, env *host.Environment, cc *v1alpha1.CompositeController) (*hosting.Controller, error) {
	return build(ctx, env, cc, nil)
}

// BuildBeside is [Build] for a controller beside others, which may have the same parents: all returns all of them.
func BuildBeside(
	ctx context.Context, env *host.Environment, cc *v1alpha1.CompositeController,
	all func(context.Context) ([]v1alpha1.CompositeController, error),
) (*hosting.Controller, error) {
	return build(ctx, env, cc, all)
}

func build(
	ctx context.Context, env *host.Environment, cc *v1alpha1.CompositeController, others listControllers,
) (*hosting.Controller, error) {
	if cc.Spec.Hooks == nil || cc.Spec.Hooks.Sync == nil {
		return nil, &hosting.Error{Reason: "NoSyncHook", Err: errors.New("spec.hooks.sync is not set, so the desired children are not known")}
	}
	s, err := readSettings(cc, env)
	if err != nil {
		return nil, err
	}
	if err := s.alone(ctx, others); err != nil {
		return nil, err
	}
	hooks, err := newHooks(env, cc, s)
	if err != nil {
		return nil, err
	}
	indexed := s.children
	if s.recorded { // without revisions the right to read them is not needed
		indexed = append([]watching.Resource{watching.Revisions}, indexed...)
	}
	consistency, err := env.ConsistencyOf(ctx, indexed, []watching.Resource{s.parent})
	if err != nil {
		hooks.Close()
		return nil, err
	}
	r := newReconciler(env, s, consistency)
	r.gatherer.others = others
	r.asker.sync = hooks.Sync
	if hooks.Finalize != nil {
		r.asker.finalize = hooks.Finalize
	}
	objects := related.New(env.Server, hooks.Customize, cc.Spec.Hooks.Customize.EffectiveVersion(), s.parent)
	resync := watching.NewResync(cc.Spec.ResyncPeriodSeconds, func() []types.NamespacedName { return r.ours(ctx) }, env.Clock)
	r.asker.related, r.asker.resync = objects, resync
	sources := append(r.sources(env), objects.Source(), resync)
	return &hosting.Controller{Reconciler: r, Limiter: r.Limiter(), Sources: sources, Close: func() {
		hooks.Close()
		r.Close()
	}}, nil
}

func newHooks(env *host.Environment, cc *v1alpha1.CompositeController, s *settings) (*host.Hooks, error) {
	identity, err := env.Controller(hook.Composite, cc, s.children)
	if err != nil {
		return nil, err
	}
	declared := cc.Spec.Hooks
	return env.Hooks(identity, declared.Sync, declared.Finalize, declared.Customize, cc.Spec.EndpointConfigs)
}

// newReconciler returns a reconciler that lacks its hooks.
func newReconciler(env *host.Environment, s *settings, consistency *ownership.ConsistencyStore) *reconciler {
	r := &reconciler{settings: s, memories: &memories{}}
	c := pass.New(pass.Config{
		Kind:   pass.Kind{GVK: s.parent.Kind, Resource: s.parent.Resource.GroupResource(), New: s.parent.New},
		Client: env.Client, Live: env.Live, Cache: env.Cache, Consistency: consistency, Recorder: env.Recorder, Clock: env.Clock,
		Run: r.run, Deleted: true, Stale: []error{watching.ErrNotSynced},
		ProgressDeadline: env.ProgressDeadline, RollBack: s.rollBackWith(env.RollBack),
	})
	c.OnForget(r.forget)
	c.OnUnknownOutcome(r.memories.forgetConfirmed)
	r.Controller = c
	logs := pass.NewLog(c, s.format, false)
	r.gatherer = &gatherer{settings: s, neighbours: &neighbours{settings: s, events: env.Recorder}, memories: r.memories, log: logs}
	kinds := children.NewKinds(c, s.children, r.gatherer.adoptable)
	r.gatherer.kinds = kinds
	keeper := children.New(children.Config{
		Client: env.Client, Live: env.Live, Cache: env.Cache, Consistency: consistency, Clock: env.Clock, FieldManager: env.FieldManager,
		Kinds: kinds, Size: childrenSize, Memo: env.Compared,
	})
	r.asker = &asker{settings: s}
	r.settler = settler{s, env.Cache, env.Clock}
	r.finalizers = finalizers{s, env.Client, consistency}
	r.decider = decider{s, r.asker, keeper, env.Cache, env.Clock}
	r.confirmer = confirmer{kinds, logs}
	r.recorder = recorder{s, logs}
	r.actor = actor{s, keeper}
	r.reporter = reporter{s, c}
	return r
}

// sources enqueue parents for their own events and for those of children and revisions.
func (r *reconciler) sources(env *host.Environment) []source.Source {
	out := []source.Source{&watching.Events{Cache: env.Cache, Object: r.parent.New(), Handler: r.parentEvents()}}
	owned := &forgetting{r.ChildEvents(r.lookup(r.format.ChildSelector).Router()), r.forgetChild(env)}
	for _, kind := range r.children {
		out = append(out, &watching.Events{Cache: env.Cache, Object: kind.New(), Handler: owned})
	}
	if r.recorded {
		logged := r.ChildEvents(r.lookup(r.format.Selector).Router())
		out = append(out, &watching.Events{Cache: env.Cache, Object: &v1alpha1.ControllerRevision{}, Handler: logged})
	}
	return out
}

// lookup finds parents in the cache by their selectors.
func (r *reconciler) lookup(selector func(parent client.Object) (labels.Selector, error)) ownership.Parents {
	return ownership.Parents{
		Reader:        r.Cache,
		Kind:          r.parent.Kind.GroupKind(),
		New:           r.parent.New,
		NewList:       r.parent.NewList,
		ClusterScoped: !r.parent.Namespaced,
		Selector: func(o client.Object) (labels.Selector, error) {
			parent, ok := o.(*unstructured.Unstructured)
			if !ok || !r.matches(parent) {
				return labels.Nothing(), nil
			}
			return selector(parent)
		},
	}
}

// parentEvents enqueues parents for their own events.
func (r *reconciler) parentEvents() handler.EventHandler {
	all := r.ParentEvents()
	return handler.Funcs{
		CreateFunc: all.Create,
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q watching.Queue) {
			if othersVoted(r.name, e) || r.ignoreStatus && pass.StatusOnly(e) {
				return
			}
			all.Update(ctx, e, q)
		},
		DeleteFunc: all.Delete,
	}
}

// forgetChild returns a function that drops all that is remembered of a deleted child. Otherwise that of every child
// that ever existed would be kept until the memory is full.
func (r *reconciler) forgetChild(env *host.Environment) func(child client.Object) {
	return func(child client.Object) {
		r.actor.keeper.Forget(child.GetUID())
		if u, ok := child.(*unstructured.Unstructured); ok {
			env.Encoder.Forget(u)
		}
	}
}

// forgetting is a handler that calls a function for deleted objects, and then the handler in it.
type forgetting struct {
	handler.EventHandler

	forget func(client.Object)
}

// Delete implements [handler.EventHandler].
func (f *forgetting) Delete(ctx context.Context, e event.DeleteEvent, q watching.Queue) {
	f.forget(e.Object)
	f.EventHandler.Delete(ctx, e, q)
}

// ours are the parents that a resync enqueues.
func (r *reconciler) ours(ctx context.Context) []types.NamespacedName {
	return r.lookup(r.format.ChildSelector).Select(ctx, "", func(parent client.Object) bool {
		u, ok := parent.(*unstructured.Unstructured)
		return ok && (r.matches(u) || r.finalized(u))
	})
}
