package env

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// This file is the exit codes of the process. "cairn help exit-codes" prints the same for users.

// Exit codes.
const (
	// OK: done, or there was nothing to do.
	OK = 0
	// Failed: the cluster, or something in it, did not let it happen.
	Failed = 1
	// Undecided: "cairn diff --exit-code" or "cairn verify" could not find out the answer, as of diff(1).
	Undecided = 2
	// Unfinished: "cairn status" found an object in progress.
	Unfinished = 2
	// Broken: "cairn status" found an object whose controller has given up, or needs help.
	Broken = 3
	// Unsaid: "cairn status" found an object whose state is unknown.
	Unsaid = 4
	// Misused: the command line cannot be understood or is not offered; trying again is pointless. It is EX_USAGE of
	// sysexits.h, so that no script takes it for an answer.
	Misused = 64
	// TimedOut: what --watch or --wait waits for had not come about in time, as of timeout(1).
	TimedOut = 124
	// Interrupted: a signal ended the wait, as of a shell.
	Interrupted = 130
)

// ExitCodes is the table of exit codes for people.
const ExitCodes = `Exit codes:

   0  done; or there was nothing to do, as when an undo would change nothing
   1  it failed: the cluster cannot be reached, an object does not exist, access is denied, it changed meanwhile
  64  the command line is wrong: an unknown verb, flag, controller or value; trying again will not help

"cairn status" answers with it, and so do --watch, and --wait of "cairn undo":

    0  the object is done
    2  it is in progress
    3  it has failed: its controller has given up, or goes on only after an edit or a deletion
    4  its state is unknown
  124  it was not done within --timeout
  130  the wait was interrupted

"cairn diff --exit-code" and "cairn verify" answer 1 if something differs or is wrong, and 2 if that could not be found
out.

Output goes to the standard output, warnings and errors to the standard error. An error is one line that begins with
"error:".`

// UsageError says that the command line is wrong. The process ends with [Misused].
type UsageError struct {
	// Err is what is wrong.
	Err error
	// See is the command whose help shows the correct usage, empty if the error does so itself.
	See string
}

// Error says what is wrong, and where to read on.
func (e *UsageError) Error() string {
	if e.See == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("%v (see %s --help)", e.Err, e.See)
}

// Unwrap returns what is wrong.
func (e *UsageError) Unwrap() error { return e.Err }

// ExitError ends the process with a code that is an answer: "cairn diff --exit-code" found a difference, "cairn status"
// a rollout that is not complete. Unless there is an error as well, everything that a user should read is printed
// already, and nothing is reported.
type ExitError struct {
	// Status is the exit code.
	Status int
	// Err is what went wrong, nil if nothing did.
	Err error
}

// Error says the code, for whoever calls a verb as a function, or what went wrong.
func (e *ExitError) Error() string {
	if e.Err != nil {
		return e.Err.Error()
	}
	return fmt.Sprintf("exit code %d", e.Status)
}

// Unwrap returns what went wrong.
func (e *ExitError) Unwrap() error { return e.Err }

// Usagef returns a [*UsageError] that says what is wrong, and how it is done right.
func Usagef(format string, args ...any) error {
	return &UsageError{Err: fmt.Errorf(format, args...)}
}

// Code returns the exit code for what a verb returned.
func Code(err error) int {
	var usage *UsageError
	var exit *ExitError
	switch {
	case err == nil:
		return OK
	case errors.As(err, &exit):
		return exit.Status
	case errors.As(err, &usage):
		return Misused
	default:
		return Failed
	}
}

// Report writes err as one line. An [*ExitError] is no news.
func Report(w io.Writer, err error) {
	if exit := (*ExitError)(nil); errors.As(err, &exit) && exit.Err == nil {
		return
	}
	text := strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
	fmt.Fprintf(w, "error: %s\n", text)
}
