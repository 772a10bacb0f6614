package rollback

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// This file is the record of the last automatic rollback, which is stored on the parent.

// NoteAnnotation holds a [Note] as JSON on a parent that was rolled back automatically. The request that changes the
// spec writes it. Users may write it too, so it can only prevent an action, and inform people.
const NoteAnnotation = "cairn.dev/rolled-back"

// Note records that the rollout to one revision failed and that the parent was rolled back to another.
type Note struct {
	// Parent is the UID of the parent, because the annotation may be copied to another object. Empty if an earlier release
	// has written the note.
	Parent types.UID `json:"parent,omitempty"`
	// From and To are the names of the two revisions, FromRevision and ToRevision the numbers that they had.
	From         string `json:"from"`
	FromRevision int64  `json:"fromRevision"`
	To           string `json:"to"`
	ToRevision   int64  `json:"toRevision"`
	// At is the time of the rollback, in whole seconds. Reason is a clause about the failure.
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
}

// NoteOf parses the annotation of a parent. It returns nil if there is none, or an invalid one, or if it
// was copied from another object.
func NoteOf(parent metav1.Object) *Note {
	text, ok := parent.GetAnnotations()[NoteAnnotation]
	if !ok {
		return nil
	}
	r := &Note{}
	if json.Unmarshal([]byte(text), r) != nil || r.From == "" || r.Parent != "" && r.Parent != parent.GetUID() {
		return nil
	}
	return r
}

// String returns the note as a clause, in one line.
func (r *Note) String() string {
	reason := strings.Join(strings.Fields(r.Reason), " ") // a user may have written it
	return fmt.Sprintf("%s failed: %s; back to %s", nameOf(r.FromRevision, r.From), reason, nameOf(r.ToRevision, r.To))
}

// nameOf names a revision. Its number is 0 if it is not known.
func nameOf(number int64, name string) string {
	if number == 0 {
		return "revision " + name
	}
	return fmt.Sprintf("revision %d (%s)", number, name)
}
