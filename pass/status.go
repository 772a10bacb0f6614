package pass

import (
	"slices"

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

// Urgent reports whether a status is to be written at once. It is not urgent only while a rollout is under way, before
// and after, of the same generation: then one write a second is enough. Its end, or that it fails, is urgent again.
func Urgent(before, after []metav1.Condition, sameGeneration bool) bool {
	rolls := func(conditions []metav1.Condition) bool {
		c := find(conditions, Updated)
		return c != nil && c.Status == metav1.ConditionFalse && slices.Contains([]string{RolloutProgressing, RolloutWaiting}, c.Reason)
	}
	return !sameGeneration || !rolls(before) || !rolls(after)
}
