// Package host runs the controllers that users declare: one for each CompositeController or DecoratorController, restarted
// when its spec changes, stopped when it is deleted. It does not know what such a controller does in a pass: that comes as
// a reconcile.Reconciler (see [Build]), and what it watches from package watch.
//
// supervise.go decides which of them run, hosted.go runs one, report.go writes its condition. A kind that cannot be listed, a
// build that panics or a controller that does not end delays none of the others. environment.go is what they all share, made
// once for a manager, with events (recorder.go) and hooks (hooks.go); declared.go checks the resources that they name, and
// series.go removes the metrics of a deleted one.
//
// What may not come in: a decision about children, revisions or a parent's status.
package host
