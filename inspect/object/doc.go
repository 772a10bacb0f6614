// Package object says what an object is to package inspect and its sisters: what it is called, whether a history of it
// is kept and in which form, which revisions there are, and which children it has.
//
// A kind with a history is one of three sorts (kind.go): those that store it in apps/v1 ControllerRevisions
// (builtin.go) or as ReplicaSets (replicasets.go), and the parents of CompositeControllers (composite.go, members.go).
// Of kinds that package history does not know, what an object controls says which sort it is of (convention.go).
// unknown.go is the error for one without a history.
//
// What may not come in: a write, what a user is shown of a history, a switch over kinds (unknown.go has only words for
// some).
package object
