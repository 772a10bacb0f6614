// Package inspect answers what a user asks of the history of an object: what it is, what differs between two revisions,
// what an undo would change; and it carries that undo out. Its sisters answer the rest: package status whether the
// object is done and what it waits for, package tree what it controls, package verify what is wrong with its revisions.
// The command line prints what they return, and decides nothing itself.
//
// An [Inspector] works with the credentials of the caller, through any controller-runtime client that reads past
// caches. A usual conversation is
//
//	who, err := i.Get(ctx, schema.GroupKind{Group: "apps", Kind: "DaemonSet"}, "default", "web")
//	log, err := i.History(ctx, who)
//	plan, err := i.PlanUndo(ctx, who, 0)      // 0: back to the newest revision that differs
//	done, err := i.Apply(ctx, plan, false)
//	still, err := status.Of(ctx, i, done.Parent, time.Now())
//
// history.go reads the [Log] of an object, entries.go makes a [History] of it, and compare.go compares two states.
// undo.go plans an undo, with what a user should know before (cautions.go, rivals.go, missing.go), and apply.go carries
// it out. annotate.go writes a change cause. Package object knows what an object is, package content what a revision
// looks like.
//
// # What its caller must not do
//
//   - Give it a cached client: it would show a history from before the last edit.
//   - Change a plan, or apply one that nobody has looked at: its warnings and added privileges are for a person.
//   - Repeat an [Inspector.Apply] that returned a [*ChangedError]. The user looks again and decides anew.
//
// # What may not come in
//
// Printing, flags, a clock, a switch over kinds, any decision of a controller.
package inspect
