package pass

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// This file is about conditions. Some kinds have types of their own for them, with the same fields; this file works on
// metav1.Condition, and [ConditionsOf] and [StoredConditions] convert.

// Conditions of every kind whose children come from revisions.
const (
	// Updated is True once every child comes from the revision that the spec asks for, and says until then what the
	// rollout does or waits for. Its reasons are those of Metacontroller.
	Updated = "Updated"
	// HistoryHealthy is False while the revision history cannot be kept or read, and says why. It is absent if it was
	// never False.
	HistoryHealthy = "HistoryHealthy"
)

// maxMessage is how long the message of a condition may be, in bytes. A thousand joined errors say nothing more.
const maxMessage = 1000

// ConditionFields point at the fields of a condition of a kind that has types of its own for its conditions and theirs.
type ConditionFields[T ~string] struct {
	Type               *T
	Status             *corev1.ConditionStatus
	LastTransitionTime *metav1.Time
	Reason, Message    *string
}

// ConditionsOf returns the conditions of such a kind, in a list that may be changed. fields says where the fields of
// one are.
func ConditionsOf[C any, T ~string](stored []C, fields func(*C) ConditionFields[T]) []metav1.Condition {
	out := make([]metav1.Condition, 0, len(stored)+1)
	for i := range stored {
		f := fields(&stored[i])
		out = append(out, metav1.Condition{
			Type: string(*f.Type), Status: metav1.ConditionStatus(*f.Status),
			LastTransitionTime: *f.LastTransitionTime, Reason: *f.Reason, Message: *f.Message,
		})
	}
	return out
}

// StoredConditions returns conditions as such a kind stores them: see [ConditionsOf].
func StoredConditions[C any, T ~string](conditions []metav1.Condition, fields func(*C) ConditionFields[T]) []C {
	out := make([]C, len(conditions))
	for i, c := range conditions {
		f := fields(&out[i])
		*f.Type, *f.Status = T(c.Type), corev1.ConditionStatus(c.Status)
		*f.LastTransitionTime, *f.Reason, *f.Message = c.LastTransitionTime, c.Reason, c.Message
	}
	return out
}

// SetCondition sets a condition in a list, which it changes. The last transition time stays unless the status changes;
// then it is that of c. A message that is too long is cut.
func SetCondition(conditions *[]metav1.Condition, c metav1.Condition) {
	c.Message = Cut(c.Message, maxMessage)
	meta.SetStatusCondition(conditions, c)
}

// FirstLine is the first of several joined errors. The others are most likely the same, and as many as there are
// children.
func FirstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// Cut cuts a text to so many bytes, between two characters.
func Cut(text string, limit int) string {
	const ellipsis = "…"
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:max(0, limit-len(ellipsis))], "") + ellipsis
}
