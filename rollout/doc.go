// Package rollout decides what a rollout may do now: which instance may be deleted, where a new one may be created, and
// what has to wait for what. It takes the state of the whole set and returns a value; every step and every wait carries
// its reason, which is also the text of the event, the condition and the status line.
//
// It follows the rolling update of DaemonSet (maxUnavailable and maxSurge) and serves every kind that replaces one
// instance at a time and place: a node, an ordinal, a child key.
//
// What may not come in: a client, a clock, an API type, any other package of this module. Availability, which needs the
// time, is decided by the caller.
package rollout
