// Package hosting runs the controllers that objects describe, one for each object of a [Kind]: restarted when the
// object's spec changes, stopped when it is deleted. What such a controller does comes from the caller (see [Build]),
// and so do the words and the source of its events.
//
// supervise.go decides which of them run, and hosted.go runs one. denied.go finds passes that lack a permission,
// report.go writes the condition, and series.go removes the metrics of a deleted controller. A kind that cannot be
// listed, a build that panics or a controller that does not end delays none of the others.
//
// What may not come in: hooks, children, revisions, a parent's status.
package hosting
