package history

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/revision"
)

// This file reads the log of a parent: what it claims, what it owns, and both past every cache.

// Claim returns the revisions of parent, oldest first, after adopting orphans that match selector and releasing what no
// longer matches (ControllerRef proposal). Orphans of another kind's format are not adopted, even if the labels match.
// The error joins all that went wrong; the caller retries the pass and acts on nothing. It wraps [ErrStale] if a
// revision changed while it was being adopted or released.
func (l *Log) Claim(ctx context.Context, parent client.Object, selector labels.Selector) ([]revision.Revision, error) {
	claimed, err := l.ClaimObjects(ctx, parent, selector)
	if err != nil {
		return nil, err
	}
	return l.Revisions(parent, claimed), nil
}

// ClaimObjects is [Log.Claim] for a caller who needs more of the stored objects than their revisions. [Log.Revisions]
// reads those. It returns them in no particular order. They come from a cache and are not to be changed.
func (l *Log) ClaimObjects(ctx context.Context, parent client.Object, selector labels.Selector) ([]client.Object, error) {
	found, err := l.candidates(ctx, parent, selector)
	if err != nil {
		return nil, err
	}
	claimed, err := l.claim(ctx, parent, selector, found)
	if err == nil {
		err = l.follow(ctx, parent, claimed)
	}
	if err != nil {
		return nil, err
	}
	return claimed, nil
}

func (l *Log) claim(
	ctx context.Context, parent client.Object, selector labels.Selector, found []client.Object,
) ([]client.Object, error) {
	claimer := &ownership.Claimer{
		Parent:   parent,
		Kind:     l.OwnerKind(parent),
		Selector: selector,
		Writer:   l.opts.Client,
		Live:     l.opts.Live,
		Adoptable: func(orphan client.Object) error { // asked about orphans only, so that nothing is sorted out where there are none
			owned := slices.DeleteFunc(slices.Clone(found), func(o client.Object) bool { return !l.owner(parent).Controls(o) })
			return l.Adoptable(parent, orphan, owned)
		},
		Wrote: func(o client.Object) { l.opts.Consistency.WroteAt(parent.GetUID(), l.Resource(), o) },
	}
	claimed, err := ownership.Claim(ctx, claimer, found)
	if err != nil {
		return nil, fmt.Errorf("claim the revisions of %s: %w", l.describe(parent), err)
	}
	if claimer.Lost {
		// An orphan may be ours by now, if the response to an earlier adoption was lost. A revision beside it would be one
		// too many.
		return nil, fmt.Errorf("%w: a revision of %s changed while it was being adopted or released", ErrStale, l.describe(parent))
	}
	return claimed, nil
}

// adopt adopts one orphaned revision, if the laws let parent have it. It returns nil if they do not.
func (l *Log) adopt(ctx context.Context, parent, o client.Object) (client.Object, error) {
	selector, err := l.Selector(parent)
	if err != nil {
		return nil, err
	}
	claimed, err := l.claim(ctx, parent, selector, []client.Object{o})
	if len(claimed) == 0 || err != nil {
		return nil, err
	}
	return claimed[0], nil
}

// List returns the revisions that parent owns, oldest first. It writes nothing: it is for commands that show a log.
func (l *Log) List(ctx context.Context, parent client.Object) ([]revision.Revision, error) {
	found, err := l.ListObjects(ctx, parent)
	if err != nil {
		return nil, err
	}
	return l.Revisions(parent, found), nil
}

// ListObjects is [Log.List] for a caller who needs more of the stored objects than their revisions, which
// [Log.Revision] says.
func (l *Log) ListObjects(ctx context.Context, parent client.Object) ([]client.Object, error) {
	found, err := l.candidates(ctx, parent, labels.Nothing())
	slices.SortFunc(found, func(a, b client.Object) int { return revision.CompareByNumber(l.Revision(a), l.Revision(b)) })
	return found, err
}

// Others returns the revisions that parent controls and that this log did not make: see [Options.Mine]. They come from
// a cache and are not to be changed.
func (l *Log) Others(ctx context.Context, parent client.Object) ([]client.Object, error) {
	all := *l
	all.opts.Mine = func(o client.Object) bool { return l.opts.Mine != nil && !l.opts.Mine(o) }
	return all.candidates(ctx, parent, labels.Nothing())
}

// candidates returns the revisions that parent owns, and the orphans that selector matches.
func (l *Log) candidates(ctx context.Context, parent client.Object, selector labels.Selector) ([]client.Object, error) {
	namespace, err := l.Namespace(parent)
	if err != nil {
		return nil, fmt.Errorf("find the revisions of %s: %w", l.describe(parent), err)
	}
	var out []client.Object
	found := func(o client.Object) error {
		if l.opts.Mine == nil || l.opts.Mine(o) {
			out = append(out, o)
		}
		return nil
	}
	lists := l.opts.Lists
	if l.opts.Matching && !l.opts.Indexed {
		if lists, err = l.matching(parent); err != nil {
			return nil, fmt.Errorf("find the revisions of %s: %w", l.describe(parent), err)
		}
	}
	err = ownership.Candidates(ctx, lists, l.EmptyList(), namespace, l.owner(parent), selector, l.opts.Indexed, found)
	return out, err
}

// matching is a reader that lists what the selector of parent matches.
func (l *Log) matching(parent client.Object) (client.Reader, error) {
	selector, err := l.Selector(parent)
	return &selecting{l.opts.Lists, client.MatchingLabelsSelector{Selector: selector}}, err
}

// selecting is a reader whose lists have a selector.
type selecting struct {
	client.Reader

	by client.MatchingLabelsSelector
}

// List lists what the selector matches.
func (s *selecting) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return s.Reader.List(ctx, list, append(opts, s.by)...)
}

// Revisions decodes stored objects, oldest first, and identifies them: see [revision.Identified]. objects are all
// revisions of parent.
func (l *Log) Revisions(parent client.Object, objects []client.Object) []revision.Revision {
	out := make([]revision.Revision, 0, len(objects))
	for _, o := range objects {
		out = append(out, l.Revision(o))
	}
	return revision.Identified(namedWith(parent), revision.Sorted(out))
}

// stored lists the revisions that parent owns past every cache.
func (l *Log) stored(ctx context.Context, parent client.Object) ([]client.Object, error) {
	selector, err := l.Selector(parent)
	if err != nil {
		return nil, err
	}
	namespace, err := l.Namespace(parent)
	if err != nil {
		return nil, err
	}
	list := l.EmptyList()
	err = l.opts.Live.List(ctx, list, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return nil, fmt.Errorf("list the revisions of %s past the cache: %w", l.describe(parent), err)
	}
	var out []client.Object
	owner := l.owner(parent)
	err = meta.EachListItem(list, func(item runtime.Object) error {
		if o := item.(client.Object); owner.Controls(o) {
			out = append(out, o)
		}
		return nil
	})
	return out, err
}

// get reads one revision past every cache.
func (l *Log) get(ctx context.Context, parent client.Object, name string) (client.Object, error) {
	namespace, err := l.Namespace(parent)
	if err != nil {
		return nil, err
	}
	o := l.Empty()
	return o, l.opts.Live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, o)
}
