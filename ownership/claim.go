package ownership

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/cairn-dev/cairn/internal/anyobject"
)

// This file carries the laws out: it adopts, releases and filters.

// Claimer claims the children of one parent during one pass. Make a new one for each pass.
type Claimer struct {
	// Parent is the object that claims, as it was read for this pass.
	Parent client.Object
	// Kind is the parent's group, version and kind, for the references that adoption writes.
	Kind schema.GroupVersionKind
	// Selector is the parent's selector. It must not be empty: an empty selector matches every orphan there is.
	Selector labels.Selector
	// Writer changes owner references. It needs patch on the child kind; where OwnerReferencesPermissionEnforcement is
	// on, also delete on the child kind and update on the parent's finalizers.
	Writer client.Writer
	// Live reads the parent past every cache before the first adoption of a pass.
	Live client.Reader
	// Member, if set, reports whether a child that the selector matches may be the parent's. If not, it is not adopted,
	// and a child of the parent is released. A StatefulSet uses it to check the names of pods.
	Member func(child client.Object) bool
	// Adoptable, if set, is asked before an orphan is adopted. An error means no; its text is the reason.
	Adoptable func(child client.Object) error
	// Wrote, if set, is called with every object that was changed, as the server returned it. See [ConsistencyStore].
	Wrote func(child client.Object)

	// Lost is set by [Claim] if a child changed while it was being adopted or released. If the labels of an orphan did not
	// change, no event about it enqueues the parent (see [RouteEvent]), so the caller has to requeue it soon.
	Lost bool

	checked  bool
	checkErr error
}

// Claim returns those of children that belong to the claimer's parent, after adopting and releasing as [Decide] says.
// An adopted child is returned as the server returned it. children are only read.
//
// Losing a race (the child changed, was deleted, or got another owner meanwhile) is no error: the event of the other
// write enqueues the parent, except as [Claimer.Lost] says. A child that should have been released and was changed
// meanwhile is still ours, and is returned as it was read. The returned error joins all others, and comes with the
// children that could be claimed; the caller should retry the pass, and must not act as if the list were complete. If
// it wraps [ErrGone], the parent itself is terminating or deleted, and the caller drops the pass.
func Claim[T client.Object](ctx context.Context, c *Claimer, children []T) ([]T, error) {
	if c.Selector == nil || c.Selector.Empty() {
		return nil, fmt.Errorf("%s %s/%s has an empty selector, which would claim every orphan of its namespace",
			c.Kind.Kind, c.Parent.GetNamespace(), c.Parent.GetName())
	}
	var owned []T
	var errs []error
	for _, child := range children {
		decision := Decide(c.Parent, c.Kind.GroupKind(), child, c.matches(child))
		switch decision.Action {
		case Keep:
			owned = append(owned, child)
		case Adopt:
			adopted, err := adopt(ctx, c, child)
			if err != nil {
				errs = append(errs, fmt.Errorf("adopt %s: %w", anyobject.Describe(child), err))
			} else if adopted != nil {
				owned = append(owned, *adopted)
			}
		case Release:
			kept, err := c.release(ctx, child, decision.Reason)
			if err != nil {
				errs = append(errs, fmt.Errorf("release %s: %w", anyobject.Describe(child), err))
			} else if kept {
				owned = append(owned, child)
				c.Lost = true
			}
		case Ignore:
		}
	}
	return owned, errors.Join(errs...)
}

func (c *Claimer) matches(child client.Object) bool {
	return c.Selector.Matches(labels.Set(child.GetLabels())) && (c.Member == nil || c.Member(child))
}

// adopt returns nil and no error if the child cannot be adopted.
func adopt[T client.Object](ctx context.Context, c *Claimer, child T) (*T, error) {
	if c.Adoptable != nil {
		if err := c.Adoptable(child); err != nil {
			log.FromContext(ctx).V(1).Info("Not adopting", "child", anyobject.Describe(child), "reason", err.Error())
			return nil, nil
		}
	}
	if err := c.mayAdopt(ctx); err != nil {
		return nil, err
	}
	refs := append([]metav1.OwnerReference{*metav1.NewControllerRef(c.Parent, c.Kind)}, c.otherOwners(child)...)
	adopted, err := c.setOwners(ctx, child, refs)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		c.Lost = c.Lost || apierrors.IsConflict(err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	log.FromContext(ctx).V(1).Info("Adopted", "child", anyobject.Describe(child))
	t := adopted.(T)
	return &t, nil
}

// mayAdopt checks the parent past the cache, once a pass: a parent that is being deleted, or was replaced by one of the
// same name, must adopt nothing (kubernetes#42639).
func (c *Claimer) mayAdopt(ctx context.Context) error {
	if c.checked {
		return c.checkErr
	}
	_, err := Reread(ctx, c.Live, c.Parent)
	c.checked, c.checkErr = true, err
	return err
}

// release reports whether the child is still ours: another writer has changed it since it was read, and until the cache
// shows that change, nothing that depends on the child may be touched.
func (c *Claimer) release(ctx context.Context, child client.Object, reason string) (kept bool, err error) {
	switch _, err := c.setOwners(ctx, child, c.otherOwners(child)); {
	case apierrors.IsConflict(err):
		return true, nil
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, err
	}
	log.FromContext(ctx).V(1).Info("Released", "child", anyobject.Describe(child), "reason", reason)
	return false, nil
}

// otherOwners returns the references of child that are not to our parent. References are keyed by UID, so an owner that
// becomes the controller must not have a second one.
func (c *Claimer) otherOwners(child client.Object) []metav1.OwnerReference {
	var refs []metav1.OwnerReference
	for _, ref := range child.GetOwnerReferences() {
		if ref.UID != c.Parent.GetUID() {
			refs = append(refs, ref)
		}
	}
	return refs
}

// setOwners replaces the owner references of exactly the object that was read: UID and resourceVersion are
// preconditions, so that no other writer's reference is lost and a second controller is never written. A conflict or a
// not-found error means that another writer was first.
func (c *Claimer) setOwners(ctx context.Context, child client.Object, refs []metav1.OwnerReference) (client.Object, error) {
	if refs == nil {
		refs = []metav1.OwnerReference{} // an empty list, because null would not say "none" to every server
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":             child.GetUID(),
		"resourceVersion": child.GetResourceVersion(),
		"ownerReferences": refs,
	}})
	if err != nil {
		return nil, err
	}
	out := anyobject.Blank(child)
	if err := c.Writer.Patch(ctx, out, client.RawPatch(types.MergePatchType, patch)); err != nil {
		log.FromContext(ctx).V(1).Info("Not written", "child", anyobject.Describe(child), "error", err.Error())
		return nil, err
	}
	if c.Wrote != nil {
		c.Wrote(out)
	}
	return out, nil
}
