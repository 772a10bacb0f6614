package pass

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// This file says which changes of a status are urgent.

// Reasons of the condition [Updated] that follow each other many times while a rollout runs.
const (
	// RolloutProgressing: something was done, or starts.
	RolloutProgressing = "RolloutProgressing"
	// RolloutWaiting: something is waited for; the message says what.
	RolloutWaiting = "RolloutWaiting"
)

// Urgent reports whether a status is to be written at once. It is not while only counters and messages change, of the
// same generation: while pods start, and while a rollout is under way. Then one write a second is enough. done says
// that everything is as it should be, as others wait for; that is urgent, and so is any other news in the conditions.
func Urgent(before, after []metav1.Condition, sameGeneration, done bool) bool {
	return !sameGeneration || done || news(before) != news(after)
}

// news is what of conditions is news when it changes: to make progress and to wait follow each other many times.
func news(conditions []metav1.Condition) (out [2]metav1.Condition) {
	for n, kind := range []string{Updated, HistoryHealthy} {
		c := find(conditions, kind)
		if c == nil {
			continue
		}
		out[n].Status, out[n].Reason = c.Status, c.Reason
		if c.Status == metav1.ConditionFalse && c.Reason == RolloutWaiting {
			out[n].Reason = RolloutProgressing
		}
	}
	return out
}
