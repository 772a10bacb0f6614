// Package recorder gives objects a revision history whose own controller keeps none: each HistoryPolicy names a
// resource, and each edit of what it covers becomes a ControllerRevision of apps/v1 that the object controls. The
// revisions say what they hold, so that "cairn history", diff and undo read them like any others.
//
// settings.go reads a policy, and refuses what cannot be recorded; setup.go makes a controller of each; controller.go
// is one pass over one object; author.go says who made an edit; counts.go writes the policy's status; remove.go carries
// out whenDeleted: Delete.
//
// # What it never does
//
//   - Write an object that it records. An undo is the user's.
//   - Delete a revision that the object is at now.
//   - Ask the API server whether two contents are equal: nothing is restarted by a revision too many, and an edit would
//     cost a request for each revision that there is.
//
// What may not come in: a switch over kinds, a decision about children.
package recorder
