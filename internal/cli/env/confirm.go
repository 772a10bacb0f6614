package env

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"
)

// This file asks the user, who is there only if the input is a terminal.

// isTerminal reports whether a stream is a terminal, through the writers around it.
func isTerminal(stream any) bool {
	if wrapped, ok := stream.(interface{ Unwrap() any }); ok {
		stream = wrapped.Unwrap()
	}
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Confirm asks a question that is answered with yes or no, on the error stream. Anything but yes is no. Where nobody
// can be asked it returns a [*UsageError] that names --yes.
func (e *Env) Confirm(question string) (bool, error) {
	if !e.Interactive() {
		return false, Usagef("stdin is not a terminal: use --yes to confirm")
	}
	fmt.Fprintf(e.ErrOut, "%s [y/N] ", question)
	answer, err := bufio.NewReader(e.In).ReadString('\n')
	if err != nil && answer == "" {
		fmt.Fprintln(e.ErrOut)
		return false, nil // the end of the input is no answer, and no answer is no
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes", nil
}
