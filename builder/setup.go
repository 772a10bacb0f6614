package builder

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlbuilder "sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

// This file wires a controller to a manager.

// HashLabel is the label of revisions and of children by which a child says which revision it comes from.
const HashLabel = appsv1.ControllerRevisionHashLabelKey

// Setup checks the controller and adds it to mgr. with changes the controller-runtime builder before it is completed:
// more watches, predicates, options.
//
// The error joins all that is wrong with the controller, or says what the API server does not serve; it is for the
// author. What the manager's role has to grant: get, list, watch, patch on parents, patch on parents/status, update on
// parents/finalizers where OwnerReferencesPermissionEnforcement is on; get, list, watch, create, patch, delete on
// children and on controllerrevisions.apps; create and patch on events.events.k8s.io. The schema of unstructured
// parents is read from /openapi/v3, which every account may unless somebody has taken that away; then it is not
// checked.
func (c Controller[P]) Setup(ctx context.Context, mgr ctrl.Manager, with ...func(*ctrlbuilder.Builder)) error {
	r, err := c.reconciler(ctx, mgr)
	if err != nil {
		return fmt.Errorf("set up the controller of %T: %w", c.Parent, err)
	}
	children := r.ChildEvents(r.parents().Router())
	b := ctrl.NewControllerManagedBy(mgr).
		Named(r.author.Name).
		WithOptions(r.Options(r.author.Workers)).
		Watches(r.empty(), r.ParentEvents()).
		Watches(&appsv1.ControllerRevision{}, children)
	for _, k := range r.kinds {
		b = b.Watches(k.kind, children)
	}
	for _, change := range with {
		change(b)
	}
	return b.Complete(r)
}

// reconciler runs passes over the parents of one controller.
type reconciler[P client.Object] struct {
	*pass.Controller
	*described

	author Controller[P]
	scheme *runtime.Scheme
	log    *history.Log
	// children are by the index of their kind.
	children []*pass.Children[client.Object]
	applied  *applier
	answers  answers
	// shown lists parents, which functions of the author are given.
	shown client.Reader
}

func (c Controller[P]) reconciler(ctx context.Context, mgr ctrl.Manager) (*reconciler[P], error) {
	d, err := c.describe(mgr.GetScheme(), mgr.GetRESTMapper())
	if err != nil {
		return nil, err
	}
	if err := d.inServedSchema(mgr); err != nil {
		return nil, err
	}
	if err := claimKind(mgr, d.parent.GroupKind()); err != nil {
		return nil, err
	}
	name, author := cmp.Or(c.Name, strings.ToLower(d.parent.Kind)), c
	author.Name, author.Workers = name, cmp.Or(c.Workers, 4)
	owned := map[schema.GroupResource]client.Object{history.AppsResource: &appsv1.ControllerRevision{}}
	for _, k := range d.kinds {
		owned[k.resource] = k.kind
	}
	consistency, err := ownership.NewConsistencyStoreFor(ctx, mgr, owned, map[schema.GroupResource]client.Object{d.resource: c.Parent})
	if err != nil {
		return nil, err
	}
	r := &reconciler[P]{described: d, author: author, scheme: mgr.GetScheme(), shown: mgr.GetCache()}
	writer := client.WithFieldOwner(mgr.GetClient(), name)
	r.applied = &applier{client: writer, name: name, last: map[types.UID]applied{}}
	r.Controller = pass.New(pass.Config{
		Kind: d.parent, Resource: d.resource, New: r.empty,
		Client: writer, Live: mgr.GetAPIReader(), Cache: uncopied{mgr.GetCache()},
		Consistency: consistency, Recorder: mgr.GetEventRecorder(name), Clock: clock.RealClock{}, Run: r.pass, Refused: r.refuse,
		Undo: author.Undo,
	})
	stored := r.format(r.labelsOf, d.rolled...)
	upgrades(stored, author.Upgrade)
	r.log = pass.NewLog(r.Controller, stored, true)
	for i, k := range d.kinds {
		ch := pass.NewChildren[client.Object](r.Controller, k.gvk, k.resource, func() client.ObjectList { return r.list(k.gvk) })
		ch.Adoptable = func(parent, orphan client.Object) error { return r.adoptable(parent, i, orphan) }
		if !k.applied {
			ch.Label = HashLabel
		}
		r.children = append(r.children, ch)
	}
	r.OnForget(r.applied.forget)
	r.OnForget(r.answers.forget)
	return r, nil
}

// parents says how parents are found in the cache.
func (r *reconciler[P]) parents() ownership.Parents {
	return ownership.Parents{
		Reader: r.shown, Kind: r.parent.GroupKind(), New: r.empty,
		NewList:  func() client.ObjectList { return r.list(r.parent) },
		Selector: r.selector,
	}
}

// labelsOf are the labels of what belongs to a parent. The selector is made of them, so that the two cannot differ.
func (r *reconciler[P]) labelsOf(parent client.Object) map[string]string {
	if r.author.Labels != nil {
		return r.author.Labels(parent.(P))
	}
	return r.label(parent)
}

func (r *reconciler[P]) selector(parent client.Object) (labels.Selector, error) {
	return labels.ValidatedSelectorFromSet(r.labelsOf(parent))
}

// list returns an empty list of a kind.
func (r *reconciler[P]) list(gvk schema.GroupVersionKind) client.ObjectList {
	gvk.Kind += "List"
	made, err := r.scheme.New(gvk)
	if list, ok := made.(client.ObjectList); ok && err == nil {
		return list
	}
	u := &unstructured.UnstructuredList{}
	u.SetGroupVersionKind(gvk)
	return u
}
