// Package rollback decides when a rollout has failed, and which revision its parent is rolled back to. It is pure: its
// input is the observation of a controller and the parent's status. Package pass observes and stores; package inspect
// carries out the rollback.
//
// good.go: the revisions known to have worked. progress.go: the progress of a rollout, and its failure. failure.go: the
// input of a rollback, and the reasons for refusing it. note.go: the record of the last rollback on the parent.
// condition.go: the format of all that in the status, which the built-in roles edit and admin may not write.
package rollback
