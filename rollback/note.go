package rollback

import (
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// This file is what a parent says of the last automatic rollback.

// NoteAnnotation is on a parent that was rolled back automatically: a [Note] as JSON. It is written by the request that
// changes the spec. A user may write it as well, so it only keeps from acting, and tells people.
const NoteAnnotation = "cairn.dev/rolled-back"

// Note says that the rollout to one revision failed, and that the parent was brought back to another.
type Note struct {
	// From and To are the names of the two revisions, FromRevision and ToRevision the numbers that they had.
	From         string `json:"from"`
	FromRevision int64  `json:"fromRevision"`
	To           string `json:"to"`
	ToRevision   int64  `json:"toRevision"`
	// At is when, in whole seconds, and Reason why, in one clause.
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
}

// NoteOf returns what a parent says, nil if it says nothing that can be read.
func NoteOf(parent metav1.Object) *Note {
	text, ok := parent.GetAnnotations()[NoteAnnotation]
	if !ok {
		return nil
	}
	r := &Note{}
	if json.Unmarshal([]byte(text), r) != nil || r.From == "" {
		return nil
	}
	return r
}

// String says so in one clause.
func (r *Note) String() string {
	return fmt.Sprintf("revision %d (%s) failed: %s; back to revision %d (%s)", r.FromRevision, r.From, r.Reason, r.ToRevision, r.To)
}
