// Package composite runs parents of any kind whose children a webhook describes: the CompositeController of
// Metacontroller, with a history that can go back and a rollout that keeps a budget.
//
// [Setup] runs one controller for each CompositeController (setup.go, settings.go; package hosting starts and stops
// them). One pass over one parent (controller.go) has these steps, each a small type. None knows of a later one:
//
//   - settle.go leaves a parent alone until children that were just written have settled, finalizer.go writes its
//     finalizer
//   - gather.go reads children and revisions and claims the parent's; sharing.go looks for other controllers of the
//     parent, and overlap.go reports a pair that cannot share any
//   - decide.go has the hook called for the desired children (ask.go), and the API server for what it makes of them
//     (compare.go)
//   - plan.go is what happens to which child; planner.go makes it, of the children that share a budget (sets.go), how
//     their kinds are updated (child.go) and whether they are available (checks.go); log.go says what the log is to
//     hold: pure functions of the hook's answer and what exists
//   - confirm.go makes sure that the caches are not stale, record.go stores the log, act.go writes children, in that
//     order
//   - report.go writes the parent's status (status.go says what it is, vote.go if several controllers have the parent)
//     and events
//
// What is remembered of a parent from pass to pass is in memory.go, a part for each step.
//
// What may not come in: other controllers, a write outside finalizer.go, record.go, act.go, report.go and overlap.go
// (act.go writes by way of package children), and guesses about the shape of any parent or child.
package composite

// Name is that of the controller in a manager.
const Name = "composite"
