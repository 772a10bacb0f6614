// Package replicaset is the controller of ReplicaSets (apps/v1) and of ReplicationControllers (v1): so many pods of one
// template, no matter which. Upstream's Deployment controller works on top of it. It replaces the built-in controllers
// and hands over to them and back without touching a pod. There are no revisions: a change of the template concerns
// only pods that are made later.
//
// controller.go runs one pass and setup.go wires it to a manager; kinds.go is all that differs between the two kinds;
// gather.go holds all reads; names.go names new pods, rank.go says which pods are deleted first, ready.go what state a
// pod is in and plan.go what is to be done, all four purely; template.go builds pods; act.go holds all writes to pods;
// status.go reports.
//
// What may not come in: a read outside gather.go, a write outside act.go and status.go, a decision that needs a client,
// an annotation on anything, a word about Deployments.
//
// # Two managers at once
//
// The names of new pods follow from the parent's UID: they are the first free names of one fixed sequence. So two
// managers that see the same pods create the same pods, and for the second of them they exist already. A manager that
// has not yet seen pods of another one tries their names too, and finds them taken. So the surplus over spec.replicas
// is bounded: it is at most the number of pods that were deleted, so that their names became free, or adopted, since
// the oldest cache state that one manager acted on and whose effects another acting manager has not seen. Without such
// a pod it is zero. A single manager sees its own writes before it acts again, so its bound is always zero. Once the
// caches agree, surplus pods are deleted, by a ranking that does not depend on which manager ranks. TestTwoManagers
// checks all this for caches of any age.
//
// Managers whose caches show different generations of the parent do not work against each other: one that finds its own
// work undone reads the parent past its cache, and waits if there is a later generation. TestStaleParent shows it.
//
// A name can be used again once its pod is deleted, as those of StatefulSets are.
package replicaset
