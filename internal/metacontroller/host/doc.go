// Package host runs the controllers that people describe: one for each CompositeController or DecoratorController there is,
// started anew when its spec changes, stopped when it goes. What such a controller does in a pass is not its business: a
// pass comes as a reconcile.Reconciler (see [Build]).
//
// supervise.go decides which of them run, hosted.go runs one, report.go says in its condition how it goes. A kind that
// cannot be listed, a build that panics or a controller that does not end holds up none of the others.
//
// It also holds what passes of both kinds need of their surroundings: resources by the name that the API server serves
// them under (resource.go), informers of any kind that can be let go of (informers.go, source.go), hooks with the Secrets
// that they refer to (hooks.go, secrets.go), related objects (related.go), and being woken although nothing happened
// (resync.go); pass.go has the interfaces.
//
// What may not come in: a decision about children, revisions or a parent's status.
package host
