// Package revision is the pure core of a revision history: what a snapshot is, when two snapshots are the same, how a
// stored snapshot is named, in which order snapshots came, what one pass has to write to the log, and which snapshots
// may be forgotten.
//
// It implements the Controller History proposal (sections "API Objects", "Revision History", "Version Tracking" and
// "History Maintenance") and the equivalence rules E0 to E6 of cairn's design.
//
// A [Target] describes the part of a parent that decides what its children look like; make it once for a kind, with
// [FieldPaths] or [StrategicMerge], and with [Typed] where the kind has a Go type. Then, for each parent,
//
//	now, err := target.Snapshot(parent)       // the part as it is
//	then, err := target.Decode(stored)        // the part as it was stored, for each Revision
//	what, err := revision.Resolve(parent, revisions, answers, ask)
//	old := revision.Prune(revisions, update, live, limit)  // update: what.Update, or the one recorded since
//	whole, err := then.Restore(parent)        // or RestorePatch, for an undo
//
// [Snapshot] is the part at one moment, and [Revision] one stored snapshot. [Resolve] compares the parent with its log
// and returns what the log needs: nothing, a higher number, a new revision, or an answer of the API server first.
// [Prune] says which revisions may be deleted. There is an example for each; package history carries all of it out.
//
// # What its caller must not do
//
//   - Compare snapshots by [Hash] or [Name], which only make names that are easy to tell apart; [Compare] says whether
//     they are equal.
//   - Order revisions by time. [Sorted] orders them by number.
//   - Prune with a [InUse] set that was not read whole. Its zero value says that it is not known, and nothing is pruned
//     then.
//   - Change data that was stored, or give away a number that another revision has.
//
// # What may not come in
//
// A client, a clock, a goroutine, a logger, any other package of this module. Everything here is a function of its
// arguments, so everything here is tested by tables and properties, without fakes.
package revision
