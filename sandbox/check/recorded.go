package check

import "github.com/cairn-dev/cairn/sandbox/check/recording"

// This file names what rules judge, which package recording takes down.

// Key and those after it are what a rule reads of a recording.
type (
	Key     = recording.Key
	Event   = recording.Event
	History = recording.History
	Entry   = recording.Entry
	Refused = recording.Refused
	Pass    = recording.Pass
	Note    = recording.Note
	Scope   = recording.Scope
)

// What can happen to an object.
const (
	Added    = recording.Added
	Modified = recording.Modified
	Deleted  = recording.Deleted
)
