// Package history keeps the revision log of one parent in the API server: it claims the log's revisions, finds the one
// that is equivalent to the parent, records a new one, renumbers an old one, removes duplicates, and truncates. It
// implements the Controller History proposal on top of the pure package revision, through any controller-runtime
// client.
//
// A [Format] says how one parent kind stores its log ([Apps] is that of apps/v1 ControllerRevisions, and says which
// fields are versioned); a [Log] is that log behind a client. Make one of each for a kind, with [New]. A pass over a
// parent is
//
//	entries, err := log.Claim(ctx, parent, selector)
//	verdict, err := log.Resolve(ctx, parent, entries)
//	recorded, err := log.Record(ctx, parent, verdict, parent.Status.CollisionCount, relabel)
//	// … only now may children be written …
//	err = log.Truncate(ctx, parent, entries, recorded.Update, live, limit)
//
// in this order: what is recorded was resolved from entries that were claimed in the same pass. Any error ends the
// pass. [ErrStale] says that something was read too early: read again. The others say in their function's comment what
// to do. [Log.List] shows a log and writes nothing. The example is such a pass with all that it takes. The files are in
// that order: read.go; resolve.go and fence.go, which decide; record.go and truncate.go, which carry out by write.go.
//
// # What its caller must not do
//
//   - Write a child before [Log.Record] has returned: what a child is made from would be lost with the process.
//   - Run two passes over one parent at once, or in two processes. Elect a leader.
//   - Give [Log.Truncate] a live set that was not read whole: what it does not name is deleted.
//   - Read through a cache without a consistency store: see [Options] and package ownership. A log that does not show
//     our own last write makes no second revision ([Log.Fence] finds it), but costs requests and a pass.
//   - Tell equality by a hash, a name or a number. [Log.Resolve] does, by content.
//
// Package builder does all of this for a reconciler of yours (Attach), package pass for a controller.
//
// # What may not come in
//
// Anything about children (the caller relabels them and says which revisions they need), a switch over kinds, a
// decision that package revision could take without a client.
package history
