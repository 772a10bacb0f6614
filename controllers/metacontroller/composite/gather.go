package composite

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/history/metacontroller"
	"github.com/cairn-dev/cairn/internal/metacontroller/children"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
	"github.com/cairn-dev/cairn/pass"
	"github.com/cairn-dev/cairn/revision"
)

// This file holds the reads of a pass: the children and revisions of a parent, and their adoption and release. (Calls
// of hooks and dry runs are in ask.go and compare.go, what is compared with the API server before a write in
// confirm.go.) Objects come from a cache without copies: nothing here or later may change them.

// gathered is what one pass works on.
type gathered struct {
	pass   *pass.Pass
	parent *unstructured.Unstructured
	memory *memory
	// said is the status from the hook's answer if the pass could not decide anything, nil if the hook was not called.
	said map[string]any

	selector labels.Selector
	// ending says that the finalize hook is called: the parent is terminating, or no longer one of the controller's.
	ending bool
	// groups are the children by kind, as hooks get them; children are the same by name.
	groups   []hook.Group
	children map[metacontroller.Child]*unstructured.Unstructured
	log      *revisionLog
}

// newGeneration reports whether the stored status is about an older generation.
func (o *gathered) newGeneration() bool {
	at, _, _ := unstructured.NestedInt64(o.parent.Object, "status", "observedGeneration")
	return at != o.parent.GetGeneration()
}

// gatherer reads and claims what belongs to parents.
type gatherer struct {
	*settings
	*neighbours

	memories *memories
	// kinds claims children, and log holds the revisions.
	kinds *children.Kinds
	log   *history.Log
}

// gather reads what belongs to a parent, and claims it. It ignores what o holds of an earlier call.
func (r *gatherer) gather(ctx context.Context, o *gathered) (err error) {
	o.children, o.log, o.selector = map[metacontroller.Child]*unstructured.Unstructured{}, nil, nil
	o.memory.answers.orphans = nil
	o.ending = o.parent.GetDeletionTimestamp() != nil || !r.matches(o.parent)
	if o.memory.sharers, err = r.share(ctx, o.parent); err != nil {
		return err
	}
	if o.selector, err = r.format.ChildSelector(o.parent); err != nil {
		return &faultError{Reason: "InvalidSelector", Err: err}
	}
	o.groups, err = r.kinds.Read(o.parent, func(of *children.Owned) ([]*unstructured.Unstructured, error) {
		return of.Claim(ctx, o.pass, o.selector)
	})
	if err != nil {
		return err
	}
	for _, group := range o.groups {
		for _, c := range group.Objects {
			o.children[child(o.parent, c)] = c
		}
	}
	if r.recorded && !o.ending {
		o.log, err = r.gatherRevisions(ctx, o)
	}
	return err
}

// shown are the children that the cache shows of a parent whose children or revisions cannot be claimed.
func (r *gatherer) shown(ctx context.Context, o *gathered) ([]hook.Group, error) {
	return r.kinds.Read(o.parent, func(of *children.Owned) ([]*unstructured.Unstructured, error) { return of.Shown(ctx, o.pass) })
}

// adoptable lets a parent adopt only what the hook wants. Metacontroller adopts all that its selector matches, and
// deletes what the hook does not want: of two parents with one selector, one deletes the children of the other. A
// generated selector matches the children of one parent only.
func (r *gatherer) adoptable(parent client.Object, orphan *unstructured.Unstructured) error {
	answers := &r.memories.of(parent.GetUID()).answers
	key := child(parent.(*unstructured.Unstructured), orphan)
	if r.generate || answers.wants(key) {
		return nil
	}
	answers.orphans = append(answers.orphans, key)
	return errors.New("the hook does not want it")
}

// wantsOrphan reports whether an orphan is in the hook's latest answer.
func (o *gathered) wantsOrphan() bool {
	if o.parent.GetDeletionTimestamp() != nil {
		return false
	}
	return slices.ContainsFunc(o.memory.answers.orphans, o.memory.answers.wants)
}

// gatherRevisions reads and claims the revisions of a parent.
func (r *gatherer) gatherRevisions(ctx context.Context, o *gathered) (*revisionLog, error) {
	selector, err := r.format.Selector(o.parent)
	if err != nil {
		return nil, &faultError{Reason: "InvalidSelector", Err: err}
	}
	if _, err := r.format.Namespace(o.parent); err != nil {
		return nil, &faultError{Reason: "NoNamespaceForRevisions", Err: err}
	}
	claimed, err := r.log.ClaimObjects(ctx, o.parent, selector)
	if err != nil {
		o.pass.NoteUnknownOutcome(err)
		return nil, err
	}
	return r.resolve(ctx, o.parent, claimed)
}

// resolve says which of the revisions of a parent is the one that it asks for.
func (r *gatherer) resolve(ctx context.Context, parent *unstructured.Unstructured, claimed []client.Object) (*revisionLog, error) {
	entries := make([]*entry, 0, len(claimed))
	for _, object := range claimed {
		stored := object.(*v1alpha1.ControllerRevision)
		entries = append(entries, newEntry(stored, r.log.Revision(stored), r.declares))
	}
	slices.SortFunc(entries, func(a, b *entry) int { return revision.CompareByNumber(a.revision, b.revision) })
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
