// Package composite runs parents of any kind whose children a webhook describes: the CompositeController of Metacontroller,
// with a history that can go back and a rollout that keeps a budget.
//
// [Setup] runs one controller for each CompositeController (setup.go, settings.go; package host starts and stops them). One
// pass over one parent (controller.go) goes like this:
//
//   - gather.go reads children and revisions and claims what is the parent's; finalizer.go looks after its finalizer;
//     sharing.go looks for other controllers of the parent, overlap.go tells both of a pair that cannot share any
//   - decide.go asks the hook what there should be, compare.go the API server what it makes of that
//     (package children)
//   - plan.go decides what happens to which child, units.go what the rollout is told of them, checks.go whether a child
//     serves, log.go what the log is to hold: pure functions of what the hook said and what is there
//   - confirm.go makes sure that the caches are not behind, record.go stores the log, act.go writes children, in that order
//   - report.go writes the parent's status (status.go says what it is, vote.go where several controllers have the parent)
//     and events
//
// What may not come in: other controllers, a write outside finalizer.go, record.go, act.go, report.go and overlap.go (act.go
// writes by way of package children), and guesses about the shape of anybody's parent or child.
package composite
