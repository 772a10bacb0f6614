// Package inspect answers what a user asks of an object with a revision log: what its history is, what differs between
// two revisions, whether it is done and what it waits for, what an undo would change; and it carries that undo out. The
// command line prints what this package returns, and decides nothing itself.
//
// An [Inspector] works with the credentials of the caller, through any controller-runtime client that reads past
// caches. A usual conversation is
//
//	who, err := i.Get(ctx, schema.GroupKind{Group: "apps", Kind: "DaemonSet"}, "default", "web")
//	log, err := i.History(ctx, who)
//	plan, err := i.PlanUndo(ctx, who, 0)      // 0: back to the newest revision that differs
//	done, err := i.Apply(ctx, plan, false)
//	still, err := i.Status(ctx, done.Parent, time.Now())
//
// A kind with a log is one of three sorts (kind.go): those that store it in apps/v1 ControllerRevisions (builtin.go) or
// as ReplicaSets (replicasets.go), and the parents of CompositeControllers (composite.go), which are looked up for each
// question. Of kinds that package history does not know, what an object controls says which sort it is of
// (convention.go), and its revisions say what they hold, or show it; where no pods are made from them, children are not
// counted. [Inspector.Status] answers for objects without a history as well, by what they report (settled.go,
// reported.go). The rest of the package is common.
//
// # What its caller must not do
//
//   - Give it a cached client: it would show a history from before the last edit.
//   - Change a plan, or apply one that nobody has looked at: its warnings and added privileges are for a person.
//   - Repeat an [Inspector.Apply] that returned a [*ChangedError]. The user looks again and decides anew.
//
// # What may not come in
//
// Printing, flags, a clock, a switch over kinds (packages history and history/metacontroller know the formats;
// unknown.go has only words for some that have none), any decision of a controller.
package inspect
