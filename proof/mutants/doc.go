// Package mutants breaks cairn on purpose and sees that the checker notices. A checker that finds nothing in healthy
// code has said nothing yet: it may be blind. Each file of testdata is one deliberate fault, most of them bugs that
// somebody shipped, as a replacement in one of our own files, and names the invariants that it must break.
//
// Production code knows nothing of this: a mutant is compiled with go build -overlay, into a test binary of the
// simulation, and that runs seeds until it reports a violation. The same binary without the fault must report none.
// With CAIRN_CHECK=full all mutants run; without it, all are compiled and one runs.
//
// To add one, write a file:
//
//	What is broken, in a sentence or two.
//
//	expect: H3
//
//	-- before history/write.go --
//	lines that the file has exactly once
//	-- after --
//	what stands there instead
//
// expect are the invariants, any of which will do (docs/invariants.md). There may be several pairs of before and after.
// Lines are compared as they are, tabs included. "world: overlapping" runs the seeds in another kind of world
// (seeds_test.go), "trouble: deny" with something that goes wrong for longer. A section "-- scenario --" is a
// script of package scenario, for a fault that chance finds too seldom; then no seeds are run.
//
// What may not come in: invariants (they are package check's), faults of the surroundings (packages sim and fault).
package mutants
