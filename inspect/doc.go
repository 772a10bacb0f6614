// Package inspect answers what a user asks of an object with a revision log: what its history is, what differs between two
// revisions, what its rollout waits for, what an undo would change; and it carries that undo out. The command line prints
// what this package returns, and decides nothing itself.
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
// A kind with a log is one of two sorts (kind.go): those that store it in apps/v1 ControllerRevisions (builtin.go), and the
// parents of CompositeControllers (composite.go), which are looked up for each question. The rest of the package is common.
//
// What may not come in: printing, flags, a clock, a switch over kinds (packages history and history/metacontroller know the formats;
// unknown.go has only words for some that have none), any decision of a controller.
package inspect
