// Package host runs the controllers that people describe: one for each CompositeController or DecoratorController there is,
// started anew when its spec changes, stopped when it goes. What such a controller does in a pass is not its business: a
// pass comes as a reconcile.Reconciler (see [Build]), and what it watches from package watch.
//
// supervise.go decides which of them run, hosted.go runs one, report.go says in its condition how it goes. A kind that
// cannot be listed, a build that panics or a controller that does not end holds up none of the others. environment.go is what
// they all share, made once for a manager, with events (recorder.go) and hooks (hooks.go); declared.go checks the resources
// that they name, and series.go removes the metrics of one that is gone.
//
// What may not come in: a decision about children, revisions or a parent's status.
package host
