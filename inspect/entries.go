package inspect

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/revision"
)

// This file makes a history out of what was read, and finds an entry in it. No client is needed here.

// NotFoundError says that a history has no such revision. Its message lists those it has.
type NotFoundError struct {
	Parent Parent
	// Number is the number asked for, or Name the name.
	Number int64
	Name   string
	// Have are the revisions that exist, oldest first.
	Have []Entry
}

// Error says what was asked for, and what there is.
func (e *NotFoundError) Error() string {
	what := fmt.Sprintf("revision %d", e.Number)
	if e.Name != "" {
		what = fmt.Sprintf("revision called %q", e.Name)
	}
	if len(e.Have) == 0 {
		return fmt.Sprintf("%s has no %s; it has no history at all", e.Parent, what)
	}
	return fmt.Sprintf("%s has no %s; it has: %s", e.Parent, what, enumerate(e.Have))
}

// AmbiguousError says that several revisions have the number that was asked for. Numbers can be written by hand; names
// cannot, so the caller asks again with a name.
type AmbiguousError struct {
	Parent Parent
	Number int64
	// Same are the revisions with that number.
	Same []Entry
}

// Error names the revisions that have the number.
func (e *AmbiguousError) Error() string {
	names := make([]string, 0, len(e.Same))
	for _, entry := range e.Same {
		names = append(names, entry.Name)
	}
	return fmt.Sprintf("%s has %d revisions with number %d: %s; say which one by its name",
		e.Parent, len(e.Same), e.Number, strings.Join(names, ", "))
}

// UnreadableError says that a revision that was asked for by number or name has content that cannot be read.
type UnreadableError struct {
	Parent Parent
	Entry  Entry
}

// Error names the revision and says what is wrong with it.
func (e *UnreadableError) Error() string {
	return fmt.Sprintf("%s of %s can be neither shown nor restored: %v", e.Entry, e.Parent, e.Entry.Unreadable)
}

// Unwrap returns what is wrong with the content.
func (e *UnreadableError) Unwrap() error { return e.Entry.Unreadable }

// Find returns the entry with that number. Two revisions can have one number, if somebody wrote it by hand or a backup
// was restored; neither is then preferred. Errors: [*NotFoundError], [*AmbiguousError].
func (h *History) Find(number int64) (Entry, error) {
	var same []Entry
	for _, e := range h.Entries {
		if e.Number == number {
			same = append(same, e)
		}
	}
	switch len(same) {
	case 0:
		return Entry{}, &NotFoundError{Parent: h.Parent, Number: number, Have: h.Entries}
	case 1:
		return same[0], nil
	default:
		return Entry{}, &AmbiguousError{Parent: h.Parent, Number: number, Same: same}
	}
}

// FindName returns the entry with that object name. The error is a [*NotFoundError].
func (h *History) FindName(name string) (Entry, error) {
	for _, e := range h.Entries {
		if e.Name == name {
			return e, nil
		}
	}
	return Entry{}, &NotFoundError{Parent: h.Parent, Name: name, Have: h.Entries}
}

// Current returns the entry that is equivalent to the parent's spec, nil if the spec is recorded in none.
func (h *History) Current() *Entry {
	for n := range h.Entries {
		if h.Entries[n].Current {
			return &h.Entries[n]
		}
	}
	return nil
}

func enumerate(entries []Entry) string {
	words := make([]string, 0, len(entries))
	for _, e := range entries {
		words = append(words, fmt.Sprintf("%d (%s)", e.Number, e.Name))
	}
	return strings.Join(words, ", ")
}

// history returns what was read as a person wants to see it.
func (r *reading) history() *History {
	h := &History{Parent: parentOf(r.format, r.parent)}
	for _, stored := range revision.Sorted(r.revisions) {
		e := Entry{
			Number:     stored.Number,
			Name:       stored.Name,
			UID:        stored.UID,
			Hash:       stored.Hash,
			Children:   UnknownCount,
			Deleting:   stored.Deleting,
			Unreadable: unreadable(stored.Err),
			Current:    r.verdict != nil && r.verdict.Update != nil && r.verdict.Update.UID == stored.UID,
			revision:   stored,
		}
		if o, ok := r.objects[stored.UID]; ok {
			e.Created = o.GetCreationTimestamp().Time
			e.ChangeCause = o.GetAnnotations()[ChangeCauseAnnotation]
		}
		if r.childrenErr == nil {
			e.Children = count(r.children, r.format.ChildLabel, stored)
		}
		h.Entries = append(h.Entries, e)
	}
	h.Warnings = slices.Concat(r.warnings, r.oddities(h))
	return h
}

// unreadable drops the name from the error of an entry, which says its own.
func unreadable(err error) error {
	var inner *revision.UndecodableError
	for e := err; errors.As(e, &inner); e = inner.Err {
		err = &revision.UndecodableError{Err: inner.Err}
	}
	return err
}

// count says how many of children were made from r. They point at it by its hash or, where it has no hash label, by its
// name.
func count(children []metav1.PartialObjectMetadata, label string, r revision.Revision) int {
	n := 0
	for _, child := range children {
		if revision.NewLive(child.Labels[label]).Has(r) {
			n++
		}
	}
	return n
}

// oddities says what is unusual about a log.
func (r *reading) oddities(h *History) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for n, e := range h.Entries {
		if e.Unreadable != nil {
			say("%s can be neither shown nor restored: %v.", capital(e.String()), e.Unreadable)
		}
		if n > 0 && h.Entries[n-1].Number == e.Number {
			say("Revisions %s and %s both have number %d; select them by name.", h.Entries[n-1].Name, e.Name, e.Number)
		}
	}
	switch {
	case r.lost != nil:
		say("Which revision is the spec's cannot be told: %v.", r.lost)
	case r.verdict.Update == nil:
		say("No revision records the spec as it is now; its controller has not seen it yet, or does not run.")
	case r.verdict.Renumber():
		say("The spec is that of revision %d (%s) again, which its controller has not renumbered yet.",
			r.verdict.Update.Number, r.verdict.Update.Name)
	}
	if r.verdict != nil {
		for _, d := range r.verdict.Duplicates {
			say("Revisions %d (%s) and %d (%s) have the same content.", d.Of.Number, d.Of.Name, d.Revision.Number, d.Revision.Name)
		}
	}
	if r.childrenErr != nil {
		say("The %ss could not be counted: %v.", strings.ToLower(r.format.Children.Kind), r.childrenErr)
	}
	return append(out, strays(r.children, r.format, r.revisions)...)
}

// strays speaks of children that were made from a revision which the log has no longer: they cannot be shown, nor
// recreated as they are.
func strays(children []metav1.PartialObjectMetadata, format history.Format, revisions []revision.Revision) []string {
	known := 0
	for _, r := range revisions {
		known += count(children, format.ChildLabel, r)
	}
	if n := len(children) - known; n > 0 {
		kind := strings.ToLower(format.Children.Kind)
		return []string{fmt.Sprintf("%d of %d %ss come from no revision of this history.", n, len(children), kind)}
	}
	return nil
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
