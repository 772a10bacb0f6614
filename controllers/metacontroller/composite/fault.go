package composite

// This file is about errors of a parent that a retry does not fix.

// faultError is an error in a parent, its controller or the hook's answer that a retry alone will not fix.
type faultError struct {
	// Reason is one word, for the condition.
	Reason string
	Err    error
}

func (e *faultError) Error() string { return e.Err.Error() }
func (e *faultError) Unwrap() error { return e.Err }
