// Package bench measures cairn's controllers against the floor, on the same control plane and the same processors: the
// API requests that nobody can do without (package composite), those of kube-controller-manager (package workload), and
// an author's controller against cairn's own (package authored). Package lab is what both need.
//
// What is in the room: Benchmark functions and the loads that they put on a sandbox. "make bench" runs them and prints
// API requests, CPU time and wall time for each object that was rolled.
//
// What may not come in: anything that another package imports, and a number without the one it is compared with.
package bench
