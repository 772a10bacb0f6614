// Package replicaset is the controller of ReplicaSets (apps/v1) and of ReplicationControllers (v1): so many pods of one
// template, no matter which. Upstream's Deployment controller works on top of it. It replaces the built-in controllers
// and hands over to them and back without touching a pod. There are no revisions: a change of the template concerns only
// pods that are made later.
//
// controller.go runs one pass and setup.go wires it to a manager; kinds.go is all that differs between the two kinds;
// gather.go holds all reads; names.go says how new pods are called, rank.go which pods go first, ready.go what state a pod
// is in and plan.go what is to be done, all four purely; template.go builds pods; act.go holds all writes to pods;
// status.go reports.
//
// What may not come in: a read outside gather.go, a write outside act.go and status.go, a decision that needs a client, an
// annotation on anything, a word about Deployments.
//
// # Two managers at once
//
// The names of new pods follow from the parent's UID: they are the first names of one fixed sequence that no pod has. So
// two managers that see the same pods make the same pods, and for the second of them they exist already. A manager that
// has not yet seen pods of another one asks for their names too, and finds them made. With that, what is there beyond
// spec.replicas is bounded: it is at most the number of pods whose names became free, because they vanished, since the
// oldest view that somebody acted on and whose effects somebody else who acts has not seen, and of orphans that were
// adopted since. Without such a pod it is zero. A single manager sees its own writes before it acts again, so that its
// bound is always zero. Once the views are even, pods that are too many go, by a ranking that does not depend on who
// ranks. TestTwoManagers holds all this against views of any age.
//
// Managers whose caches show different generations of the parent do not work against each other: one that finds undone
// what it did before asks for the parent past its cache, and waits if there is a later generation. TestStaleParent shows it.
//
// A name can come back once its pod is gone, as those of StatefulSets do.
package replicaset
