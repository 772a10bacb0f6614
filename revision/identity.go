package revision

import "slices"

// This file assigns a hash to each revision. That is its hash label, unless the label is missing or belongs to another
// revision.

// Identified returns a copy of all revisions of a parent, each with its Hash. Two revisions with certainly different
// content never share one, so a child with that hash comes from exactly one of them. named returns the name that a
// controller gives to a revision with a hash.
//
// If several revisions have the same label, the revision with that name keeps it. A revision whose whole name is the
// hash comes next. Among equals none keeps it. The other revisions, and those without a label, get [LabelValue] of
// their name. Their UID is appended if another revision has that value.
//
// The result depends on the stored revisions only. It is the same in each pass, even if the label cannot be written.
func Identified(named func(hash string) string, all []Revision) []Revision {
	out := slices.Clone(all)
	labelled := make(map[string][]int, len(all))
	for i, r := range all {
		labelled[r.Hash] = append(labelled[r.Hash], i)
	}
	wanted := map[string]int{} // how many revisions need a label, by what their names make of it
	for i, r := range all {
		out[i].Unlabelled = r.Unlabelled || r.Hash == "" || slices.ContainsFunc(labelled[r.Hash], func(k int) bool {
			other := all[k]
			return k != i && other.right(named) >= r.right(named) &&
				r.Snapshot != nil && other.Snapshot != nil && differ(r.Snapshot, other.Snapshot)
		})
		if out[i].Unlabelled {
			wanted[LabelValue(r.Name)]++
		}
	}
	for i, r := range out {
		if !r.Unlabelled {
			continue
		}
		out[i].Hash = LabelValue(r.Name)
		if wanted[out[i].Hash] > 1 || slices.ContainsFunc(labelled[out[i].Hash], func(k int) bool { return !out[k].Unlabelled }) {
			out[i].Hash = LabelValue(r.Name + "-" + string(r.UID))
		}
	}
	return out
}

// right ranks the claim of a revision to its label: see [Identified].
func (r Revision) right(named func(hash string) string) int {
	switch {
	case r.Name == named(r.Hash):
		return 2
	case LabelValue(r.Name) == r.Hash:
		return 1
	default:
		return 0
	}
}
