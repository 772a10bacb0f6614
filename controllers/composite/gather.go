package composite

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/controllers/composite/hook"
	"github.com/cairn-dev/cairn/controllers/composite/host"
	"github.com/cairn-dev/cairn/controllers/composite/taken"
	"github.com/cairn-dev/cairn/history/record"
	"github.com/cairn-dev/cairn/internal/anyobject"
	"github.com/cairn-dev/cairn/ownership"
)

// This file holds the reads of a pass: the children and revisions of a parent, and the claims to them. (What the hooks and
// the API server are asked is in decide.go and compare.go, what is read past the cache before a write in confirm.go.) Objects come from
// a cache without copies: nothing here or later may change them.

// observed is what one pass works on.
type observed struct {
	parent   *unstructured.Unstructured
	memory   *memory
	selector labels.Selector
	// ending says that the finalize hook is asked: the parent is being deleted, or is none of the controller's any more.
	ending bool
	// groups are the children by kind, as hooks are told of them; children are the same by name.
	groups   []hook.Group
	children map[record.Child]*unstructured.Unstructured
	// orphans match the selector, and nobody has said that they are wanted.
	orphans []record.Child
	log     *revisionLog
}

// gather reads what belongs to a parent, and claims it.
func (r *reconciler) gather(ctx context.Context, parent *unstructured.Unstructured, m *memory) (*observed, error) {
	o := &observed{parent: parent, memory: m, children: map[record.Child]*unstructured.Unstructured{}}
	o.ending = parent.GetDeletionTimestamp() != nil || !r.matches(parent)
	err := r.share(ctx, parent, m)
	if err != nil {
		return nil, err
	}
	if o.selector, err = r.format.ChildSelector(parent); err != nil {
		return nil, &faultError{Reason: "InvalidSelector", Err: err}
	}
	for _, kind := range r.children {
		if err := r.gatherKind(ctx, o, kind); err != nil {
			return nil, err
		}
	}
	if r.recorded && !o.ending {
		o.log, err = r.gatherRevisions(ctx, o)
	}
	return o, err
}

// gatherKind reads and claims the children of one kind.
func (r *reconciler) gatherKind(ctx context.Context, o *observed, kind host.Resource) error {
	group := hook.Group{GroupVersionKind: kind.Kind}
	defer func() { o.groups = append(o.groups, group) }()
	namespace := o.parent.GetNamespace()
	if namespace != "" && !kind.Namespaced {
		return nil // a parent in a namespace has no children outside of it, whoever says so
	}
	var candidates []*unstructured.Unstructured
	err := ownership.Candidates(ctx, r.cache, kind.NewList(), namespace, o.parent.GetUID(), o.selector, true, func(c client.Object) error {
		candidates = append(candidates, c.(*unstructured.Unstructured)) //nolint:forcetypeassert // the items of that list
		return nil
	})
	if err != nil {
		return err
	}
	claimer := &ownership.Claimer{
		Parent:   o.parent,
		Kind:     r.parent.Kind,
		Selector: o.selector,
		Writer:   r.client,
		Live:     r.live,
		Wrote: func(child client.Object) {
			r.ledger.Wrote(o.parent.GetUID(), kind.Resource.GroupResource(), child)
		},
		Adoptable: func(orphan client.Object) error { return r.adoptable(o, orphan) },
	}
	claimed, err := ownership.Claim(ctx, claimer, candidates)
	if err != nil {
		return fmt.Errorf("claim the %s of %s: %w", kind.Resource.Resource, anyobject.Describe(o.parent), err)
	}
	if claimer.Lost {
		return fmt.Errorf("%w: one of the %s changed while it was being adopted or released", ownership.ErrStale, kind.Resource.Resource)
	}
	group.Objects = claimed
	for _, c := range claimed {
		o.children[child(o.parent, c)] = c
	}
	return nil
}

// adoptable lets a parent adopt what it would make. Metacontroller adopts all that its selector matches, and deletes what
// the hook does not want: of two parents with one selector, the one deletes what the other wants. A generated selector
// names one parent only.
func (r *reconciler) adoptable(o *observed, orphan client.Object) error {
	key := child(o.parent, orphan.(*unstructured.Unstructured)) //nolint:forcetypeassert // children are unstructured
	if _, wanted := o.memory.prepared[""].wanted.objects[key]; wanted || r.generate {
		return nil
	}
	o.orphans = append(o.orphans, key)
	return errors.New("the hook does not want it")
}

// wantsOrphan reports whether the hook has said meanwhile that one of the orphans is wanted.
func (o *observed) wantsOrphan() bool {
	if o.parent.GetDeletionTimestamp() != nil {
		return false
	}
	return slices.ContainsFunc(o.orphans, func(key record.Child) bool {
		_, wanted := o.memory.prepared[""].wanted.objects[key]
		return wanted
	})
}

// gatherRevisions reads and claims the revisions of a parent.
func (r *reconciler) gatherRevisions(ctx context.Context, o *observed) (*revisionLog, error) {
	selector, err := r.format.Selector(o.parent)
	if err != nil {
		return nil, &faultError{Reason: "InvalidSelector", Err: err}
	}
	namespace, err := r.format.Namespace(o.parent)
	if err != nil {
		return nil, &faultError{Reason: "NoNamespaceForRevisions", Err: err}
	}
	var candidates []*v1alpha1.ControllerRevision
	err = ownership.Candidates(ctx, r.cache, &v1alpha1.ControllerRevisionList{}, namespace, o.parent.GetUID(), selector, true,
		func(c client.Object) error {
			candidates = append(candidates, c.(*v1alpha1.ControllerRevision)) //nolint:forcetypeassert // the items of that list
			return nil
		})
	if err != nil {
		return nil, err
	}
	claimer := &ownership.Claimer{
		Parent: o.parent, Kind: r.parent.Kind, Selector: selector, Writer: r.client, Live: r.live,
		Wrote: func(child client.Object) { r.ledger.Wrote(o.parent.GetUID(), revisionResource, child) },
	}
	claimed, err := ownership.Claim(ctx, claimer, candidates)
	if err != nil {
		return nil, fmt.Errorf("claim the revisions of %s: %w", anyobject.Describe(o.parent), err)
	}
	if claimer.Lost {
		return nil, fmt.Errorf("%w: a revision changed while it was being adopted or released", ownership.ErrStale)
	}
	return newLog(r.format, r.revisions, o.parent, claimed, r.declares, func(name string) bool { return o.memory.taken[name] })
}

// names are those that a parent wants for its children.
func (r *reconciler) names(parent *unstructured.Unstructured) taken.Names {
	return taken.Names{
		Parent:   parent,
		Ours:     func(client.Object) bool { return true },
		Describe: func(o *unstructured.Unstructured) string { return child(parent, o).String() },
		Orphan:   "the selector of the parent does not match its labels",
	}
}
