// Package lab is what the benchmarks share: parents with pods in a namespace of the sandbox (cluster.go), a kubelet
// that costs little (kubelet.go), a process that is measured (process.go), and the counts of what it asks of others
// (ledger.go, cost.go).
//
// The process that is measured is not asked about itself: the API server counts its requests, and the kernel its
// processor time and its bytes.
//
// What may not come in: what is measured, a figure to compare with, a table.
package lab

// M is an object in JSON.
type M = map[string]any
