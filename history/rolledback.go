package history

import (
	"encoding/json"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file is about rollouts that failed and were undone by themselves: what the parent says of it.

const (
	// OnDeadlineAnnotation says on a parent what is done when a rollout has exceeded its progress deadline: "undo" goes
	// back to the last revision to which one was complete, "undo-anyway" also where somebody else will take that back.
	OnDeadlineAnnotation = "cairn.dev/on-deadline"
	// RolledBackAnnotation is on a parent that was brought back so: a [RolledBack] as JSON. It is written by the request
	// that changes the spec.
	RolledBackAnnotation = "cairn.dev/rolled-back"
)

// RolledBack says that the rollout to one revision failed, and that the parent was brought back to another.
type RolledBack struct {
	// From and To are the names of the two revisions, FromRevision and ToRevision the numbers that they had.
	From         string `json:"from"`
	FromRevision int64  `json:"fromRevision"`
	To           string `json:"to"`
	ToRevision   int64  `json:"toRevision"`
	// Generation is that of the spec which was restored.
	Generation int64 `json:"generation"`
	// At is when, in whole seconds, and Reason why, in one clause.
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
}

// RolledBackOf returns what a parent says, nil if it says nothing that can be read.
func RolledBackOf(parent client.Object) *RolledBack {
	text, ok := parent.GetAnnotations()[RolledBackAnnotation]
	if !ok {
		return nil
	}
	r := &RolledBack{}
	if json.Unmarshal([]byte(text), r) != nil || r.From == "" {
		return nil
	}
	return r
}

// Stands reports whether parent was not edited since, so that what it asks for is what it was brought back to. update
// is the name of the revision that it asks for; a scale is no edit.
func (r *RolledBack) Stands(parent client.Object, update string) bool {
	return r != nil && (r.To == update || r.Generation == parent.GetGeneration())
}

// String says so in one clause.
func (r *RolledBack) String() string {
	return fmt.Sprintf("revision %d (%s) failed: %s; back to revision %d (%s)", r.FromRevision, r.From, r.Reason, r.ToRevision, r.To)
}
