// Package rollout decides what a rollout may do now: which instance may be deleted, where a new one may be created, and
// what has to wait for what. It takes the state of the whole set and returns a value; every step and every wait carries
// its reason, which is also the text of the event, the condition and the status line.
//
// It follows the rolling update of DaemonSet (maxUnavailable and maxSurge) and serves every kind that replaces one
// instance at a time and place: a node, an ordinal, a child key. In each pass
//
//	units := …                                  // one for each place, in the order of the rollout, those included that wait
//	plan := rollout.New(units, strategy)
//	for _, step := range plan.Steps { … }       // delete or create, then come back: the next pass sees the rest
//	done := plan.Complete()                     // and Waiting says what is missing
//
// # What its caller must not do
//
//   - Plan with a part of the set, or with a state that lacks its own last writes: the budget would be spent twice.
//   - Keep a plan for the next pass. It holds for the state that it was made from.
//   - Leave out a place because its instance is lost. It counts as unavailable, and creating it is the caller's.
//   - Give two units one key.
//
// # What may not come in
//
// A client, a clock, an API type, any other package of this module. Availability, which needs the time, is decided by
// the caller.
package rollout
