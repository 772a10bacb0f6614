package revision

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// This file holds the stored revision as the pure core sees it, and the one order that revisions have.

// Revision is one stored snapshot, whatever API type it is stored in. It is a plain value; nothing here reads or writes
// the object behind it.
type Revision struct {
	// Name and UID identify the object.
	Name string
	UID  types.UID
	// ResourceVersion is the version that was read. Writes use it as a precondition.
	ResourceVersion string
	// Number is the revision number: rises strictly, moves when the parent goes back to this snapshot.
	Number int64
	// Hash is the label value by which children point at this revision: see [Identified]. In what [history.Log.Revision]
	// reads of one object it is the label as stored, empty if there is none.
	Hash string
	// Unlabelled is true if the object does not carry Hash as its label, or another revision has that label too.
	Unlabelled bool
	// Stamp says from which read of which parent the revision was last recorded. Zero if another writer recorded it.
	Stamp Stamp
	// Completed are the names of revisions to which a rollout is known to have been complete when this one was recorded.
	Completed []string
	// Deleting is true for an object with a deletion timestamp. It counts for numbers. It is the update revision only
	// if no other revision is equivalent to the parent.
	Deleting bool
	// Snapshot is the decoded data, nil if it cannot be decoded; then Err says why.
	Snapshot *Snapshot
	Err      error
}

// Stamp fences the log: the UID of the parent and its metadata.generation when the revision was created or renumbered.
type Stamp struct {
	ParentUID  types.UID
	Generation int64
}

// CompareByNumber compares two revisions in history order: by number, ties by name. Timestamps play no part, because
// clocks do not order writes (proposal, "Version Tracking"). It is a total order over revisions with distinct names,
// fit for [slices.SortFunc].
func CompareByNumber(a, b Revision) int {
	switch {
	case a.Number < b.Number:
		return -1
	case a.Number > b.Number:
		return 1
	default:
		return strings.Compare(a.Name, b.Name)
	}
}

// Sorted returns a copy of revisions, oldest first.
func Sorted(revisions []Revision) []Revision {
	out := slices.Clone(revisions)
	slices.SortFunc(out, CompareByNumber)
	return out
}
