// Package rollback decides when a rollout has failed, and to which revision its parent goes back. It is pure: it turns
// what a controller has observed, and what the status of the parent says, into values. Package pass observes and
// stores; package inspect carries a rollback out.
//
// good.go: which revision is known to have worked. progress.go: how far a rollout is, and when it has failed.
// failure.go: what a rollback is given, and why it is refused. note.go: what the parent says of the last one.
// condition.go: how all of that is stored in the status, which the built-in roles edit and admin may not write.
package rollback
