package revision

// This file says which revisions may be forgotten (proposal, "History Maintenance"; design, H3 and H9).

// InUse is the set of revisions that something still depends on. The zero value means "not known", and nothing is
// pruned by it: deleting a live revision breaks a rollout for good, keeping an unused one costs some kilobytes. Make a
// known one with [NewInUse], after all children, terminating ones included, have been seen.
type InUse struct {
	known bool
	refs  map[string]struct{}
}

// NewInUse returns the set of revisions that refs name, each by its hash label value or by its object name: the labels
// found on children, and the names found in the parent's status. Empty strings are ignored.
func NewInUse(refs ...string) InUse {
	l := InUse{known: true, refs: map[string]struct{}{}} // few, however many children
	for _, ref := range refs {
		if ref != "" {
			l.refs[ref] = struct{}{}
		}
	}
	return l
}

// Known reports whether the set was ever determined.
func (l InUse) Known() bool { return l.known }

// Has reports whether something may depend on r: it is named by its hash, by its name, or by the label that its name
// makes. [InUse.Names] is for a caller who knows which.
func (l InUse) Has(r Revision) bool {
	for _, ref := range refsTo(r) {
		if l.Names(ref) {
			return true
		}
	}
	return false
}

// Names reports whether ref is one of those that l was made from.
func (l InUse) Names(ref string) bool {
	_, ok := l.refs[ref]
	return ok
}

// refsTo are the names by which something may refer to a revision. None of a [InUse] is empty.
func refsTo(r Revision) [3]string { return [...]string{r.Name, r.Hash, LabelValue(r.Name)} }

// Beside returns whether something depends on a revision that is not among these: it was deleted, or they are stale.
func (l InUse) Beside(revisions []Revision) bool {
	known := map[string]struct{}{}
	for _, r := range revisions {
		for _, ref := range refsTo(r) {
			known[ref] = struct{}{}
		}
	}
	for ref := range l.refs {
		if _, ok := known[ref]; !ok {
			return true
		}
	}
	return false
}

// Prune returns the revisions to delete, oldest first, so that at most limit revisions stay that nothing depends on.
// The update revision, by UID in keep, is neither counted nor deleted; nor is one that is live, being deleted, or not
// decodable (rule E6). A negative limit counts as 0. If live is not known, it returns nothing.
func Prune(revisions []Revision, keep Revision, live InUse, limit int) []Revision {
	if !live.Known() {
		return nil
	}
	var dead []Revision
	for _, r := range Sorted(revisions) {
		if r.UID != keep.UID && !r.Deleting && r.Err == nil && !live.Has(r) {
			dead = append(dead, r)
		}
	}
	return dead[:max(0, len(dead)-max(0, limit))]
}
