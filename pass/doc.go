// Package pass is the part of a pass that all controllers have in common: what begins it, what ends it, and when it is
// made again. The controllers of this module are built on it, and yours can be.
//
// A [Controller] is the reconciler: it reads the parent, waits until the caches show its own last writes, runs the pass, and
// decides when the next one is made. A [Pass] is what runs: it asks for timers ([Pass.Again]), sends events
// ([Pass.Normal], [Pass.Warn]) and writes the status ([Pass.WriteStatus]). [Children] claims, confirms, creates, patches and
// deletes the children of one kind; [Log] records the revision and truncates the history. [SlowStart] and [Each] carry out
// many writes at once.
//
// What every controller gets from it:
//
//   - Its own status writes enqueue nothing, so that a failure whose text differs each time cannot defeat the back-off.
//   - A timer is kept beside an error: what waits for time to pass does not wait for the back-off of what fails.
//   - Waiting for a cache does not reset the back-off of what failed before.
//   - A burst of child events is one pass and not a hundred; an edit of the parent is never delayed.
//   - Events are counted: at most about 25 for a parent in five minutes, and one that says how many more there were.
//     Warnings are never the ones that are left out.
//   - A status is written when it differs, with an optimistic lock, and once a second while a rollout runs.
//   - What is remembered of a parent is dropped with it, also while a pass is under way.
//
// What may not come in: what children look like, which of them may be replaced, and anything about one kind.
package pass
