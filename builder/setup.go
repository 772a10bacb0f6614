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
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlbuilder "sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
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
	b := r.Watch(mgr, r.author.Workers)
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
	author.Name = name
	r := &reconciler[P]{described: d, author: author, scheme: mgr.GetScheme()}
	config, err := r.watched().In(ctx, mgr, pass.Options{RollBack: author.RollBack})
	if err != nil {
		return nil, err
	}
	config.Client, config.Cache = client.WithFieldOwner(config.Client, name), uncopied{mgr.GetCache()}
	config.Recorder, config.Run, config.Refused = mgr.GetEventRecorder(name), r.pass, r.refuse
	r.applied = &applier{client: config.Client, name: name, last: map[types.UID]applied{}}
	r.Controller = pass.New(config)
	stored := r.format(r.labelsOf, d.rolled...)
	upgrades(stored, author.Upgrade)
	r.log = pass.NewLog(r.Controller, stored, true)
	for i, k := range d.kinds {
		ch := pass.NewChildren[client.Object](r.Controller, k.gvk, k.resource, func() client.ObjectList { return r.list(k.gvk) })
		ch.Adoptable = func(parent, orphan client.Object) error { return r.adoptable(parent, i, orphan) }
		if !k.applied {
			ch.Label = HashLabel
			ch.Ready = func(child client.Object) bool {
				_, why := k.ready(child)
				return why == ""
			}
		}
		r.children = append(r.children, ch)
	}
	r.OnForget(r.applied.forget)
	r.OnForget(r.answers.forget)
	return r, nil
}

// watched returns the kind of the parents, with the kinds of their children.
func (r *reconciler[P]) watched() pass.Kind {
	owned := map[schema.GroupResource]client.Object{history.AppsResource: &appsv1.ControllerRevision{}}
	for _, k := range r.kinds {
		owned[k.resource] = k.kind
	}
	return pass.Kind{
		Name: r.author.Name, GVK: r.parent, Resource: r.resource, New: r.empty,
		NewList: func() client.ObjectList { return r.list(r.parent) },
		Selector: func(parent client.Object) (labels.Selector, error) {
			return r.selector(parent.DeepCopyObject().(client.Object)) // the cache's own is not for functions of the author
		},
		Owned: owned,
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
