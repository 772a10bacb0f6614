package rollback

import (
	"fmt"
	"time"
)

// OnDeadlineAnnotation sets the action on a parent whose rollout has exceeded its progress deadline. [Undo] rolls it
// back to the last good revision; [UndoAnyway] does so even if another tool manages the parent and would revert that.
const OnDeadlineAnnotation = "cairn.dev/on-deadline"

// Values of [OnDeadlineAnnotation].
const (
	Undo       = "undo"
	UndoAnyway = "undo-anyway"
)

// Failure is a rollout that has exceeded its progress deadline.
type Failure struct {
	// Revision is the name of the revision that failed. Reason is a clause about the failure.
	Revision, Reason string
	// Made and Available are the highest numbers of children of that revision that existed and were available.
	Made, Available int
	// To is the revision to roll back to: [Good.Target].
	To Revision
	// Anyway rolls back even if another tool manages the parent: see [UndoAnyway].
	Anyway bool
	// Now is the time.
	Now time.Time
}

// RefusedError is the reason for not rolling a failed rollout back: no revision to go back to is known, or a user has
// to decide. Nothing was changed. The caller reports it, and tries again when the parent was edited.
type RefusedError struct {
	// Why is a clause.
	Why string
	// Err is the cause; optional.
	Err error
}

// Error returns the reason and its cause.
func (e *RefusedError) Error() string {
	if e.Err == nil {
		return e.Why
	}
	return fmt.Sprintf("%s: %v", e.Why, e.Err)
}

// Unwrap returns the cause.
func (e *RefusedError) Unwrap() error { return e.Err }

// Check returns a [*RefusedError] if a parent whose [OnDeadlineAnnotation] has the value asks must not be rolled back,
// and nil otherwise. progress is the progress of its rollout; note is the record of its last rollback, nil if there is
// none.
func (f Failure) Check(asks string, progress Progress, note *Note) error {
	refuse := func(format string, args ...any) error { return &RefusedError{Why: fmt.Sprintf(format, args...)} }
	switch {
	case asks != Undo && asks != UndoAnyway:
		return refuse("annotation %s: invalid value %q, must be %s or %s", OnDeadlineAnnotation, asks, Undo, UndoAnyway)
	case progress.Undone == f.Revision || note != nil && note.From == f.Revision: // another client reverts it each time
		return refuse("revision %s was asked for again after it was rolled back", f.Revision)
	case f.Made == 0:
		return refuse("no child was created from revision %s, so the revision may not be the cause", f.Revision)
	case f.To.IsZero():
		return refuse("condition %s names no other revision as the last good one", LastGood)
	default:
		return nil
	}
}
