package inspect

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/inspect/object"
	"github.com/cairn-dev/cairn/internal/author"
	"github.com/cairn-dev/cairn/revision"
	"github.com/cairn-dev/cairn/rollback"
)

// This file makes a history out of what was read, and finds an entry in it. It needs no client.

// NotFoundError says that a history has no such revision. Its message lists the newest that it has.
type NotFoundError struct {
	Parent object.Parent
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
	have := "it has"
	newest := e.Have
	if len(newest) > maxNamed {
		have, newest = fmt.Sprintf("of its %d the newest are", len(newest)), newest[len(newest)-maxNamed:]
	}
	return fmt.Sprintf("%s has no %s; %s: %s", e.Parent, what, have, enumerate(newest))
}

// maxNamed is how many revisions an error names.
const maxNamed = 10

// AmbiguousError says that several revisions have the number that was asked for, or that the previous revision was
// asked for and several have no number. Numbers can be written by hand; names cannot, so the caller asks again with a
// name.
type AmbiguousError struct {
	Parent object.Parent
	// Number is the number asked for, 0 if the previous revision was.
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
	if e.Number == 0 {
		return fmt.Sprintf("which revision of %s is the previous one is not known, because these have no number: %s; say which one by its name",
			e.Parent, strings.Join(names, ", "))
	}
	return fmt.Sprintf("%s has %d revisions with number %d: %s; say which one by its name",
		e.Parent, len(e.Same), e.Number, strings.Join(names, ", "))
}

// UnreadableError says that a revision that was asked for by number or name has content that cannot be read.
type UnreadableError struct {
	Parent object.Parent
	Entry  Entry
}

// Error names the revision and says what is wrong with it.
func (e *UnreadableError) Error() string {
	return fmt.Sprintf("%s of %s can be neither shown nor restored: %v", e.Entry, e.Parent, e.Entry.Unreadable)
}

// Unwrap returns what is wrong with the content.
func (e *UnreadableError) Unwrap() error { return e.Entry.Unreadable }

// Find returns the entry with that number. Two revisions can have one number, if it was written by hand or a backup was
// restored; neither is then preferred. Errors: [*NotFoundError], [*AmbiguousError].
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

// Object returns what kubectl calls the object that holds an entry: controllerrevision.apps/web-7c9d.
func (h *History) Object(e Entry) string { return object.KindName(h.Stored) + "/" + e.Name }

// Holder names the object that holds an entry.
func (h *History) Holder(e Entry) object.Parent {
	out := object.Parent{Namespace: e.stored.Object.GetNamespace(), Name: e.Name, UID: e.UID}
	for _, gvk := range append(object.RevisionKinds, object.ReplicaSetKind) {
		if gvk.GroupKind() == h.Stored {
			out.GroupVersionKind = gvk
		}
	}
	return out
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
		words = append(words, strings.TrimPrefix(e.String(), "revision "))
	}
	return strings.Join(words, ", ")
}

// History returns what was read as a user wants to see it.
func (r *Log) History() *History {
	h := &History{
		Parent: object.ParentOf(r.Kind, r.Parent), Controller: r.Controller, Stored: r.Objects, Children: r.Children,
	}
	for n, stored := range r.Revisions {
		e := Entry{
			Number:     stored.Number,
			Name:       stored.Name,
			UID:        stored.UID,
			Hash:       stored.Hash,
			Children:   UnknownCount,
			Deleting:   stored.Deleting,
			Unreadable: unreadable(stored.Err),
			Current:    r.Resolution != nil && r.Resolution.Update != nil && r.Resolution.Update.UID == stored.UID,
			stored:     stored,
			mask:       r.mask,
		}
		if stored.Object != nil {
			signed(&e, stored.Object.GetAnnotations())
			e.Created = stored.Object.GetCreationTimestamp().Time
			e.ChangeCause = stored.Object.GetAnnotations()[ChangeCauseAnnotation]
		}
		if r.Counts != nil {
			e.Children = r.Counts[n]
		}
		h.Entries = append(h.Entries, e)
	}
	r.attribute(h)
	r.complete(h)
	r.undone(h)
	h.borrowCause(r.Parent.GetAnnotations()[ChangeCauseAnnotation])
	h.Warnings = slices.Concat(r.terminating(), r.warnings, r.oddities(h))
	return h
}

// attribute says who made the edit that the current revision records, where its controller does not note that: whoever
// wrote it last. Of the others it is not known any more.
func (r *Log) attribute(h *History) {
	current := h.Current()
	if current == nil || current.By != "" {
		return
	}
	if by := author.Last(r.Parent.GetManagedFields(), current.stored.Target); by != nil {
		current.By = by.Manager
		if by.Time != nil {
			current.At = by.Time.Time
		}
	}
}

// complete says which revisions are known to be good, as the status says, and which others were noted to have been.
func (r *Log) complete(h *History) {
	known := sets.New[string]()
	for n := range h.Entries {
		known.Insert(h.Entries[n].stored.Completed...)
	}
	good := rollback.GoodOf(r.Parent)
	for n := range h.Entries {
		e := &h.Entries[n]
		e.Good = good.Includes(e.UID)
		e.Completed = e.Good || known.Has(e.Name)
	}
}

// undone marks the revision from which the parent was rolled back, and the one to which the rollout has failed.
func (r *Log) undone(h *History) {
	is := rollback.ProgressOf(r.Parent)
	if is == nil {
		return
	}
	note := rollback.NoteOf(r.Parent)
	if last := is.LastRollback(note); last != nil {
		at := ""
		if !last.At.IsZero() {
			at = " at " + last.At.UTC().Format(time.RFC3339)
		}
		r.warnf("It was rolled back%s: %s.", at, strings.TrimSuffix(last.String(), "."))
	}
	for n := range h.Entries {
		switch e := &h.Entries[n]; {
		case e.Name == is.Undone && note != nil && note.From == e.Name:
			e.Failed = note.Reason
		case e.Name == is.Undone:
			e.Failed = "it was rolled back"
		case e.Name == is.Revision:
			e.Failed = is.Failed
		}
	}
}

// RolledBack is what an object says of a rollout of it that failed and was rolled back automatically, nil if there was
// none, or it was edited since.
func RolledBack(parent client.Object) *rollback.Note {
	return rollback.ProgressOf(parent).LastRollback(rollback.NoteOf(parent))
}

// date sets since when each entry has its number.
func (h *History) date(parent client.Object) {
	for n := range h.Entries {
		e := &h.Entries[n]
		o := e.stored.Object
		if o == nil {
			continue
		}
		e.Since = since(o)
		if e.Current && e.Was != 0 && e.Since.Equal(o.GetCreationTimestamp().Time) {
			e.Since = lastEdit(parent, e.stored.Target, e.Since) // the parent went back to a ReplicaSet
		}
	}
}

// lastEdit returns when a field of target was written last, or earliest if that is not later.
func lastEdit(parent client.Object, target *revision.Target, earliest time.Time) time.Time {
	out := earliest
	for _, m := range parent.GetManagedFields() {
		if m.Time != nil && m.FieldsV1 != nil && m.Time.After(out) && ownsOf(m.FieldsV1.GetRawBytes(), target) {
			out = m.Time.Time
		}
	}
	return out
}

// since returns when an object got its number: when its writer changed it last. A ReplicaSet is written too often to
// tell.
func since(o client.Object) time.Time {
	out := o.GetCreationTimestamp().Time
	for _, e := range o.GetManagedFields() {
		var fields map[string]any
		if e.Time == nil || e.FieldsV1 == nil || json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		if _, numbers := fields["f:revision"]; numbers && e.Time.After(out) {
			out = e.Time.Time
		}
	}
	return out
}

// compareEach says of each entry what differs from the one before.
func (h *History) compareEach() {
	for n := 1; n < len(h.Entries); n++ {
		before, errA := h.Entries[n-1].content()
		after, errB := h.Entries[n].content()
		if errA == nil && errB == nil {
			h.Entries[n].Changes = h.Entries[n].mask.Changes(before, after)
		}
	}
}

// revisionHistory ends the annotation in which ReplicaSets have the numbers that they had before, the newest last: of
// Deployments and of Argo Rollouts.
const revisionHistory = "/revision-history"

// signed takes what the controller noted beside the content.
func signed(e *Entry, annotations map[string]string) {
	e.By = annotations[history.RecordedByAnnotation]
	was := annotations[history.WasRevisionAnnotation]
	for key, numbers := range annotations {
		if strings.HasSuffix(key, revisionHistory) {
			was = numbers[strings.LastIndex(numbers, ",")+1:]
		}
	}
	e.Was, _ = strconv.ParseInt(was, 10, 64) // what is no number is not known
	if at, err := time.Parse(time.RFC3339, annotations[history.RecordedAtAnnotation]); err == nil {
		e.At = at
	}
}

// borrowCause gives the current revision the cause that the parent has, if it has none: people annotate after the edit.
// A cause that another revision has recorded is the cause of that one, and was left behind by an undo.
func (h *History) borrowCause(cause string) {
	current := h.Current()
	if current == nil || current.ChangeCause != "" || slices.ContainsFunc(h.Entries, func(e Entry) bool { return e.ChangeCause == cause }) {
		return
	}
	current.ChangeCause = cause
}

// terminating says that the parent is being deleted.
func (r *Log) terminating() []string {
	if err := terminatingError(r.Kind, r.Parent); err != nil {
		return []string{err.state() + "."}
	}
	return nil
}

// unreadable drops the name of the revision from an error: the entry has it already.
func unreadable(err error) error {
	var inner *revision.UndecodableError
	for e := err; errors.As(e, &inner); e = inner.Err {
		err = &revision.UndecodableError{Err: inner.Err}
	}
	return err
}

// oddities says what is unusual about a log.
func (r *Log) oddities(h *History) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	unnumbered := 0
	for n, e := range h.Entries {
		if e.Unreadable != nil {
			say("%s can be neither shown nor restored: %v.", object.Capital(e.String()), e.Unreadable)
		}
		if e.Number == 0 {
			unnumbered++
		} else if n > 0 && h.Entries[n-1].Number == e.Number {
			say("Revisions %s and %s both have number %d; select them by name.", h.Entries[n-1].Name, e.Name, e.Number)
		}
	}
	if unnumbered > 0 {
		say("%d of %d revisions have no number, as when Metacontroller wrote them; select them by name.", unnumbered, len(h.Entries))
	}
	out = append(out, r.pending(h)...)
	if r.ChildrenErr != nil {
		say("The %s could not be counted: %v.", r.Children, r.ChildrenErr)
	}
	// They cannot be shown, nor recreated as they are.
	if r.Strays > 0 {
		total := r.Strays
		for _, n := range r.Counts {
			total += n
		}
		say("%d of %d %s come from no revision of this history.", r.Strays, total, r.Children)
	}
	return out
}

// pending says what the controller has still to do to the log, or cannot do.
func (r *Log) pending(h *History) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	switch {
	case r.Lost != nil:
		say("It is not known which revision is that of the spec: %v.", r.Lost)
		return out
	case r.Resolution.Update == nil && r.Unrecorded != "":
		say("%s", r.Unrecorded)
	case r.Resolution.Update == nil && r.refused: // the warning says what is not known
	case r.unknown(h):
		say("Its controller has seen the spec, and no revision compares equal to it: which one is the spec's is not known.")
	case r.Resolution.Update == nil:
		say("No revision records the spec as it is now; its controller has not seen it yet, or does not run.")
	case r.Resolution.Renumber() && r.Resolution.Update.Number > 0:
		say("The spec is that of %s again, which its controller has not renumbered yet.",
			object.RevisionName(r.Resolution.Update.Number, r.Resolution.Update.Name))
	}
	for _, d := range r.Resolution.Duplicates {
		say("Revisions %d (%s) and %d (%s) have the same content.", d.Of.Number, d.Of.Name, d.Revision.Number, d.Revision.Name)
	}
	return out
}
