package hook

import (
	"fmt"
	"strings"
	"time"

	"github.com/cairn-dev/cairn/pass"
)

// This file says how a hook can fail. A failure never stands for "no children": the caller changes no child.

// Reason says in one word what is wrong with a hook, as conditions do.
type Reason string

// The reasons.
const (
	// Misconfigured: the webhook's URL, certificates or credentials cannot be used. Calling again is no use until one of
	// them, or a Secret, changes.
	Misconfigured Reason = "HookMisconfigured"
	// AddressRefused: it is at an address that [Guard] keeps hooks away from.
	AddressRefused Reason = "HookAddressRefused"
	// Unreachable: no connection, or one that broke.
	Unreachable Reason = "HookUnreachable"
	// TimedOut: no complete answer in time.
	TimedOut Reason = "HookTimedOut"
	// Redirected: it answered with another address. Redirects are not followed.
	Redirected Reason = "HookRedirected"
	// BadStatus: it answered with a status other than 200.
	BadStatus Reason = "HookBadStatus"
	// Busy: it answered 429; the error holds a [TooManyRequestsError].
	Busy Reason = "HookBusy"
	// TooLarge: the answer is larger than the limit, as it was sent or in memory.
	TooLarge Reason = "HookAnswerTooLarge"
	// NoRoom: other large answers take all the memory that is reserved for answers. Call again later.
	NoRoom Reason = "HookNoRoom"
	// Malformed: the answer is no JSON, or not of the form that the protocol asks for.
	Malformed Reason = "HookAnswerMalformed"
	// Incomplete: the answer does not say which children there should be.
	Incomplete Reason = "HookAnswerIncomplete"
	// Contradictory: the answer has children that cannot all be, or that this parent cannot have; the error holds a
	// [ChildrenError].
	Contradictory Reason = "HookAnswerContradictory"
)

// Error is the error of every call without a usable answer.
type Error struct {
	Hook Kind
	// URL is where it was called: scheme, host and path; empty if there is none.
	URL    string
	Reason Reason
	// Err says what happened, for users.
	Err error
	// Sample is the beginning of the body that came with a bad status. It is not part of the text of the error: users who
	// may read events may not be allowed to read what the webhook's host says.
	Sample []byte
}

func (f *Error) Error() string {
	if f.URL == "" {
		return fmt.Sprintf("%s hook: %v", f.Hook, f.Err)
	}
	return fmt.Sprintf("%s hook %s: %v", f.Hook, f.URL, f.Err)
}

func (f *Error) Unwrap() error { return f.Err }

// TooManyRequestsError is the 429 of a hook that wants to be called later. It is no event; with a time it is no failure
// either.
type TooManyRequestsError struct {
	// After is how long to wait, 0 if the hook did not say, a day at most.
	After time.Duration
}

func (e *TooManyRequestsError) Error() string {
	if e.After == 0 {
		return "it has too many requests, and does not say when to ask again"
	}
	return fmt.Sprintf("it has too many requests and wants to be asked again after %s", e.After)
}

// ChildError says what is wrong with one child of an answer.
type ChildError struct {
	// Field and Index are its position in the answer.
	Field string
	Index int
	// Child is kind and name, as far as it has them.
	Child string
	// Problem is one clause.
	Problem string
}

func (e ChildError) Error() string {
	where := fmt.Sprintf("%s[%d]", e.Field, e.Index)
	if e.Child != "" {
		where += " " + e.Child
	}
	return where + ": " + e.Problem
}

// mostBad is after how many bad children the check stops.
const mostBad = 3

// ChildrenError is the errors of the first bad children of an answer, in their order. There is at least one, and at
// most three: an answer may have millions.
type ChildrenError []ChildError

func (e ChildrenError) Error() string {
	parts := make([]string, 0, mostBad+1)
	for _, c := range e[:min(mostBad, len(e))] {
		parts = append(parts, c.Error())
	}
	if len(e) >= mostBad {
		parts = append(parts, "children after that were not looked at")
	}
	return strings.Join(parts, "; ")
}

// short quotes text of a hook, and cuts it to what fits into a line of a condition or an event.
func short(s string) string { return fmt.Sprintf("%q", pass.Cut(s, 100)) }

// brief is the text of an error that repeats what a hook sent, cut.
func brief(err error) string { return pass.Cut(err.Error(), 200) }
