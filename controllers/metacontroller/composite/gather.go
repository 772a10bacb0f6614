package composite

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/history/metacontroller"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
	"github.com/cairn-dev/cairn/internal/metacontroller/taken"
	"github.com/cairn-dev/cairn/internal/metacontroller/watch"
	"github.com/cairn-dev/cairn/pass"
	"github.com/cairn-dev/cairn/revision"
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
	children map[metacontroller.Child]*unstructured.Unstructured
	log      *revisionLog
}

// gather reads what belongs to a parent, and claims it. Where that fails, what it returns beside the error is for count only.
func (r *reconciler) gather(ctx context.Context, parent *unstructured.Unstructured, m *memory) (*observed, error) {
	o := &observed{parent: parent, memory: m, children: map[metacontroller.Child]*unstructured.Unstructured{}}
	m.orphans = nil
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
			return o, err
		}
	}
	if r.recorded && !o.ending {
		o.log, err = r.gatherRevisions(ctx, o)
	}
	return o, err
}

// gatherKind reads and claims the children of one kind.
func (r *reconciler) gatherKind(ctx context.Context, o *observed, kind watch.Resource) error {
	group := hook.Group{GroupVersionKind: kind.Kind}
	defer func() { o.groups = append(o.groups, group) }()
	namespace := o.parent.GetNamespace()
	if namespace != "" && !kind.Namespaced {
		return nil // a parent in a namespace has no children outside of it, whoever says so
	}
	claimed, err := r.owned[kind.Kind.GroupKind()].Claim(ctx, o.memory.pass, o.selector)
	if err != nil {
		return err
	}
	group.Objects = claimed
	for _, c := range claimed {
		o.children[child(o.parent, c)] = c
	}
	return nil
}

// count has the hook count the children of a parent that cannot be claimed, or whose revisions cannot: its status needs none of
// the writes that fail. What the hook wants is not looked at, and what it says of an edit that was not acted on is not stored.
func (r *reconciler) count(ctx context.Context, o *observed, failed error) {
	if o == nil || o.ending || o.newGeneration() {
		return
	}
	if pass.Superseded(failed) || pass.OutcomeUnknown(failed) || errors.Is(failed, watch.ErrNotSynced) {
		return
	}
	var groups []hook.Group
	for _, kind := range r.children {
		group := hook.Group{GroupVersionKind: kind.Kind}
		if namespace := o.parent.GetNamespace(); namespace == "" || kind.Namespaced {
			var err error
			if group.Objects, err = r.owned[kind.Kind.GroupKind()].Shown(ctx, o.memory.pass); err != nil {
				return
			}
		}
		groups = append(groups, group)
	}
	answer, err := r.ask(ctx, o, &hook.Question{Parent: o.parent, Version: o.memory.version(o.parent), Children: groups}, "")
	if err == nil && answer.StatusPresence == hook.Given {
		o.memory.said = answer.Status
	}
}

// adoptable lets a parent adopt what it would make. Metacontroller adopts all that its selector matches, and deletes what
// the hook does not want: of two parents with one selector, the one deletes what the other wants. A generated selector
// names one parent only.
func (r *reconciler) adoptable(parent client.Object, orphan *unstructured.Unstructured) error {
	m := r.memoryOf(parent.GetUID())
	key := child(parent.(*unstructured.Unstructured), orphan) //nolint:forcetypeassert // Reconcile reads one
	if _, wanted := m.prepared[""].wanted.objects[key]; wanted || r.generate {
		return nil
	}
	m.orphans = append(m.orphans, key)
	return errors.New("the hook does not want it")
}

// wantsOrphan reports whether the hook has said meanwhile that one of the orphans is wanted.
func (o *observed) wantsOrphan() bool {
	if o.parent.GetDeletionTimestamp() != nil {
		return false
	}
	return slices.ContainsFunc(o.memory.orphans, func(key metacontroller.Child) bool {
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
	if _, err := r.format.Namespace(o.parent); err != nil {
		return nil, &faultError{Reason: "NoNamespaceForRevisions", Err: err}
	}
	claimed, err := r.log.ClaimObjects(ctx, o.parent, selector)
	if err != nil {
		o.memory.pass.Uncertain(err)
		return nil, err
	}
	return r.resolve(ctx, o.parent, claimed)
}

// resolve says which of the revisions of a parent is the one that it asks for.
func (r *reconciler) resolve(ctx context.Context, parent *unstructured.Unstructured, claimed []client.Object) (*revisionLog, error) {
	entries := make([]*entry, 0, len(claimed))
	for _, object := range claimed {
		stored := object.(*v1alpha1.ControllerRevision) //nolint:forcetypeassert // the format of the log reads them
		entries = append(entries, newEntry(stored, r.log.Revision(stored), r.declares))
	}
	slices.SortFunc(entries, func(a, b *entry) int { return revision.Older(a.revision, b.revision) })
	revisions := make([]revision.Revision, 0, len(entries))
	for _, e := range entries {
		revisions = append(revisions, e.revision)
	}
	verdict, err := r.log.Resolve(ctx, parent, revisions)
	if full, ok := errors.AsType[*revision.NumberError](err); ok {
		return nil, &faultError{Reason: "HistoryFull", Err: full}
	}
	if err != nil {
		return nil, err
	}
	return newLog(r.format, verdict, parent, entries, r.declares), nil
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
