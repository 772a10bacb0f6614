package rollback

import (
	"fmt"
	"time"
)

// OnDeadlineAnnotation says on a parent what is done when a rollout has exceeded its progress deadline: [Undo] goes
// back to the last good revision, [UndoAnyway] also where somebody else will take that back.
const OnDeadlineAnnotation = "cairn.dev/on-deadline"

// Values of [OnDeadlineAnnotation].
const (
	Undo       = "undo"
	UndoAnyway = "undo-anyway"
)

// Failure is a rollout that has exceeded its progress deadline.
type Failure struct {
	// Revision is the name of the revision that it goes to, Reason why it has failed, in one clause.
	Revision, Reason string
	// Made and Available are how many children of that revision there were, and were available, at once, at most.
	Made, Available int
	// To is the revision to go back to: [Good.Target].
	To Revision
	// Anyway goes back although somebody else will take that back.
	Anyway bool
	// Now is the time.
	Now time.Time
}

// RefusedError says why a failed rollout is not undone: there is nothing to go back to, or only a user may decide that.
// Nothing was changed. The caller tells the user, and asks again when the parent was edited.
type RefusedError struct {
	// Why is a clause.
	Why string
	// Err is what was found, nil if Why says it all.
	Err error
}

// Error says why.
func (e *RefusedError) Error() string {
	if e.Err == nil {
		return e.Why
	}
	return fmt.Sprintf("%s: %v", e.Why, e.Err)
}

// Unwrap returns what was found.
func (e *RefusedError) Unwrap() error { return e.Err }

// Check returns why a parent that asks for a rollback, by the value of [OnDeadlineAnnotation], is not to be rolled
// back, as a [*RefusedError], and nil if it is. is is the progress of its rollout, note what it says of the last
// rollback.
func (f Failure) Check(asks string, is Progress, note *Note) error {
	refuse := func(format string, args ...any) error { return &RefusedError{Why: fmt.Sprintf(format, args...)} }
	switch {
	case asks != Undo && asks != UndoAnyway:
		return refuse("annotation %s: there is no %q; there are: %s, %s", OnDeadlineAnnotation, asks, Undo, UndoAnyway)
	case is.Undone == f.Revision || note != nil && note.From == f.Revision: // somebody takes it back each time
		return refuse("revision %s was asked for again after it was rolled back", f.Revision)
	case f.Made == 0:
		return refuse("nothing was created from revision %s, so that it is not what failed", f.Revision)
	case f.To.IsZero():
		return refuse("no other revision is known to have worked, with all its children available (condition %s)", LastGood)
	default:
		return nil
	}
}
