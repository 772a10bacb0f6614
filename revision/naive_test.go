package revision_test

// The state machine's log in memory, and its naive reference: that one knows what every revision means, because it was
// written down when the revision was made, so it compares letters and never looks at data.

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/cairn-dev/cairn/revision"
)

// entry is a revision in the log, and what it means.
type entry struct {
	revision.Revision
	letter string
}

// label is what children carry.
func (e *entry) label() string {
	if e.Hash == "" {
		return e.Name
	}
	return e.Hash
}

func (e *entry) readable() bool { return e.Err == nil && !e.Deleting }

// read is the parent as it was at one generation.
type read struct {
	generation int64
	letter     string
}

// child is an object made from a revision: the label that points at it, and what it was made from.
type child struct{ label, letter string }

// world is the parent's history, the log and the children.
type world struct {
	reads    []read // the last one is how the parent is now
	upgraded bool   // the API server shows a default that older data does not have
	log      []*entry
	children []*child
	update   types.UID // as of the last pass with a fresh read
	made     int
	data     map[types.UID]string // as created
}

func (w *world) pick(t *rapid.T, fits func(*entry) bool) *entry {
	var fitting []*entry
	for _, e := range w.log {
		if fits(e) {
			fitting = append(fitting, e)
		}
	}
	if len(fitting) == 0 {
		t.Skip("there is none")
	}
	return fitting[rapid.IntRange(0, len(fitting)-1).Draw(t, "which")]
}

func (w *world) remove(e *entry) {
	w.log = slices.DeleteFunc(w.log, func(o *entry) bool { return o == e })
}

func (w *world) entry(uid types.UID) *entry {
	return w.log[slices.IndexFunc(w.log, func(e *entry) bool { return e.UID == uid })]
}

func (w *world) revisionOf(c *child) *entry {
	for _, e := range w.log {
		if e.label() == c.label {
			return e
		}
	}
	return nil
}

func (w *world) revisions() []revision.Revision {
	out := make([]revision.Revision, 0, len(w.log))
	for _, e := range w.log {
		out = append(out, e.Revision)
	}
	return out
}

// naive says what Resolve must say of a log, in the words of brief.
func naive(r read, log []*entry) string {
	var claims []*entry
	var highest int64
	for _, e := range log {
		if e.Stamp.ParentUID == parentUID && e.Stamp.Generation > r.generation {
			return "Stale"
		}
		if e.Stamp.ParentUID == parentUID && e.Stamp.Generation == r.generation && !e.Deleting {
			claims = append(claims, e)
		}
		highest = max(highest, e.Number)
	}
	var proven *entry
	if len(claims) == 1 {
		proven = claims[0]
	}

	update := proven
	var duplicates []string
	for _, letter := range []string{"A", "B", "C"} {
		kept := newest(log, letter, (*entry).readable)
		if proven != nil && proven.readable() && proven.letter == letter {
			kept = proven
		}
		for _, e := range log {
			if e.readable() && e.letter == letter && e != kept {
				duplicates = append(duplicates, e.Name+"="+kept.Name)
			}
		}
		if update == nil && letter == r.letter {
			update = kept
		}
	}
	slices.Sort(duplicates)

	leaving := func(e *entry) bool { return e.Deleting && e.Err == nil }
	own := func(e *entry) bool { return leaving(e) && e.Stamp.ParentUID == parentUID }
	if update == nil {
		update = newest(log, r.letter, own)
	}
	if update == nil {
		update = newest(log, r.letter, leaving)
	}
	if update == nil {
		return fmt.Sprintf("RollForward %d %v", highest+1, duplicates)
	}
	for _, e := range log {
		if e != update && e.Number >= update.Number {
			return fmt.Sprintf("Rollback %s %d %v", update.Name, highest+1, duplicates)
		}
	}
	if update.Number < 1 {
		return fmt.Sprintf("Rollback %s %d %v", update.Name, 1, duplicates)
	}
	return fmt.Sprintf("NoChange %s %d %v", update.Name, update.Number, duplicates)
}

// newest returns the readable revision with that meaning and the highest number, the later name among equals.
func newest(log []*entry, letter string, fits func(*entry) bool) *entry {
	var found *entry
	for _, e := range log {
		if !fits(e) || e.letter != letter {
			continue
		}
		if found == nil || e.Number > found.Number || e.Number == found.Number && e.Name > found.Name {
			found = e
		}
	}
	return found
}

// brief says of a resolution what naive says.
func brief(res *revision.Resolution) string {
	if res.Change == revision.Stale {
		return "Stale"
	}
	var duplicates []string
	for _, d := range res.Duplicates {
		duplicates = append(duplicates, d.Revision.Name+"="+d.Of.Name)
	}
	slices.Sort(duplicates)
	words := []string{string(res.Change)}
	if res.Update != nil {
		words = append(words, res.Update.Name)
	}
	return strings.Join(append(words, fmt.Sprint(res.Number), fmt.Sprint(duplicates)), " ")
}
