// Package cairn documents the whole module: it holds no code, only this tour, and imports none of its packages.
//
// cairn gives Kubernetes workloads, and the parents of CompositeControllers, a revision history: a bounded list of
// immutable snapshots of what a controller is to build, owner references, a rollout from one snapshot to the next that
// keeps its promises, and an undo. It is a library for authors of controllers, a controller manager for operators of
// clusters, and a command line for anyone who has to look at a workload.
//
// # Two pure packages
//
// They compute. No client, no clock, no goroutine: everything is a function of its arguments.
//
//   - revision: what a snapshot is, when two snapshots are the same, how one is named and numbered, and which of them
//     may be forgotten.
//   - rollout: what may be replaced now, given an order, a partition and budgets. Every step carries its reason.
//
// # Two packages that talk to the API server
//
// They work with any controller-runtime client, so a controller of yours can use them without anything else of cairn.
//
//   - ownership: the ControllerRef and its three laws: claim, adopt, release; which parents an event enqueues; a pass
//     that waits until the cache shows its own last writes.
//   - history: the revision log of one parent in the API server: claim, record, renumber, truncate.
//
// # One pass
//
//   - pass: the part of a pass that all controllers share: what enqueues a parent, what is waited for, when it is
//     requeued, claims, status, conditions, events. All controllers below are built on it; yours can be.
//
// # The controllers and those who run them
//
//   - controllers: one folder each, none imports another; composite and decorator are in controllers/metacontroller.
//     Inside: controller.go wires, gather.go reads, plan.go decides and is pure, act.go writes, status.go reports.
//   - api: the types of Metacontroller's kinds.
//   - deploy: the manifests of an installation.
//
// # For users
//
//   - inspect: what a user asks of any object: its history, a diff, an undo plan, its status.
//   - cmd/cairn: the program.
//
// # Internal packages
//
//   - internal: the command line, the manager that puts controllers into one controller-runtime manager, the work
//     queue, and what the controllers of controllers/metacontroller share.
//
// # Another module
//
// The folder sandbox is a Go module of its own. It runs etcd, the kube-apiserver, the scheduler, simulated nodes and
// the controllers above in one process, for tests and for trying things out. What it needs never reaches a program that
// imports this module.
//
// The direction of all these imports is a test: package internal/layout.
package cairn
