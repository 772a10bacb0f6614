// Package statefulset is the StatefulSet controller: apps/v1 as its users know it, with cairn's history, ownership and
// rollout underneath. It replaces the built-in controller and hands over to it and back without touching a pod.
//
// controller.go runs one pass and setup.go wires it to a manager; gather.go holds all reads; identity.go says which pod
// is which, claims.go which claims belong to it and who owns them, ready.go what state it is in; plan.go decides about
// scaling, scaledown.go which surplus pod is deleted first, source.go which revision a pod comes from, update.go about
// the rolling update, all purely; template.go builds pods; act.go holds all writes; counts.go, conditions.go and
// status.go report.
//
// What may not come in: a read outside gather.go, a write outside act.go and status.go, a decision that needs a client,
// a decision that rests on a counter of status (kubernetes#119685).
//
// # A pod of a wrong revision that was never ready
//
// Under OrderedReady the built-in controller waits for a pod that is not ready before it does anything else, so that
// neither a fix nor an undo reaches a set that a broken template has stopped (kubernetes#67250). This one replaces such
// a pod immediately, if it was never ready (see [readiness.NeverReady]), fails (see failing) and would not be created
// from that revision again. Such a pod is not in use, so that it costs nothing. One that is only starting is left
// alone, because it may be a database that starts for the first time; one that was ready before may hold data in
// flight, and waits for its turn. The annotation [ReplaceNeverReadyAnnotation] widens that to pods that are starting,
// or restores the old behaviour. Without an order, the pods that are down hold a rollout up once they use up its
// budget, and are replaced whatever they are down for.
//
// # Which revision a lost pod is recreated from
//
// Below the partition: the current revision, always; raising the partition touches no pod, but a pod below it that is
// deleted is recreated from the current revision. Above: the update revision, once the rollout got there or waits for
// this pod; before that the current revision, so that a lost pod does not spread a rollout that is not known to work.
// Source.go has the rules. If the current revision is lost, such pods are not created at all, and a condition says so:
// no other takes its place. If the API server refuses the pods of the current revision, those at or above the partition
// come from the update revision.
//
// # Volumes
//
// A pod conforms if its label names the update revision. Its volumes do not count, because they cannot change: what was
// adopted without its claims, or what admission changed, stays until the next rollout, and a condition reports it.
package statefulset
