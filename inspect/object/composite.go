package object

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/history/metacontroller"
	"github.com/cairn-dev/cairn/revision"
)

// This file is the kinds that a CompositeController runs: which objects are its parents is looked up for each question,
// package metacontroller has the format of their revisions, and the revisions list the children that belong to them.
// The children are read in members.go.

// composite is the kind of the parents of one CompositeController.
type composite struct {
	client     client.Client
	controller *v1alpha1.CompositeController
	gvk        schema.GroupVersionKind
	format     *metacontroller.Format
	log        *history.Log
	paths      []string
}

// Composites returns the kinds of the CompositeControllers whose parents are objects of gk, only those that select
// parent if any does, and the resources of all such controllers. If CompositeControllers are not served there are none.
func Composites(ctx context.Context, c client.Client, gk schema.GroupKind, parent client.Object) ([]Kind, []schema.GroupResource, error) {
	var list v1alpha1.CompositeControllerList
	switch err := c.List(ctx, &list); {
	case meta.IsNoMatchError(err), runtime.IsNotRegisteredError(err):
		return nil, nil, nil
	case err != nil:
		return nil, nil, fmt.Errorf("find the CompositeController of %s: %w", KindName(gk), err)
	}
	mapping, err := c.RESTMapper().RESTMapping(gk)
	if err != nil && !meta.IsNoMatchError(err) {
		return nil, nil, fmt.Errorf("find the resource of %s: %w", KindName(gk), err)
	}
	var found, others []Kind
	var parents []schema.GroupResource
	for n := range list.Items {
		cc := &list.Items[n]
		version, err := schema.ParseGroupVersion(cc.Spec.ParentResource.APIVersion)
		if err != nil {
			continue // such a controller runs nothing, and says so in its status
		}
		resource := schema.GroupResource{Group: version.Group, Resource: cc.Spec.ParentResource.Resource}
		parents = append(parents, resource)
		if mapping == nil || mapping.Resource.GroupResource() != resource {
			continue
		}
		k, err := newComposite(c, cc, version.WithKind(gk.Kind))
		switch {
		case err != nil:
			return nil, nil, err
		case parent != nil && !selects(cc, parent):
			others = append(others, k)
		default:
			found = append(found, k)
		}
	}
	if len(found) == 0 {
		found = others // the parent was selected once, and its revisions stay
	}
	return found, parents, nil
}

func newComposite(c client.Client, cc *v1alpha1.CompositeController, gvk schema.GroupVersionKind) (*composite, error) {
	format, err := metacontroller.NewFormat(&cc.Spec)
	if err != nil {
		return nil, fmt.Errorf("CompositeController %s: %w", cc.Name, err)
	}
	return &composite{
		client: c, controller: cc, gvk: gvk, format: format, log: history.New(format, history.Options{Client: c}),
		paths: cc.Spec.ParentResource.RevisionHistory.EffectiveFieldPaths(),
	}, nil
}

// selects reports whether parent matches the selector of a controller. An invalid selector selects nothing.
func selects(cc *v1alpha1.CompositeController, parent client.Object) bool {
	if cc.Spec.ParentResource.LabelSelector == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(cc.Spec.ParentResource.LabelSelector)
	return err == nil && selector.Matches(labels.Set(parent.GetLabels()))
}

func (c *composite) Is() Identity {
	return Identity{
		GroupVersionKind: c.gvk,
		Controller:       c.controller.Name,
		Objects:          v1alpha1.SchemeGroupVersion.WithKind("ControllerRevision").GroupKind(),
		Child:            "child",
		Children:         "children",
		Part:             strings.Join(c.paths, ", "),
		Target:           c.format.Target(),
		Unrecorded:       c.unrecorded(),
	}
}

// unrecorded says why a controller keeps no revisions, empty if it does: Metacontroller records the parents whose
// children are rolled out, and cairn those too whose controller sets revisionHistory.
func (c *composite) unrecorded() string {
	spec := &c.controller.Spec
	rolled := func(r v1alpha1.ChildResource) bool { return r.UpdateStrategy.EffectiveMethod().Rolling() }
	if spec.ParentResource.RevisionHistory != nil || slices.ContainsFunc(spec.ChildResources, rolled) {
		return ""
	}
	return fmt.Sprintf("CompositeController %s keeps no revisions: it rolls no children out, "+
		"and does not set spec.parentResource.revisionHistory.", c.controller.Name)
}

func (c *composite) Blank() client.Object {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(c.gvk)
	return o
}

func (c *composite) Convert(parent client.Object) (client.Object, error) {
	if o, ok := parent.(*unstructured.Unstructured); ok {
		return o, nil
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(parent)
	o := &unstructured.Unstructured{Object: fields}
	if err == nil {
		o.SetGroupVersionKind(c.gvk)
	}
	return o, err
}

// untyped returns parent as [composite.convert] made it.
func untyped(parent client.Object) *unstructured.Unstructured {
	return parent.(*unstructured.Unstructured)
}

func (c *composite) List(ctx context.Context, parent client.Object) ([]Stored, error) {
	if c.unrecorded() != "" && parent.GetNamespace() == "" {
		return nil, nil // no namespace was set for revisions
	}
	found, err := c.log.ListObjects(ctx, parent)
	if err != nil {
		return nil, err
	}
	out := make([]Stored, 0, len(found))
	for _, o := range found {
		out = append(out, c.read(parent, o.(*v1alpha1.ControllerRevision)))
	}
	return out, nil
}

func (c *composite) read(parent client.Object, o *v1alpha1.ControllerRevision) Stored {
	s := Stored{Revision: c.log.Revision(o), Object: o, Target: c.targetOf(o)}
	s.Hash = "" // children do not point at their revision
	s.Origin = sync.OnceValues(func() (doubt, unverified string) {
		if s.Snapshot == nil || c.named(parent, s) {
			return "", ""
		}
		return fmt.Sprintf("The name of %s does not go with its content: it was adopted from another %s, or it does not come "+
			"from a controller, so look at the diff.", RevisionName(s.Number, s.Name), KindName(c.gvk.GroupKind())), ""
	})
	return s
}

// named reports whether the name of s is one that a controller gives to that content: the first one, or one of the next
// if that was taken.
func (c *composite) named(parent client.Object, s Stored) bool {
	const most = 8 // not even one collision is likely
	for collisions := range int32(most) {
		if s.Name == c.format.Name(parent, s.Snapshot, &collisions) {
			return true
		}
	}
	return false
}

// targetOf returns what of a parent a revision holds: its own fieldPaths say it, or those of the controller.
func (c *composite) targetOf(o *v1alpha1.ControllerRevision) *revision.Target {
	target, err := c.format.TargetOf(o)
	if err != nil {
		return c.format.Target() // then the revision cannot be read at all, and says why
	}
	return target
}

// resolve compares contents, as the controller does; no dry run is needed, because only the API server fills in
// defaults of these parents.
func (c *composite) Resolve(ctx context.Context, parent client.Object, target *revision.Target, revisions []revision.Revision) (
	*revision.Resolution, []string, error,
) {
	log := c.log
	if target != c.format.Target() {
		log = history.New(c.format.Over(target), history.Options{Client: c.client})
	}
	v, err := log.Resolve(ctx, parent, revisions)
	if err != nil {
		return nil, nil, err
	}
	return v.Resolution, nil, nil
}

// count trusts the revisions: a child is listed before it is created.
func (c *composite) Count(ctx context.Context, parent client.Object, log []Stored) ([]int, int, error) {
	listed, err := c.listed(ctx, parent, log)
	if err != nil {
		return nil, 0, err
	}
	counts := make([]int, len(log))
	for n, of := range listed {
		counts[n] = of.Len()
	}
	return counts, 0, nil
}

// listed returns the children that each revision of log lists. One that two of them list belongs to the newer.
// Metacontroller gives no numbers: none of its revisions is newer than the one that the parent asks for.
func (c *composite) listed(ctx context.Context, parent client.Object, log []Stored) ([]*metacontroller.Claims, error) {
	found, _, err := c.Resolve(ctx, parent, c.format.Target(), Revisions(log))
	if err != nil {
		return nil, err
	}
	listed, order := make([]*metacontroller.Claims, len(log)), make([]*metacontroller.Claims, 0, len(log))
	for n := range slices.Backward(log) {
		listed[n] = metacontroller.ReadClaims(log[n].Object.(*v1alpha1.ControllerRevision).Children)
		if asked := found.Update != nil && found.Update.UID == log[n].UID; asked && log[n].Number == 0 {
			order = slices.Insert(order, 0, listed[n])
		} else {
			order = append(order, listed[n])
		}
	}
	metacontroller.Settle(order...)
	return listed, nil
}
