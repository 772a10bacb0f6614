// Package pass is the part of a pass that all controllers have in common: what begins it, what ends it, and when it is
// made again. The controllers of this module are built on it, and yours can be.
//
// A [Controller] is the reconciler: it reads the parent, waits until the caches show its own last writes, runs the
// pass, and decides when the next one is made. A [Pass] is what runs: it asks for timers ([Pass.RequeueAfter]), sends
// events ([Pass.Normal], [Pass.Warn]) and writes the status ([Pass.WriteStatus]). When it is set up:
//
//	config, err := pass.Kind{Name: "shelf", …}.In(ctx, mgr, pass.Options{})
//	config.Run = run
//	c := pass.New(config)
//	pods := pass.NewChildren[*corev1.Pod](c, kind, resource, newList)  // for each kind of children
//	log := pass.NewLog(c, format, askServer)                           // if the parents have revisions
//	c.Watch(mgr, workers).Complete(c)
//
// And run, which is one pass over one parent, in this order:
//
//	owned, err := pods.Claim(ctx, p, selector)              // [Children]; an error ends the pass
//	entries, err := log.Claim(ctx, p.Parent, selector)
//	return pass.Row[*plan]{Log: log, Entries: entries, Children: …, Plan: …, Try: …, Act: …, Report: …}.Run(ctx, p)
//
// [Row] holds the order of the steps that follow, for parents whose children come from revisions. Others plan, confirm
// ([Children.Confirm]), act ([SlowStart]; then [Pass.NoteUnknownOutcome]) and report ([Pass.WriteStatus]). The example
// is a whole controller without revisions. Package builder is all of this for who only knows what the children are.
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
// # What its caller must not do
//
//   - Give [Controller.Reconcile] to a controller-runtime controller without [Controller.Options]: every delay is in
//     its limiter.
//   - Go on after an error that is [IsStale]. It is returned as it is, and no failure.
//   - Replace a child while [Recorded.Update] is nil: what the spec asks for could not be recorded.
//   - Change [Pass.Parent] or a claimed child. They come from a cache.
//   - Keep anything of a pass for the next one without [Controller.OnForget].
//
// # What may not come in
//
// What children look like, which of them may be replaced, and anything about one kind.
package pass
