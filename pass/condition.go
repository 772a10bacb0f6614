package pass

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// This file is about conditions. Kinds have types of their own for them, with the same fields; what is here is about
// metav1.Condition.

// Conditions of every kind whose children come from revisions.
const (
	// Updated is True once every child comes from the revision that the spec asks for, and says until then what the rollout
	// does or waits for. Its reasons are those of Metacontroller.
	Updated = "Updated"
	// HistoryHealthy is False while the revision history cannot be kept or read, and says why. It is absent where that never
	// happened.
	HistoryHealthy = "HistoryHealthy"
)

// maxMessage is how long the message of a condition may be, in bytes. A thousand joined errors say nothing more.
const maxMessage = 1000

// SetCondition sets a condition of a list, which it changes. The time of the last transition stays unless the status turns;
// then it is that of c. A message that is too long is cut.
func SetCondition(conditions *[]metav1.Condition, c metav1.Condition) {
	c.Message = Cut(c.Message, maxMessage)
	meta.SetStatusCondition(conditions, c)
}

// FirstLine is the first of several joined errors. The others are most likely the same, and as many as there are children.
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
