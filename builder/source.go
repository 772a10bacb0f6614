package builder

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/pass"
	"github.com/cairn-dev/cairn/revision"
	"github.com/cairn-dev/cairn/rollback"
)

// This file says what children are made from, and makes the facts of a plan of what was gathered.

// facts are what the plan for o is made from: what the update revision wants, and the one that children come from which
// are not updated. Where the update revision could not be recorded, that is all there is.
func (r *reconciler[P]) facts(ctx context.Context, o *observed, recorded *pass.Recorded) (facts, error) {
	parent := o.parent.(P)
	f := facts{strategy: o.strategy, failed: func(rule int, child client.Object) int { return o.failed(describe(r.kinds[rule], child)) }}
	for _, k := range r.kinds {
		if k.minReady != nil {
			f.minReady = max(f.minReady, k.minReady(o.parent))
		}
	}
	var update, older []want
	var err error
	if recorded.Update != nil {
		// What the update revision wants is what the parent wants as it is: they are equal, and where a default was added
		// since, the author's function may rely on it.
		f.update, update = recorded.Update.Hash, o.wanted
	}
	if from := r.olderOf(o, recorded); from != nil {
		f.older = from.Hash
		if recorded.Update == nil || r.lacks(o, update) {
			if older, err = r.restored(parent, from); err != nil {
				return f, err
			}
		}
	}
	r.sort(o, parent, &f, update, older)
	r.keepNeeded(parent, &f, recorded)
	err = r.conflicting(ctx, parent.GetNamespace(), &f)
	return f, err
}

// keepNeeded keeps, of the children that are not wanted any more, those that children of an older revision may need
// which are still at their places: a ConfigMap that is named by its content, and that a pod which is held mounts. They
// go with the last of these. What is of the same kind is not needed: a pod that is scaled away goes at once. Where it
// is not known what an older revision wants, it may be anything.
func (r *reconciler[P]) keepNeeded(parent P, f *facts, recorded *pass.Recorded) {
	kinds := map[string][]int{} // of the children at their places, by their revision
	for _, p := range f.places {
		for _, c := range p.children {
			if !c.terminating && c.revision != f.update {
				kinds[c.revision] = append(kinds[c.revision], p.rule)
			}
		}
	}
	f.surplus = slices.DeleteFunc(f.surplus, func(c owned) bool {
		for hash, of := range kinds {
			if !slices.Contains(of, c.rule) && r.mayWant(parent, recorded, hash, position{c.rule, placeOf(c.object)}) {
				return true
			}
		}
		return false
	})
}

// mayWant reports whether a revision wants a child somewhere, or nobody knows.
func (r *reconciler[P]) mayWant(parent P, recorded *pass.Recorded, hash string, at position) bool {
	i := slices.IndexFunc(recorded.Entries, func(e revision.Revision) bool { return e.Hash == hash })
	if i < 0 || recorded.Entries[i].Snapshot == nil {
		return true
	}
	wants, err := r.restored(parent, &recorded.Entries[i])
	return err != nil || slices.ContainsFunc(wants, func(w want) bool { return position{w.rule, w.object.GetName()} == at })
}

// lacks reports whether a place that is wanted has no child but terminating ones. Nothing is made from an older
// revision elsewhere.
func (r *reconciler[P]) lacks(o *observed, wanted []want) bool {
	there := map[position]bool{}
	for rule, children := range o.children {
		for _, child := range children {
			if child.GetDeletionTimestamp() == nil {
				there[position{rule, placeOf(child)}] = true
			}
		}
	}
	return slices.ContainsFunc(wanted, func(w want) bool {
		return !r.kinds[w.rule].applied && !there[position{w.rule, w.object.GetName()}]
	})
}

// olderOf returns the revision from which children are recreated where the rollout may not go. Of the older revisions
// that children come from it is the newest good one, or else the newest. If no such child is left, it is the newest
// good one, unless the update revision is good. It is nil if there is none. See [rollback.Good].
//
// While the update revision could not be recorded, the newest that was stands for it: a rollout to that one may have
// begun. One that holds what the parent asks for is no older one either: it was only not made the newest.
func (r *reconciler[P]) olderOf(o *observed, recorded *pass.Recorded) *revision.Revision {
	var update types.UID
	switch n := len(recorded.Entries); {
	case recorded.Update != nil:
		update = recorded.Update.UID
	case n > 0:
		update = recorded.Entries[n-1].UID
	}
	live := revision.NewInUse(o.alive()...)
	known := rollback.GoodOf(o.parent)
	good := func(e *revision.Revision) bool { return known.Includes(e.UID) }
	used := func(e *revision.Revision) bool { return live.Names(e.Hash) }
	for _, wanted := range []func(*revision.Revision) bool{
		func(e *revision.Revision) bool { return used(e) && good(e) },
		used,
		func(e *revision.Revision) bool { return good(e) && !known.Includes(update) && !e.Unlabelled },
	} {
		for i := len(recorded.Entries) - 1; i >= 0; i-- {
			e := &recorded.Entries[i]
			if e.UID != update && e.Snapshot != nil && !e.Deleting && !askedAgain(recorded, e) && wanted(e) {
				return e
			}
		}
	}
	if recorded.Update == nil {
		return recorded.Newest(o.families, o.genuine)
	}
	return nil
}

// askedAgain reports whether a revision holds what the parent asks for, which could not be recorded.
func askedAgain(recorded *pass.Recorded, e *revision.Revision) bool {
	return recorded.Update == nil && recorded.Snapshot != nil && revision.Compare(recorded.Snapshot, e.Snapshot) != revision.RuleNone
}

// alive are the revisions that children name which are not terminating.
func (o *observed) alive() []string {
	var out []string
	for _, children := range o.children {
		for _, child := range children {
			if child.GetDeletionTimestamp() == nil {
				out = append(out, child.GetLabels()[HashLabel])
			}
		}
	}
	return out
}

// restored returns what a parent wants with its versioned fields taken from a revision, which can be read.
func (r *reconciler[P]) restored(parent P, from *revision.Revision) ([]want, error) {
	return r.answers.ask(parent, source{from.UID, from.ResourceVersion}, func() ([]want, error) {
		out, err := r.restore(parent, from.Snapshot)
		if err != nil {
			return nil, fmt.Errorf("restore the revision %s: %w", from.Name, err)
		}
		return r.wantedOf(out.(P))
	})
}
