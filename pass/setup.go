package pass

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlbuilder "sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/ownership"
)

// This file adds a controller to a manager: indexes, consistency store and watches.

// Kind is the kind of a controller's parents, with the kinds of the objects that its cache holds. Values of the maps
// are empty objects. Keys are the resources under which the consistency store remembers writes.
type Kind struct {
	// Name is the controller's name in a manager. Its Events come from that name with "-controller" behind it.
	Name string
	// GVK and Resource are the kind and the resource of the parents. A parent whose object names another kind keeps it.
	GVK      schema.GroupVersionKind
	Resource schema.GroupResource
	// New returns an empty parent, NewList an empty list of parents, and Selector the selector of a parent's children.
	// NewList and Selector are optional without [Controller.Parents].
	New      func() client.Object
	NewList  func() client.ObjectList
	Selector func(parent client.Object) (labels.Selector, error)
	// ClusterScoped is true if parents are in no namespace.
	ClusterScoped bool
	// Owned are the kinds that parents control. The cache is indexed by controller, and events of these objects enqueue
	// the parents. Indexed are kinds with the index but without the events. Read are other kinds of which passes read
	// or write objects. The kind of the parents need not be among them.
	Owned, Indexed, Read map[schema.GroupResource]client.Object
}

// Options tune a controller of Kubernetes' own kinds. The zero value is ready for use. A kind without a log has no use
// for AskServer, one without rollouts none for ProgressDeadline and RollBack.
type Options struct {
	// Workers is the number of parents that are reconciled concurrently. Zero means 5.
	Workers int
	// AskServer allows dry-run patches of parents to find out whether a stored snapshot is equivalent (rule E3).
	AskServer bool
	// ProgressDeadline is the time without progress after which a rollout has failed. It is used for parents without the
	// annotation [ProgressDeadlineAnnotation]. Zero means never.
	ProgressDeadline time.Duration
	// RollBack rolls rollouts back that have exceeded it, where a parent asks for that. Optional.
	RollBack RollBack
	// Clock is for tests; nil means the system's.
	Clock clock.PassiveClock
}

// In returns the config of a controller that runs in mgr. The caller adds Run. Call it before the manager starts. See
// [ownership.NewConsistencyStoreFor] for the error.
func (k Kind) In(ctx context.Context, mgr ctrl.Manager, o Options) (Config, error) {
	indexed, plain := maps.Clone(k.Owned), map[schema.GroupResource]client.Object{}
	maps.Copy(indexed, k.Indexed)
	if _, there := indexed[k.Resource]; !there {
		plain[k.Resource] = k.New()
	}
	maps.Copy(plain, k.Read)
	consistency, err := ownership.NewConsistencyStoreFor(ctx, mgr, indexed, plain)
	if err != nil {
		return Config{}, err
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return Config{
		Kind: k, Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Consistency: consistency,
		Recorder: mgr.GetEventRecorder(k.Name + "-controller"), Clock: o.Clock, ProgressDeadline: o.ProgressDeadline, RollBack: o.RollBack,
	}, nil
}

// Parents finds the parents in the cache.
func (c *Controller) Parents() ownership.Parents {
	return ownership.Parents{
		Reader: c.Cache, Kind: c.GVK.GroupKind(), New: c.New, NewList: c.NewList, ClusterScoped: c.ClusterScoped, Selector: c.Selector,
	}
}

// Watch returns a builder of the controller, with watches of the parents and of the kinds in Owned. The caller may add
// other watches, and completes it with the reconciler that embeds c. Zero workers mean 5.
func (c *Controller) Watch(mgr ctrl.Manager, workers int) *ctrlbuilder.Builder {
	children := c.ChildEvents(c.Parents().Router())
	b := ctrl.NewControllerManagedBy(mgr).Named(c.Name).WithOptions(c.Options(cmp.Or(workers, 5))).Watches(c.New(), c.ParentEvents())
	// The order is the same each time, so that the simulation of a seed can be repeated. Pods come before revisions.
	descending := func(a, b schema.GroupResource) int { return cmp.Compare(b.String(), a.String()) }
	for _, resource := range slices.SortedFunc(maps.Keys(c.Owned), descending) {
		b = b.Watches(c.Owned[resource], children)
	}
	return b
}
