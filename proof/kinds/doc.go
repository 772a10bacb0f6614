// Package kinds is the one table of the kinds that tests know: what each is called, what belongs to its parents, how
// one is made, and where the fields are that people change. The checker, the simulation, the API server's model, the
// scenarios and the faults read it, and add only what is theirs: a rule, chance, a validation, a verb, a sweep.
//
// kind.go says what an entry is, table.go has the entries. [Object] is any kind with a word of its own, [Kind] one
// whose parents a controller serves.
//
// # Adding a kind
//
// An entry in table.go, if Kubernetes has the kind; it is a word in scripts from then on. Then, each in a file of its
// own: what its parents promise (package check/parents, and a name in its BuiltIn), what users do to it at random
// (package sim, and a world), what the API server does to it (a line in sim/model/builtin.go), and its sweep (a subject
// in package fault).
//
// What may not come in: a rule, chance, a client, and what only one of them reads.
package kinds
