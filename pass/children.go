package pass

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/anyobject"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/revision"
)

// This file claims, confirms and writes the children of one kind.

// Children are the children of one kind of a controller's parents. Make one with [NewChildren]. It is safe for
// concurrent use, like the [ownership.Writer] in it, which creates and deletes.
type Children[C client.Object] struct {
	ownership.Writer

	// Kind is the kind of the children.
	Kind schema.GroupVersionKind
	// Member, if set, reports whether a child that the selector matches may be the parent's: see [ownership.Claimer].
	Member func(parent client.Object, child C) bool
	// Adoptable, if set, is asked before an orphan is adopted: see [ownership.Claimer].
	Adoptable func(parent client.Object, orphan C) error

	// Seen, if set, is called with what the cache shows before any of it is claimed: the parent's children, and the
	// orphans that the selector matches. A pass that ends because one of them could not be claimed has seen them all the
	// same.
	Seen func(parent client.Object, candidates []C)

	// Namespace says where the children of a parent are, all namespaces if it is empty. Optional: without it they are
	// beside their parent.
	Namespace func(parent client.Object) string

	// Label is the label by which a child names its revision: by the hash, or with ByName by the name. Optional: children
	// without it come from no revision.
	Label  string
	ByName bool

	// Known reports whether something else than Label tells from which revision a child comes. Optional.
	Known func(parent client.Object, child C) bool

	// Ready reports whether a child is ready. Optional: without it all are.
	Ready func(child C) bool

	// Fresh compares the cached children with the API server: see [Children.Confirm].
	Fresh *ownership.Confirmer

	controller *Controller
	newList    func() client.ObjectList
}

// NewChildren returns the children of one kind, whose resource must be among those of the controller's consistency
// store and indexed by [ownership.ControllerIndex]. newList returns an empty list of them.
func NewChildren[C client.Object](
	c *Controller, kind schema.GroupVersionKind, resource schema.GroupResource, newList func() client.ObjectList,
) *Children[C] {
	out := &Children[C]{
		Writer:     ownership.Writer{Client: c.Client, Live: c.Live, Consistency: c.Consistency, Resource: resource},
		Kind:       kind,
		controller: c,
		newList:    newList,
		Fresh:      &ownership.Confirmer{Live: c.Live, Owner: c.Owner, Children: kind, Consistency: c.Consistency, Resource: resource},
	}
	c.OnUnknownOutcome(out.Fresh.Forget)
	return out
}

// Claim returns the children of the parent, adopted and released by the three laws ([ownership.Claim]). An error that
// wraps [ownership.ErrStale] says that one of them has changed meanwhile: a decision without it would be wrong. The
// caller ends the pass with any error.
func (ch *Children[C]) Claim(ctx context.Context, p *Pass, selector labels.Selector) ([]C, error) {
	c, parent := ch.controller, p.Parent
	candidates, err := ch.candidates(ctx, parent, selector)
	if err != nil {
		return nil, err
	}
	if ch.Seen != nil {
		ch.Seen(parent, candidates)
	}
	claimer := &ownership.Claimer{
		Parent: parent, Kind: p.kind(), Selector: selector, Writer: c.Client, Live: c.Live,
		Wrote: func(o client.Object) { c.Consistency.WroteAt(parent.GetUID(), ch.Resource, o) },
	}
	if ch.Member != nil {
		claimer.Member = func(o client.Object) bool { return ch.Member(parent, o.(C)) }
	}
	if ch.Adoptable != nil {
		claimer.Adoptable = func(o client.Object) error { return ch.Adoptable(parent, o.(C)) }
	}
	claimed, err := ownership.Claim(ctx, claimer, candidates)
	if err != nil {
		p.NoteUnknownOutcome(err)
		err = fmt.Errorf("claim the %s of %s: %w", ch.Resource.Resource, p.describe(), err)
		if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
			err = &RefusedError{Reason: "FailedClaim", Err: err, Retry: true}
		}
		return nil, err
	}
	if claimer.Lost {
		// An orphan may be ours by now, if the response to an earlier adoption was lost; a child that did not match may match
		// again. A child created beside it would be one too many.
		return nil, fmt.Errorf("%w: one of the %s of %s changed while it was being adopted or released",
			ownership.ErrStale, ch.Resource.Resource, p.describe())
	}
	return claimed, nil
}

// Shown returns the children that the cache shows as the parent's, without claiming any: for a pass that ends because
// it could not claim them.
func (ch *Children[C]) Shown(ctx context.Context, p *Pass) ([]C, error) {
	return ch.candidates(ctx, p.Parent, labels.Nothing())
}

// candidates returns the children that the cache shows as the parent's, and the orphans that selector matches.
func (ch *Children[C]) candidates(ctx context.Context, parent client.Object, selector labels.Selector) ([]C, error) {
	var out []C
	found := func(o client.Object) error {
		out = append(out, o.(C))
		return nil
	}
	owner := ch.controller.Owner(parent)
	if ok, err := ch.controller.Consistency.Candidates(ch.Resource, ch.namespace(parent), owner, selector, found); ok {
		return out, err
	}
	err := ownership.Candidates(ctx, ch.controller.Cache, ch.newList(), ch.namespace(parent), owner, selector, true, found)
	return out, err
}

func (ch *Children[C]) namespace(parent client.Object) string {
	if ch.Namespace == nil {
		return parent.GetNamespace()
	}
	return ch.Namespace(parent)
}

// Confirm checks, before the first destructive step for a parent in this process and after the outcome of a write was
// unknown, that the claimed children are those that the API server has. It returns an error that wraps
// [ownership.ErrStale] if they are not, and another one if the API server cannot be read (retry).
func (ch *Children[C]) Confirm(ctx context.Context, p *Pass, selector labels.Selector, claimed []C) error {
	children := make([]client.Object, len(claimed))
	for i, child := range claimed {
		children[i] = child
	}
	why, err := ch.Fresh.ConfirmIn(ctx, ch.namespace(p.Parent), p.Parent, selector, children)
	if err == nil && why != "" {
		err = fmt.Errorf("%w: %s", ownership.ErrStale, why)
	}
	return err
}

// Remove deletes exactly the child that was read: see [ownership.Writer.Delete]. Events say that it was deleted and
// why, or what went wrong.
func (ch *Children[C]) Remove(ctx context.Context, p *Pass, read C, reason string) error {
	_, err := ch.Removed(ctx, p, read, reason)
	return err
}

// Removed is [Children.Remove] for whoever has to know whether the child was deleted: one that has changed since it was
// read was not, and that is no error.
func (ch *Children[C]) Removed(ctx context.Context, p *Pass, read C, reason string) (deleted bool, err error) {
	kind, name := strings.ToLower(ch.Kind.Kind), read.GetName()
	deleted, err = ch.Delete(ctx, p.Parent, read)
	if err != nil {
		p.Warn(read, "FailedDelete", "Delete", "Error deleting %s %s: %v", kind, name, err)
		return false, fmt.Errorf("delete %s %s: %w", kind, name, err)
	}
	if deleted {
		p.Normal(read, "SuccessfulDelete", "Delete", "Deleted %s: %s (%s)", kind, name, reason)
	}
	return deleted, nil
}

// Patch changes the metadata of exactly the child that was read, by a merge patch, and returns the child as stored. The
// error is the API server's: a conflict or a not-found error means that another writer was first.
func (ch *Children[C]) Patch(ctx context.Context, p *Pass, read C, metadata map[string]any) (C, error) {
	var none C
	body := map[string]any{"uid": read.GetUID(), "resourceVersion": read.GetResourceVersion()}
	maps.Copy(body, metadata)
	raw, err := json.Marshal(map[string]any{"metadata": body})
	if err != nil {
		return none, err
	}
	out := anyobject.Blank(read).(C)
	if err := ch.Client.Patch(ctx, out, client.RawPatch(types.MergePatchType, raw)); err != nil {
		return none, err
	}
	ch.Consistency.WroteAt(p.Parent.GetUID(), ch.Resource, out)
	return out, nil
}

// Claimed are children of one kind that a pass has claimed. Make it with [Children.Claimed].
type Claimed[C client.Object] struct {
	all      []C
	children *Children[C]
	pass     *Pass
	selector labels.Selector
}

// Claimed returns what [Children.Claim] has returned, for the steps that follow.
func (ch *Children[C]) Claimed(p *Pass, selector labels.Selector, claimed []C) Claimed[C] {
	return Claimed[C]{claimed, ch, p, selector}
}

// Confirm is [Children.Confirm].
func (c Claimed[C]) Confirm(ctx context.Context) error {
	return c.children.Confirm(ctx, c.pass, c.selector, c.all)
}

// revisions are what the labels of the children say.
func (c Claimed[C]) revisions() []string {
	if c.children.Label == "" {
		return nil
	}
	out := make([]string, 0, len(c.all))
	for _, child := range c.all {
		out = append(out, child.GetLabels()[c.children.Label])
	}
	return out
}

// serves reports whether a child is ready.
func (c Claimed[C]) serves(child client.Object) bool {
	return c.children.Ready == nil || c.children.Ready(child.(C))
}

// suspects returns the children that are not terminating and whose label names none of the known revisions, or that
// were altered.
func (c Claimed[C]) suspects(known []revision.Revision, altered func(client.Object) bool) []client.Object {
	names := map[string]bool{}
	for _, r := range known {
		names[c.value(r)] = true
	}
	var out []client.Object
	for _, child := range c.all {
		strange := c.children.Label != "" && !names[child.GetLabels()[c.children.Label]] &&
			(c.children.Known == nil || !c.children.Known(c.pass.Parent, child))
		if child.GetDeletionTimestamp() == nil && (altered(child) || strange) {
			out = append(out, child)
		}
	}
	return out
}

// Relabel points the children of a duplicate revision at the one that stays. It touches only children that carry the
// duplicate's value: relabelling the others was kubernetes#111280. In the claimed children, the relabelled child
// replaces the one that was read.
func (c Claimed[C]) Relabel(ctx context.Context, from, to revision.Revision) error {
	// A child that the cache does not show would keep the label of a revision that is about to be deleted.
	if err := c.Confirm(ctx); err != nil || c.children.Label == "" {
		return err
	}
	ch, old, now := c.children, c.value(from), c.value(to)
	var mine []int
	for i, child := range c.all {
		if has := child.GetLabels()[ch.Label]; has != "" && has == old && has != now {
			mine = append(mine, i)
		}
	}
	err := Each(mine, func(i int) error {
		out, err := ch.Patch(ctx, c.pass, c.all[i], map[string]any{"labels": map[string]string{ch.Label: now}})
		if err == nil {
			c.all[i] = out // what follows in this pass must not take it for one of the duplicate
		}
		return err
	})
	c.pass.NoteUnknownOutcome(err)
	// A deleted child may have a successor that the cache does not show either.
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: %w", ownership.ErrStale, err)
	}
	return err
}

// value is what the label of a child says of its revision.
func (c Claimed[C]) value(r revision.Revision) string {
	if c.children.ByName {
		return r.Name
	}
	return r.Hash
}
