package check

import (
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/proof/kinds"
)

// This file says what the rules must know about a kind of parent. Package parents fills in one for each.

// Kind describes one kind of parent. Functions are pure; they get objects of the kind's own resources only.
type Kind struct {
	// Kind says what it is called, and which resources there are.
	kinds.Kind

	// Names reports whether a child says that it came from that revision.
	Names func(child, revision client.Object) bool
	// Labelled reports whether a child says that it came from any.
	Labelled func(child client.Object) bool
	// Number is a revision's number.
	Number func(revision client.Object) int64
	// Snapshot is what a revision holds, in a form in which two that mean the same are equal.
	Snapshot func(revision client.Object) (string, error)
	// Target is what a parent asks for now, in the same form.
	Target func(parent client.Object) string
	// Strays says in what a child's content differs from what its revision asks for, "" if in nothing.
	Strays func(child, revision client.Object) string
	// StraysNow says in what a child's content differs from what its parent asks for now.
	StraysNow func(child, parent client.Object) string

	// Units are the places that a child can be at, nodes, ordinals, keys, in their order. None if children have no places,
	// only a number.
	Units func(s *State, parent client.Object) []Unit
	// Apart says that releases of the controller record other fields: what one has recorded is no duplicate for the other.
	Apart bool
	// Ended reports whether a child has ended by itself, and so serves nobody and never will.
	Ended func(child client.Object) bool
	// Available reports whether a child serves at that time; the zero time means that it has served for long enough.
	Available func(child, parent client.Object, at time.Time) bool
	// Budget is what a rollout may cost, of so many wanted units.
	Budget func(parent client.Object, wanted int) Budget

	// ObservedGeneration is that of the parent's status. Of a kind whose status has none, it is
	// the parent's own.
	ObservedGeneration func(parent client.Object) int64
	// Complete reports whether the status says that everything is as the spec asks.
	Complete func(parent client.Object) bool
	// Implausible says what no status can say, whatever there is: a negative counter, more updated than there are.
	Implausible func(parent client.Object) []string
	// Miscounted says where the status differs from what there is.
	Miscounted func(s *State, parent client.Object) []string
	// Served are how many children the status calls available, and how many are if every timer is over: all that are
	// ready. ok is false if that cannot be said of a world; nil, of the kind.
	Served func(s *State, parent client.Object) (said, counted int32, ok bool)
	// StatusRevisions are the names of the revisions that the status names.
	StatusRevisions func(parent client.Object) []string
	// Mine reports whether a revision was made by the controllers of the kind; nil means that there are no others. While a
	// parent has another one, its own controller keeps its history, and ours none.
	Mine func(revision client.Object) bool
	// Limit is how many revisions that nobody came from may be kept.
	Limit func(parent client.Object) int
	// Bytes is how much of them may be kept, in bytes: one stays whatever its size. Zero is no bound.
	Bytes int

	// The rest may be nil: then there is no such promise.

	// Most is how many children a parent asks for: of those that have places, one at each wanted unit.
	Most func(parent client.Object) int
	// Ordered reports whether units are filled in their order, each when all before it serve, and updated and emptied in
	// the opposite one.
	Ordered func(parent client.Object) bool
	// Alone reports whether children of two revisions are never there at the same time: all old ones are deleted, in any
	// order, before a new one is created.
	Alone func(parent client.Object) bool
	// Starting reports whether a child of an ordered parent was never ready and does not fail, so that it is left to
	// start.
	Starting func(child, parent client.Object) bool
	// Holds reports whether a parent keeps a part of its units at the current revision, if it asked for any.
	Holds func(parent client.Object) bool
	// Current and Update are the revisions that the status names: the one that children come from until they are updated,
	// and the one to which they are. Empty if it names none.
	Current, Update func(parent client.Object) string
	// Claimed reports whether a claim is a parent's, by its name.
	Claimed func(parent, claim client.Object) bool
	// Outlives reports whether a claim is a child's and would outlive it, although the parent says that it goes with a
	// child that is not asked for any more.
	Outlives func(claim, child, parent client.Object) bool
	// Asked is what a hook wants of the children of this resource, in the order of its answer: for a parent as it is, or,
	// if a revision is given, as it was then. Where it is set, a revision says which children are its own, before they are
	// touched, and of two that say so of one the newer counts.
	Asked func(parent, revision client.Object) []client.Object
	// NamesOthers reports whether a revision says that children of another controller of the same parents are its own.
	NamesOthers func(revision client.Object) bool
	// Named is the name under which upstream stores what a revision holds, for a collision count. It is set where names
	// follow from what a revision holds.
	Named func(parent, revision client.Object, collisionCount *int32) string
	// Place is where a child is, or is bound for. Where it is set, nothing but the controllers gives a child its name, and
	// none has the name of the child that it replaces.
	Place func(child client.Object) string
	// Returns is true if a child that is lost while the rollout may go no further comes from the revision that the others
	// still come from, as far as that can be seen without a status that names it.
	Returns bool
	// Runs is set where children are runs of a schedule, which end by themselves and are never replaced.
	Runs *Runs
	// CompleteServes is true if Complete says of every wanted unit as well that a child serves there.
	CompleteServes bool
}

// Unit is one place for a child.
type Unit struct {
	Name string
	// Wanted is true if there should be a child, MayStay if one that is there need not go.
	Wanted, MayStay bool
	// Guarded is true if a child that is made here comes from the current revision, whatever the spec asks for.
	Guarded bool
	// Vacant is true if no child may be made here, because the unit is guarded and the current revision is lost. Kinds
	// with Asked need not set it.
	Vacant bool
	// Taken is true if what somebody did here stands in the way, so that a controller can only wait.
	Taken bool
	// Children are those of the parent that are there, the ones that are going included.
	Children []client.Object
}

// Budget is what a rollout may cost.
type Budget struct {
	MaxUnavailable, MaxSurge int
	// Beside is true if MaxSurge does not limit the children beside unavailable children.
	Beside bool
}

// Scopes are the resources that the rules for the kind read.
func (k Kind) Scopes() []Scope {
	var out []Scope
	for _, r := range k.Resources() {
		out = append(out, Scope{Resource: r, Cluster: kinds.Cluster(r)})
	}
	return out
}

// mine reports whether a revision was made by the controllers of the kind.
func (k Kind) mine(revision client.Object) bool { return k.Mine == nil || k.Mine(revision) }

// alive returns the children of a unit that neither are going nor have ended.
func (k Kind) alive(u Unit) []client.Object {
	var out []client.Object
	for _, child := range u.Children {
		if child.GetDeletionTimestamp() == nil && !k.Ended(child) {
			out = append(out, child)
		}
	}
	return out
}

// serves reports whether any child of a unit but the one given does.
func (k Kind) serves(u Unit, parent, except client.Object, at time.Time) bool {
	for _, child := range k.alive(u) {
		if (except == nil || child.GetUID() != except.GetUID()) && k.Available(child, parent, at) {
			return true
		}
	}
	return false
}

// wanted counts the units that want a child, and those of them where none serves.
func (k Kind) wanted(units []Unit, parent client.Object, at time.Time) (wanted, unavailable int) {
	for _, u := range units {
		if !u.Wanted {
			continue
		}
		wanted++
		if !k.serves(u, parent, nil, at) {
			unavailable++
		}
	}
	return wanted, unavailable
}

// unitOf returns the unit where a child is.
func unitOf(units []Unit, child client.Object) (Unit, bool) {
	for _, u := range units {
		for _, c := range u.Children {
			if c.GetUID() == child.GetUID() {
				return u, true
			}
		}
	}
	return Unit{}, false
}

// asked reports whether a revision holds what a parent asks for now. One that cannot be read does not.
func (k Kind) asked(parent, revision client.Object) bool {
	snapshot, err := k.Snapshot(revision)
	return err == nil && snapshot == k.Target(parent)
}

// stamped reports whether a revision that cannot be read was recorded from just this generation of a parent: then its
// stamp says that it held what the parent asks for.
func (k Kind) stamped(parent, revision client.Object) bool {
	if _, err := k.Snapshot(revision); err == nil {
		return false
	}
	says := revision.GetAnnotations()
	return says[history.ParentUIDAnnotation] == string(parent.GetUID()) &&
		says[history.ParentGenerationAnnotation] == strconv.FormatInt(parent.GetGeneration(), 10)
}

// same reports whether two revisions hold the same. One that cannot be read holds nothing.
func (k Kind) same(a, b client.Object) bool {
	one, err := k.Snapshot(a)
	if err != nil {
		return false
	}
	other, err := k.Snapshot(b)
	return err == nil && one == other
}

// named returns the revision of the same parent that a child says it came from, or the newest that says that the child
// is its own; nil if there is none.
func (k Kind) named(s *State, child client.Object) client.Object {
	return k.namedOf(s, child, func(client.Object) bool { return true })
}

// namedOf is named of some of the revisions.
func (k Kind) namedOf(s *State, child client.Object, some func(revision client.Object) bool) client.Object {
	var found client.Object
	for _, r := range s.Owned(k.Revisions, ownerUID(child)) {
		switch {
		case !some(r) || !k.Names(child, r) || found != nil && k.Number(r) <= k.Number(found):
		case k.Asked == nil:
			return r
		default:
			found = r
		}
	}
	return found
}

// user returns a child of the parent that came from the revision, nil if there is none: the revision is live.
func (k Kind) user(s *State, revision client.Object) client.Object {
	return k.userOf(s, revision, func(client.Object) bool { return true })
}

// userOf is user of some of the children.
func (k Kind) userOf(s *State, revision client.Object, some func(child client.Object) bool) client.Object {
	for _, child := range s.Owned(k.Children, ownerUID(revision)) {
		switch {
		case !k.Names(child, revision) || !some(child):
		case k.Asked == nil, k.named(s, child) == revision && k.wants(s.ByUID(ownerUID(revision)), nil, child) != nil:
			return child
		}
	}
	return nil
}

// uids returns the parents of a kind that ever were, in a fixed order.
func (s *State) uids(k Kind) []types.UID {
	var out []types.UID
	for uid, was := range s.identities {
		if was.Resource == k.Parents {
			out = append(out, uid)
		}
	}
	slices.Sort(out)
	return out
}
