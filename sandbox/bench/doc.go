// Package bench measures cairn's controllers against the floor, on the same control plane and the same processors: the API requests
// that nobody can do without. Today that is package composite; the workload controllers are not measured here yet.
//
// What is in the room: Benchmark functions and the loads that they put on a sandbox. "make bench" runs them and prints
// API requests, CPU time and wall time for each object that was rolled.
//
// What may not come in: anything that another package imports, and a number without the one it is compared with.
package bench
