// Package metacontroller is the [history.Format] of composite parents: what a ControllerRevision of
// metacontroller.k8s.io holds, how it is named and labelled, which children it claims, and how a parent is restored
// from it.
//
// Names, labels and bytes are Metacontroller's, so that its revisions can be taken over and given back. Where it makes
// a revision that its parent cannot claim, or a name that is taken, this package differs; each such place says so.
//
// What is compared, ordered and pruned is decided in package revision; [Format.Read] gives it a stored object.
//
// What may not come in: a client, a clock, a hook, and what happens to children.
package metacontroller
