// Package builder makes a controller from what only its author knows: a kind of parent, which of its fields are
// versioned, and a function from a parent to the children that it wants. It is for authors of custom resources.
//
//	builder.Controller[*v1.Fleet]{
//		Parent:   &v1.Fleet{},
//		Versions: []string{"spec.template"},
//		Owns:     []builder.Rule{builder.Rolled(&corev1.Pod{}, nil)},
//		Children: pods,
//	}.Setup(ctx, mgr)
//
// What the author gets for that:
//
//   - revisions in apps/v1 ControllerRevisions, recorded before any child is touched, and a history that is kept short;
//   - children with the label controller-revision-hash, adopted and released by the three laws;
//   - a rollout in the order in which Children names them, within [Strategy.MaxUnavailable] and, for kinds whose
//     children are [Rule.NamedByRevision], [Strategy.MaxSurge];
//   - a child that is lost in mid-rollout made from the revision that the others of its kind still come from;
//   - conditions and events with reasons, and a [Summary] to fill the status from;
//   - what every pass of a controller needs and nobody wants to write: see package pass.
//
// # A history alone
//
// A reconciler that is there already gets the revisions and nothing else:
//
//	h, err := builder.Attach(ctx, mgr, &v1.Fleet{}, "spec")  // and Owns(&appsv1.ControllerRevision{}) on its controller
//
//	recorded, err := h.Record(ctx, fleet)                     // early in each reconcile; return its error as it is
//	// … make of the fleet what you like; recorded.Label is for labels, recorded.At is the fleet as it was …
//	return ctrl.Result{}, recorded.Truncate(ctx, 10, live...)
//
// # What its author must not do
//
//   - Let Children depend on anything but the parent that it is given: it is called for older revisions as well.
//   - Use a kind twice: one controller, or one history, owns the revisions of a kind of parents.
//   - Write children before [History.Record] has returned, or give [Recorded.Truncate] a part of the revisions that are
//     in use.
//   - Run without leader election where there are two processes.
//
// examples/fleet and examples/journal are whole programs, and docs/library.md is the guide to both.
//
// # Where things are
//
// controller.go, rule.go and strategy.go are what an author writes, validate.go and schema.go say what is refused
// before the controller starts. setup.go wires, pass.go is one pass: gather.go reads, source.go says what children are
// made from (answers.go remembers what the author has said), place.go where they are and what they are called, plan.go
// decides and is pure, with slot.go for what is at one place, act.go and apply.go write, report.go says what happened,
// and status.go writes it. parent.go is what a kind of parents is, snapshot.go takes snapshots of typed ones, and
// attach.go and recorded.go are the history alone.
//
// # What may not come in
//
// Anything about one kind but pods, whose readiness everybody knows; a registry; an init function; generated code.
package builder
