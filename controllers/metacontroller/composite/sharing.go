package composite

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/history/metacontroller"
	"github.com/cairn-dev/cairn/internal/hosting"
	"github.com/cairn-dev/cairn/pass"
)

// This file is about parents that several CompositeControllers have. They can share one if each has its own kinds of
// children and their revisions hold the same. Otherwise the older controller goes on and the younger one stops, since
// each would undo what the other does, for ever.

// controllersOverlap is the reason of a controller that cannot share its parents with another one.
const controllersOverlap = "ControllersOverlap"

// listControllers lists the CompositeControllers that there are. What it returns is not changed.
type listControllers func(ctx context.Context) ([]v1alpha1.CompositeController, error)

func listIn(cache client.Reader) listControllers {
	return func(ctx context.Context) ([]v1alpha1.CompositeController, error) {
		list := &v1alpha1.CompositeControllerList{}
		if err := cache.List(ctx, list); err != nil {
			return nil, fmt.Errorf("list the other CompositeControllers: %w", err)
		}
		return list.Items, nil
	}
}

// neighbours are the other CompositeControllers, as one of them sees them.
type neighbours struct {
	*settings

	events events.EventRecorder
	// others lists them, nil if no others are known. clashes are those about which an event was sent.
	others  listControllers
	clashes sync.Map
}

// share looks for other controllers of a parent. The error says which of them has to be changed before the parent is
// reconciled.
func (r *neighbours) share(ctx context.Context, parent *unstructured.Unstructured) (sharers []sharer, err error) {
	if r.others == nil {
		return nil, nil
	}
	all, err := r.others(ctx)
	if err != nil {
		return nil, err
	}
	var clashes error
	for i := range all {
		other := &all[i]
		if !sameParents(r.declared, other) || !selects(other, parent) {
			continue
		}
		err := clash(r.declared, other, r.parent.Namespaced)
		sharers = append(sharers, sharer{other.Name, rolls(&other.Spec), err != nil})
		if err != nil && clashes == nil && cameFirst(other, r.declared) {
			clashes = &faultError{Reason: controllersOverlap, Err: err}
			r.announceClash(other, err)
		}
	}
	if parent.GetDeletionTimestamp() != nil {
		return sharers, nil // each controller has to remove its finalizer
	}
	return sharers, clashes
}

// announceClash sends an event about both controllers, once in a process.
func (r *neighbours) announceClash(other *v1alpha1.CompositeController, err error) {
	if _, said := r.clashes.LoadOrStore(other.UID, true); said {
		return
	}
	for _, cc := range []*v1alpha1.CompositeController{r.declared, other} {
		r.events.Eventf(cc, nil, corev1.EventTypeWarning, controllersOverlap, "Sync", "%s", pass.Cut(err.Error(), pass.MaxNote))
	}
}

// alone returns why a controller could do nothing for any parent: an older one has all of its parents. With a finalize
// hook it runs all the same: parents may still have its finalizer.
func (s *settings) alone(ctx context.Context, others listControllers) error {
	if others == nil || s.finalizes {
		return nil
	}
	all, err := others(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		other := &all[i]
		if !sameParents(s.declared, other) || !cameFirst(other, s.declared) || other.Spec.ParentResource.LabelSelector != nil {
			continue
		}
		if err := clash(s.declared, other, s.parent.Namespaced); err != nil {
			return &hosting.Error{Reason: controllersOverlap, Err: err}
		}
	}
	return nil
}

// sameParents reports whether two controllers have the same kind of parents.
func sameParents(cc, other *v1alpha1.CompositeController) bool {
	return cc.UID != other.UID && other.DeletionTimestamp == nil &&
		groupResource(cc.Spec.ParentResource.APIVersion, cc.Spec.ParentResource.Resource) ==
			groupResource(other.Spec.ParentResource.APIVersion, other.Spec.ParentResource.Resource)
}

func groupResource(apiVersion, resource string) schema.GroupResource {
	version, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		version.Group = apiVersion // it cannot run, and has no parents
	}
	return schema.GroupResource{Group: version.Group, Resource: resource}
}

// selects reports whether a parent is one of a controller's parents.
func selects(cc *v1alpha1.CompositeController, parent *unstructured.Unstructured) bool {
	if cc.Spec.ParentResource.LabelSelector == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(cc.Spec.ParentResource.LabelSelector)
	return err == nil && selector.Matches(labels.Set(parent.GetLabels()))
}

// cameFirst reports whether a controller is older than another one.
func cameFirst(a, b *v1alpha1.CompositeController) bool {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name)) < 0
}

// clash says why two controllers cannot share a parent, nil if they can.
func clash(a, b *v1alpha1.CompositeController, namespaced bool) error {
	const mend = "change or delete one of the two, or give them parents with different labels (spec.parentResource.labelSelector)"
	for _, child := range a.Spec.ChildResources {
		resource := groupResource(child.APIVersion, child.Resource)
		if slices.ContainsFunc(b.Spec.ChildResources, func(c v1alpha1.ChildResource) bool {
			return groupResource(c.APIVersion, c.Resource) == resource
		}) {
			return fmt.Errorf("CompositeControllers %s and %s have the same parents and both declare %s as children, "+
				"so that each would delete what the other wants; %s", a.Name, b.Name, resource, mend)
		}
	}
	if !recorded(&a.Spec, namespaced) || !recorded(&b.Spec, namespaced) {
		return nil
	}
	one, errA := metacontroller.NewFormat(&a.Spec)
	two, errB := metacontroller.NewFormat(&b.Spec)
	if errA != nil || errB != nil {
		return nil //nolint:nilerr // it cannot run
	}
	if one.SharesLog(two, namespaced) {
		return nil
	}
	return fmt.Errorf("CompositeControllers %s and %s record the same parents, and differ in generateSelector or "+
		"revisionHistory.fieldPaths, so that neither could use what the other records; make them the same, or %s", a.Name, b.Name, mend)
}
