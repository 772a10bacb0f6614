package inspect

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/inspect/object"
)

// This file says why an undo is not planned, or not carried out: an error for each reason. Nothing was changed then.

// PlantedError says that the revision to go back to may not come from a controller: its name does not go with its
// content, or cannot tell, and pods would get more privileges. Nothing was changed. The caller shows it; a user who has
// looked at the diff sets [Undo.Force].
type PlantedError struct {
	Parent object.Parent
	Entry  Entry
	// Why is a sentence that says so.
	Why string
}

// Error says why the revision is doubted.
func (e *PlantedError) Error() string {
	return fmt.Sprintf("%s of %s is not restored, because perhaps its controller did not make it. %s If the diff is what you want, "+
		"add --force (nothing was changed)", e.Entry, e.Parent, e.Why)
}

// EarlierReleaseError says that a revision was recorded by an earlier release of its controller, in fields that it does
// not look at any more: bringing these back would change nothing. Nothing was changed.
type EarlierReleaseError struct {
	Parent object.Parent
	Entry  Entry
	// Err says which fields.
	Err error
}

// Error says which fields, and what to do.
func (e *EarlierReleaseError) Error() string {
	return fmt.Sprintf("%s of %s was recorded by an earlier release of its controller: %v; run that release to go back to it, or edit %s "+
		"by hand (nothing was changed)", e.Entry, e.Parent, e.Err, e.Parent)
}

// Unwrap returns which fields.
func (e *EarlierReleaseError) Unwrap() error { return e.Err }

// ElsewhereError says that what the revisions hold is another object's: there is nothing in the parent to bring back.
// Nothing was changed.
type ElsewhereError struct {
	Parent, At object.Parent
	// Part is what the revisions hold, as in "template".
	Part string
}

// Error says where, and what to do.
func (e *ElsewhereError) Error() string {
	return fmt.Sprintf("the %s of %s is that of %s, to which it refers; go back there: cairn undo %s (nothing was changed)",
		e.Part, e.Parent, e.At, e.At)
}

// UnknownSpecError says that it cannot be told which revision is the spec's: the API server did not say or, of a kind
// of others, its controller has seen the spec, so one should be, and none compares equal to it. The previous one is not
// known then. Nothing was changed.
type UnknownSpecError struct {
	Parent object.Parent
	// Why are sentences about what could not be found out, often none.
	Why []string
}

// Error says what to do.
func (e *UnknownSpecError) Error() string {
	return strings.Join(append([]string{fmt.Sprintf("which revision of %s is that of its spec is not known, and so not which one is the "+
		"previous; name one with --to-revision (nothing was changed)", e.Parent)}, e.Why...), ". ")
}

// NeverCompleteError says that no revision is known to be good: see [Inspector.PlanUndoLastGood].
type NeverCompleteError struct {
	Parent object.Parent
}

// Error says what to do instead.
func (e *NeverCompleteError) Error() string {
	return fmt.Sprintf("which revision of %s is the last good one is not known: of no other one is it noted that a rollout to it was "+
		"complete, and none has children that have all been available for %s; name one with --to-revision (nothing was changed)",
		e.Parent, goodAfter)
}

// ErrNothingToUndo matches every [*NothingToUndoError]. Nothing was written, and nothing needs to be.
var ErrNothingToUndo = errors.New("there is nothing to undo")

// NothingToUndoError says that an undo would change nothing.
type NothingToUndoError struct {
	Parent object.Parent
	// To is the revision asked for, which the spec matches already. Nil if none was asked for, and the log holds no
	// revision that differs from the spec.
	To *Entry
	// Part is what is recorded of such a parent, as in "the current template matches", if To is not nil.
	Part string
	// PassedOver are sentences about revisions that nobody goes back to without naming them, if To is nil.
	PassedOver []string
}

// Error says why there is nothing to undo.
func (e *NothingToUndoError) Error() string {
	if e.To == nil {
		out := []string{fmt.Sprintf("%s has no revision that can be read and differs from its spec, so there is nothing to go back to", e.Parent)}
		for _, why := range e.PassedOver {
			out = append(out, strings.TrimSuffix(why, "."))
		}
		return strings.Join(out, ". ")
	}
	return fmt.Sprintf("%s matches %s already", e.Parent, e.To)
}

// TerminatingError says that the parent is being deleted. Its controller brings nothing back any more, so that nothing
// was changed; the caller shows it.
type TerminatingError struct {
	Parent object.Parent
	// Since is when the deletion was asked for.
	Since time.Time
	// Finalizers are what the deletion waits for.
	Finalizers []string
}

// Error says since when, and what the deletion waits for.
func (e *TerminatingError) Error() string {
	return e.state() + "; nothing can be brought back (nothing was changed)"
}

func (e *TerminatingError) state() string {
	out := fmt.Sprintf("%s is terminating: its deletion was requested at %s", e.Parent, e.Since.UTC().Format(time.RFC3339))
	if len(e.Finalizers) > 0 {
		out += ", and it waits for its finalizers: " + strings.Join(e.Finalizers, ", ")
	}
	return out
}

// terminatingError returns nil for a parent that stays.
func terminatingError(k object.Kind, parent client.Object) *TerminatingError {
	if parent.GetDeletionTimestamp() == nil {
		return nil
	}
	return &TerminatingError{Parent: object.ParentOf(k, parent), Since: parent.GetDeletionTimestamp().Time, Finalizers: parent.GetFinalizers()}
}

// Is makes every such error match [ErrNothingToUndo].
func (e *NothingToUndoError) Is(target error) bool { return target == ErrNothingToUndo }
