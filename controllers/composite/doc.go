// Package composite runs parents of any kind whose children a webhook describes: the CompositeController of Metacontroller,
// with a history that can go back and a rollout that keeps a budget.
//
// One pass asks the hook what the children are for the parent as it is, and once more for each older revision that some
// child still belongs to. plan.go decides what happens to which child, units.go what the rollout is told of them,
// checks.go whether a child serves. They are pure: what the hook said and what is there go in, steps with reasons come out.
//
// What may not come in: other controllers, and guesses about the shape of anybody's parent or child.
package composite
