// Package ownership says which object belongs to which parent, and keeps it so. It implements the ControllerRef
// proposal: the three laws (take ownership, don't interfere, don't share), adoption and release, and which parents an
// event about a child enqueues.
//
// [Decide] is the law as a pure function. [Claim] carries it out through any controller-runtime client. [Router] turns
// the events of a child type into requests for its parents. [Ledger] makes a controller read its own writes, which
// replaces counting expected events; [Confirmer] keeps a process that just started from acting on an old list.
// [Writer] creates and deletes children so that a lost response makes no second one. [IndexController] is an index by
// owner, so that no pass lists a namespace; [Wire] registers it and builds the ledger, [Parents] finds parents in a cache.
// Package pass makes a whole controller of these.
//
// What may not come in: a decision about content. This package looks at references, labels, UIDs and deletion, never at
// what an object says.
package ownership
