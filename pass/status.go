package pass

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cairn-dev/cairn/rollback"
)

// This file says which changes of a status are urgent.

// Reasons of the condition [Updated] that follow each other many times while a rollout runs.
const (
	// RolloutProgressing: something was done, or starts.
	RolloutProgressing = "RolloutProgressing"
	// RolloutWaiting: something is waited for; the message says what.
	RolloutWaiting = "RolloutWaiting"
	// RolloutHeld: all updates that the strategy permits are done and available. Only an edit, or with the strategy
	// OnDelete a deletion, goes on.
	RolloutHeld = "RolloutHeld"
)

// Conditions returns the conditions of a kind that has a type of its own for them, as set changes them: see
// [ConditionsOf]. urgent is true if they have news, which is written immediately. It is false while only messages
// change, or the rollout alternates between progress and waiting: then one write a second is enough.
func Conditions[C any, T ~string](
	stored []C, fields func(*C) ConditionFields[T], set func(conditions *[]metav1.Condition),
) (after []C, urgent bool) {
	conditions := ConditionsOf(stored, fields)
	before := news(conditions)
	set(&conditions)
	return StoredConditions(conditions, fields), before != news(conditions)
}

// news is what of conditions is news when it changes: to make progress and to wait follow each other many times.
func news(conditions []metav1.Condition) (out [3]metav1.Condition) {
	for n, kind := range []string{Updated, HistoryHealthy} {
		c := find(conditions, kind)
		if c == nil {
			continue
		}
		out[n].Status, out[n].Reason = c.Status, c.Reason
		if c.Status == metav1.ConditionFalse && (c.Reason == RolloutWaiting || c.Reason == RolloutHeld) {
			out[n].Reason = RolloutProgressing
		}
	}
	if c := find(conditions, rollback.LastGood); c != nil {
		good := rollback.GoodIn(*c) // Down is not urgent
		out[2].Message = good.Last.String() + " " + good.Before.String()
	}
	return out
}
