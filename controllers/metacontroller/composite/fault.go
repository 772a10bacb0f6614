package composite

// This file is what can be wrong with a parent.

// faultError is something that is wrong with a parent, its controller or what the hook said, and that another try alone
// will not mend.
type faultError struct {
	// Reason is one word, for the condition.
	Reason string
	Err    error
}

func (e *faultError) Error() string { return e.Err.Error() }
func (e *faultError) Unwrap() error { return e.Err }
