// Package check finds out whether controllers kept their promises, from what happened to a cluster's objects.
//
// One clean client records every change of the objects involved (Recorder). Within one etcd, resource versions are a
// total order, so the changes make one linear History. Check replays it and evaluates every rule at every resource
// version; Rest evaluates what holds only when nobody has anything left to do; Quiet says what was written between two
// points. What they find is a Violation, which a person can read: the invariant of the design, the object, a sentence,
// and the few events that led there.
//
//	r, err := check.Record(ctx, client, namespaces, check.DaemonSetResources())
//	...                                  // run controllers, edit, break things
//	at, err := r.Sync(ctx)               // everything up to here is in the history
//	h, err := r.History()
//	violations := check.Check(h, check.DaemonSet())
//	violations = append(violations, check.Rest(h, at, check.DaemonSet())...)
//
// Who wrote what comes from the API server's audit log (ParseAudit) or from the client of the controller itself (Wire),
// and is joined to the history by Attach. Rules about deletes need it. Without it, they assume that every write was the
// controllers'.
//
// A Kind tells the rules what they must know about one kind of parent; the rules know none. A rule shares no code with
// the controllers that it judges: where an oracle is needed, it is upstream's.
//
// What may not come in: a clock, a wait, or a fault, other than in the recorder.
package check
