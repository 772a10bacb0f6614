// Package composite runs parents of any kind whose children a webhook describes: the CompositeController of Metacontroller,
// with a history that can go back and a rollout that keeps a budget.
//
// [Setup] runs one controller for each CompositeController (setup.go, settings.go; package host starts and stops them). One
// pass over one parent (controller.go) has these steps, each a small type with what it needs. None knows of a later one:
//
//   - settle.go leaves a parent alone whose children were written a moment ago, finalizer.go looks after its finalizer
//   - gather.go reads children and revisions and claims what is the parent's; sharing.go looks for other controllers of the
//     parent, and overlap.go tells both of a pair that cannot share any
//   - decide.go has the hook asked what there should be (ask.go), and the API server what it makes of that (compare.go)
//   - plan.go is what happens to which child; planner.go makes it, of the children that share a budget (sets.go), how their
//     kinds are updated (child.go) and whether they serve (checks.go); log.go says what the log is to hold: pure functions of
//     what the hook said and what is there
//   - confirm.go makes sure that the caches are not stale, record.go stores the log, act.go writes children, in that order
//   - report.go writes the parent's status (status.go says what it is, vote.go where several controllers have the parent)
//     and events
//
// What is remembered of a parent from pass to pass is in memory.go, a part for each step.
//
// What may not come in: other controllers, a write outside finalizer.go, record.go, act.go, report.go and overlap.go (act.go
// writes by way of package children), and guesses about the shape of anybody's parent or child.
package composite

// Name is that of the controller in a manager.
const Name = "composite"
