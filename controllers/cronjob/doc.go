// Package cronjob is the CronJob controller: batch/v1 as its users know it, on the frame of package pass, with a
// history of each CronJob's jobTemplate. It replaces the built-in controller and hands over to it and back without
// starting a Job twice.
//
// controller.go runs one pass and setup.go wires it to a manager; gather.go holds all reads; schedule.go says when a
// Job is due, job.go what a Job is and how one is made, plan.go what a pass does and active.go which Jobs run, all
// purely; act.go holds all writes; report.go reports.
//
// What may not come in: a read outside gather.go, a write outside act.go and report.go, a decision that needs a client,
// a clock other than the pass's.
//
// # Which Jobs belong to a CronJob
//
// Those with its ControllerRef, and of those that have none, the ones whose annotation kubernetes.io/created-by names
// its UID, as clusters before Kubernetes 1.6 wrote it (ControllerRef proposal, "CronJob"). A CronJob has no selector:
// nothing is adopted or released.
//
// # No Job twice
//
// The name of a Job follows from the CronJob's name and the minute that it is due at, as the built-in controller names
// it, so that two managers ask for the same object. status.lastScheduleTime says which times were served; the parent is
// read past the cache before a Job is started, a finished Job is deleted only after the status accounts for it, and a
// process remembers what it has started. What is left is a Job that somebody else deletes between its creation and the
// write of the status, if the process ends before that write succeeds: it is started again.
//
// # Time
//
// A pass looks at its own clock and asks for the next one at the time that is due next, but a minute later at most: a
// clock that is set forward, or a machine that was suspended, is noticed then. A time that was missed is served once,
// and only the latest one (kubernetes.io, "CronJob limitations").
package cronjob
