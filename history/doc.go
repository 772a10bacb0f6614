// Package history keeps the revision log of one parent in the API server: it claims the log's revisions, finds the one
// that is equivalent to the parent, records a new one, renumbers an old one, removes duplicates, and truncates. It
// implements the Controller History proposal on top of the pure package revision, through any controller-runtime client.
//
// A [Format] says how one parent kind stores its log; a [Log] is that log behind a client. A pass over a parent is
//
//	entries, err := log.Claim(ctx, parent, selector)
//	verdict, err := log.Resolve(ctx, parent, entries)
//	recorded, err := log.Record(ctx, parent, verdict, collisionCount, relabel)
//	// … only now may children be written …
//	err = log.Truncate(ctx, parent, entries, recorded.Update, live, limit)
//
// What may not come in: anything about children (the caller relabels them and says which revisions they need), a switch
// over kinds, a decision that package revision could take without a client.
package history
