package check

import "github.com/cairn-dev/cairn/proof/check/recording"

// This file names what rules judge, which package recording takes down.

type (
	// Key names an object.
	Key = recording.Key
	// Event is one change of an object.
	Event = recording.Event
	// History is all that happened.
	History = recording.History
	// Entry is one request that the API server took.
	Entry = recording.Entry
	// Refused is a request that it did not take.
	Refused = recording.Refused
	// Pass is one pass of a controller over one parent, as far as somebody looked.
	Pass = recording.Pass
	// Note is what a controller asked of a hook, and what the answer was.
	Note = recording.Note
	// Scope is one resource that is recorded.
	Scope = recording.Scope
)

// What can happen to an object.
const (
	Added    = recording.Added
	Modified = recording.Modified
	Deleted  = recording.Deleted
)
