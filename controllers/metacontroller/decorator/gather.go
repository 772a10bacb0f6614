package decorator

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/anyobject"
	"github.com/cairn-dev/cairn/internal/metacontroller/apply"
	"github.com/cairn-dev/cairn/internal/metacontroller/children"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

// This file holds all reads of a pass, and the questions to hooks. Objects come from a cache without copies: nothing
// here or later may change them.

// observed is what one pass works on.
type observed struct {
	resource *decorated
	object   *unstructured.Unstructured
	// finalizing says that the finalize hook is the one to ask.
	finalizing bool
	// groups are the attachments by kind, as hooks get them; attachments are the same by name.
	groups      []hook.Group
	attachments map[key]*unstructured.Unstructured
	related     []hook.Group
}

// gather reads what belongs to an object; its attachments are those that it controls and this controller created.
func (r *Reconciler) gather(ctx context.Context, p *pass.Pass, d *decorated, object *unstructured.Unstructured) (*observed, error) {
	o := &observed{
		resource: d, object: object, finalizing: r.finalizing(d, object), attachments: map[key]*unstructured.Unstructured{},
	}
	var err error
	o.groups, err = r.kinds.Read(object, func(of *children.Owned) ([]*unstructured.Unstructured, error) {
		shown, err := of.Shown(ctx, p)
		return slices.DeleteFunc(shown, func(o *unstructured.Unstructured) bool { return !r.made(o) }), err
	})
	if err != nil {
		return nil, err
	}
	for _, group := range o.groups {
		for _, item := range group.Objects {
			o.attachments[keyOf(item)] = item
		}
	}
	o.related, err = r.related[d.Kind.GroupKind()].Gather(ctx, object)
	return o, err
}

// ask calls the hook that the object's state calls for. There is no answer if that hook is not declared.
func (r *Reconciler) ask(ctx context.Context, o *observed, again bool) (*hook.Answer, error) {
	h := r.sync
	if o.finalizing {
		h = r.finalize
	}
	if h == nil {
		return nil, nil //nolint:nilnil // an undeclared hook is no error, and has no answer
	}
	return h.Ask(ctx, &hook.Question{Parent: o.object, Children: o.groups, Related: o.related, Again: again})
}

// facts are what the plan for an answer is made from.
func (r *Reconciler) facts(ctx context.Context, o *observed, answer *hook.Answer) (*facts, error) {
	f := &facts{
		settings: r.settings, resource: o.resource, object: o.object, finalizing: o.finalizing, answer: answer,
		observed: o.attachments,
	}
	if s, ok := r.stated.Load(o.object.GetUID()); ok {
		f.stated = s.(stated)
	}
	var wishes []children.Pair
	for _, child := range answer.Children {
		desired := r.marked(o.object, child)
		f.desired = append(f.desired, desired)
		k := keyOf(desired)
		attachment, there := o.attachments[k]
		if method := r.methods[k.GroupKind]; there && method != v1alpha1.ChildUpdateOnDelete {
			wishes = append(wishes, children.Pair{Observed: attachment, Desired: desired, InPlace: method == v1alpha1.ChildUpdateInPlace})
		}
	}
	var err error
	f.applied, f.compareErr, err = r.compare(ctx, o, wishes)
	return f, err
}

// marked returns a copy of an answer's attachment that names its controller, without the fields that a hook may not
// set: what [apply.Own] leaves out, and the reference to the object. A hook may answer with the objects that it was
// sent, and would otherwise ask for another attachment after each write.
func (r *Reconciler) marked(object, child *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: maps.Clone(apply.Own(child.Object))}
	metadata, _ := out.Object["metadata"].(map[string]any)
	out.Object["metadata"] = maps.Clone(metadata)
	annotations := child.GetAnnotations() // a copy
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[Annotation] = r.name
	out.SetAnnotations(annotations)
	refs := child.GetOwnerReferences()
	if others := withoutOwner(refs, object.GetUID()); len(others) < len(refs) {
		out.SetOwnerReferences(others)
	}
	return out
}

func withoutOwner(refs []metav1.OwnerReference, uid types.UID) []metav1.OwnerReference {
	var out []metav1.OwnerReference
	for _, ref := range refs {
		if ref.UID != uid {
			out = append(out, ref)
		}
	}
	return out
}

// names are those that the hook wants for the attachments of an object.
func (r *Reconciler) names(object *unstructured.Unstructured) children.Names {
	return children.Names{
		Parent: object, Ours: r.made, Orphan: "nothing is adopted",
		Describe: func(o *unstructured.Unstructured) string { return anyobject.Describe(o) },
	}
}

// confirm compares the cached object, and the attachments to be replaced, with the API server, before the first write
// for an object in this process. It returns an error that wraps ownership.ErrStale if the cache is stale.
func (r *Reconciler) confirm(ctx context.Context, p *pass.Pass, o *observed, todo *plan) error {
	uid := o.object.GetUID()
	if _, done := r.confirmed.Load(uid); !done && len(todo.deletes)+len(todo.updates)+len(todo.creates) > 0 {
		fresh := anyobject.Blank(o.object)
		if err := r.Live.Get(ctx, client.ObjectKeyFromObject(o.object), fresh); err != nil {
			return gone(o.object, err)
		}
		switch {
		case fresh.GetUID() != uid:
			return fmt.Errorf("%s: %w: its UID is %s now", anyobject.Describe(o.object), ownership.ErrGone, fresh.GetUID())
		case fresh.GetResourceVersion() != o.object.GetResourceVersion():
			r.Consistency.WroteAt(uid, o.resource.Resource.Resource.GroupResource(), fresh) // the next pass waits until the cache shows it
			return fmt.Errorf("%w: it does not show %s as it is", ownership.ErrStale, anyobject.Describe(o.object))
		}
		r.confirmed.Store(uid, struct{}{})
	}
	// Without our finalizer no controller looks after the attachments of an object that stays. The garbage collector does
	// after those of a terminating one.
	if !todo.done || o.object.GetDeletionTimestamp() != nil {
		return nil
	}
	for _, group := range o.groups {
		if err := r.kinds.Of(group.GroupKind()).Confirm(ctx, p, labels.Everything(), group.Objects); err != nil {
			return err
		}
	}
	return nil
}

// gone turns the error of a read or write of an object into one that wraps [ownership.ErrGone] if it was not found.
func gone(o *unstructured.Unstructured, err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%s: %w", anyobject.Describe(o), ownership.ErrGone)
	}
	return err
}
