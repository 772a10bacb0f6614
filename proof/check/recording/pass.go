package recording

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file is what no object shows: passes, and what they asked of anybody. Who runs the controllers takes it down.

// Pass is one pass of a controller over one parent, as far as somebody looked.
type Pass struct {
	// ID is its own; no two passes of a history share one.
	ID string
	// For names the controller and the parent that it was for; empty if nobody knows.
	For string
	// Instance is the process that it ran in. After a restart, and of two managers, it is another one.
	Instance string
	// Views are the resource versions that the caches of the process had reached when the pass began, by resource. Nil
	// means that nobody knows.
	Views map[schema.GroupVersionResource]uint64
	// Born is the resource version at which the process began, zero if nobody knows. Its first lists may be older. Before
	// it acts for a parent the first time it must look past them, so that of children it knows
	// all up to there.
	Born uint64
	// At is when the pass began, zero if nobody knows. What serves only because time has passed since, it could not know.
	At time.Time
	// Clock is what the clock showed then by which the process knows what is due. Zero if nobody knows.
	Clock time.Time
}

// Note says what a controller asked of a hook, and what the answer was. Who plays the hook takes them.
type Note struct {
	// RV is the resource version of the last write before it.
	RV uint64
	// Pass is the pass that asked, nil if nobody knows; Parent is the UID of its parent.
	Pass   *Pass
	Parent types.UID
	// Failed is true if there was no answer that can be used. Revision and Children are not set then.
	Failed bool
	// Question is the same for all that one pass asks, and for what is asked again because it failed: the versions of the
	// parent and of the children that the hook was told of. Empty if nobody knows.
	Question string
	// Told are the children that the hook was told of, which are those that the pass knows. Nil if nobody knows.
	Told []client.Object
	// Revision is the name of the revision that the parent was restored from, empty if it was sent as it is, or if nobody
	// knows. Sent is the parent as the hook got it, Children are what the hook asks for.
	Revision string
	Sent     client.Object
	Children []client.Object
}

// Sort is what is asked of whom.
type Sort string

// The sorts of calls: requests to the API server, Events that are written, and questions to hooks.
const (
	Request  Sort = "requests"
	Said     Sort = "Event writes"
	Question Sort = "questions to the hook"
)

// Call is one thing that a controller asked for.
type Call struct {
	Sort Sort
	// For names the controller and the parent that it was for; empty if nobody knows.
	For string
	// What is a word or two about it.
	What string
	At   time.Time
	// After is the resource version of the last write before it.
	After uint64
}

// Span is a time.
type Span struct {
	From, To time.Time
	// What lasted.
	What string
}
