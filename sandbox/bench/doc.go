// Package bench measures cairn's controllers side by side with the upstream ones, on the same control plane and the
// same processors, and against the floor: the API requests that nobody can do without.
//
// What is in the room: Benchmark functions and the loads that they put on a sandbox. "make bench" runs them and prints
// API requests, CPU time, wall time and memory for each object that was rolled.
//
// What may not come in: anything that another package imports, and a number without the one it is compared with.
package bench
