// Package ownership says which object belongs to which parent, and keeps it so. It implements the ControllerRef
// proposal: the three laws (take ownership, don't interfere, don't share), adoption and release, and which parents an
// event about a child enqueues.
//
// A controller uses it in this order. When it is set up:
//
//	// indexes the children by owner, before the manager starts
//	consistency, err := ownership.NewConsistencyStoreFor(ctx, mgr, children, others)
//	router := ownership.Parents{…}.Router()                    // its Handler turns events of children into requests
//
// In each pass:
//
//	unseen, err := consistency store.Read(ctx, cache, key, parent)        // unless it is empty: requeue, and do nothing
//	err = ownership.Candidates(ctx, cache, list, namespace, owner, selector, true, found)
//	owned, err := ownership.Claim(ctx, claimer, candidates)    // with an error: act on nothing
//	why, err := confirmer.ConfirmIn(…)                         // before the first create or delete of this process
//	how, err := writer.Create(…)                               // and Delete; both enter what they wrote into the consistency store
//
// [Decide] is the law as a pure function, which [Claim] carries out through any controller-runtime client.
// [ConsistencyStore] makes a controller read its own writes, which replaces counting expected events; [Confirmer] keeps
// a process that just started from acting on an old list; [Writer] creates and deletes children so that a lost response
// makes no second one. [ErrStale] and [ErrGone] are the errors by which all packages of this module say that a pass is
// to be dropped. Package pass makes a whole controller of these.
//
// # What its caller must not do
//
//   - Act on what was claimed after an error of [Claim], or while its Lost is true: the list may lack a child.
//   - Give a cache where a field is called Live. What is read there decides about writes that cannot be taken back.
//   - Change an object that came from a cache.
//   - Give a child a name that chance made: [Writer] finds a child again whose response was lost by its name.
//
// # What may not come in
//
// A decision about content. This package looks at references, labels, UIDs and deletion, never at what an object says.
package ownership
