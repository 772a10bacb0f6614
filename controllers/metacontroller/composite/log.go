package composite

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/history/metacontroller"
	"github.com/cairn-dev/cairn/revision"
	"github.com/cairn-dev/cairn/rollback"
)

// This file says what the log of a parent needs: which revision is the newest, which children belong to which, and
// which of that is to be stored before any child is touched. It is pure.

// entry is one revision of a parent.
type entry struct {
	// object is the stored one, nil if it is to be created.
	object   *v1alpha1.ControllerRevision
	revision revision.Revision
	// children belong to the revision; stored are those that it lists. They differ after an interrupted move.
	children, stored *metacontroller.Claims
	// foreign are children of kinds that the controller does not declare: another controller of the same parents rolls
	// them.
	foreign *metacontroller.Claims
}

func newEntry(o *v1alpha1.ControllerRevision, r revision.Revision, ours func(schema.GroupKind) bool) *entry {
	e := &entry{object: o, revision: r}
	e.stored, e.foreign = metacontroller.ReadClaims(o.Children).Split(ours)
	e.children = e.stored.Clone()
	return e
}

// revisionLog is the log of one parent, as a pass sees it.
type revisionLog struct {
	*history.Verdict

	// entries are all of them, oldest first. newest is the one that the parent asks for: it may have to be created, and
	// then it is not among the entries.
	entries []*entry
	newest  *entry
	// collisions is how many names are taken by other revisions of this parent, nil for none.
	collisions *int32
	// duplicates have the content of another revision.
	duplicates []duplicate
	// held and foreignHeld are the children that are held at older revisions, as the revision says that was the newest:
	// ours, and those of kinds that the controller does not declare.
	held, foreignHeld metacontroller.Held
	// named reports whether a name follows from the content of a revision.
	named func(name string, r revision.Revision) bool
}

// duplicate is a revision with the content of another one. Its children belong to of.
type duplicate struct{ entry, of *entry }

// newLog says which revision is the newest, and which children belong to which. entries are those that the verdict is
// about, ours says which kinds the controller declares.
func newLog(
	f *metacontroller.Format, v *history.Verdict, parent *unstructured.Unstructured, entries []*entry, ours func(schema.GroupKind) bool,
) *revisionLog {
	l := &revisionLog{Verdict: v, entries: entries, named: func(name string, r revision.Revision) bool {
		return r.Snapshot != nil && (f.Named(name, r, parent.GetUID()) || f.Named(name, r, r.Stamp.ParentUID))
	}}
	if n := len(l.entries); n > 0 { // only the annotation of the last newest one is up to date
		all := metacontroller.ReadHeld(l.entries[n-1].object)
		l.held = all.Only(ours)
		l.foreignHeld = all.Only(func(kind schema.GroupKind) bool { return !ours(kind) })
	}
	l.place(f, parent)
	l.giveToNewer()
	for _, d := range l.duplicates {
		for _, c := range d.entry.children.Sorted() {
			d.entry.children.Move(c, d.of.children)
		}
	}
	return l
}

// giveToNewer gives a child that two revisions list to the newer one, by the stored numbers: a revision that the parent
// goes back to was not the newer one when the child was moved. Metacontroller's have no numbers, and one may have been
// given the highest number there is; then the one that the parent asks for is the newer one.
func (l *revisionLog) giveToNewer() {
	var newestFirst []*metacontroller.Claims
	if l.newest.object != nil && (l.newest.object.Revision == 0 || l.Full != nil) {
		newestFirst = append(newestFirst, l.newest.children)
	}
	for _, e := range slices.Backward(l.entries) {
		if len(newestFirst) == 0 || e.children != newestFirst[0] {
			newestFirst = append(newestFirst, e.children)
		}
	}
	metacontroller.Settle(newestFirst...)
}

// place finds the newest revision and the duplicates among the entries.
func (l *revisionLog) place(f *metacontroller.Format, parent *unstructured.Unstructured) {
	l.Number = max(1, l.Number) // Metacontroller's revisions have none
	entryOf := func(r revision.Revision) *entry {
		return l.entries[slices.IndexFunc(l.entries, func(e *entry) bool { return e.revision.UID == r.UID })]
	}
	for _, d := range l.Duplicates {
		l.duplicates = append(l.duplicates, duplicate{entryOf(d.Revision), entryOf(d.Of)})
	}
	if l.Update != nil {
		l.newest = entryOf(*l.Update)
		return
	}
	name, collisions := f.FreeName(parent, l.Snapshot, func(name string) bool { return l.entry(name) != nil })
	l.newest = &entry{
		revision: revision.Revision{Name: name, Snapshot: l.Snapshot},
		children: &metacontroller.Claims{}, stored: &metacontroller.Claims{}, foreign: &metacontroller.Claims{},
	}
	l.collisions = collisions
}

// entry returns the revision of that name, nil if there is none.
func (l *revisionLog) entry(name string) *entry {
	for _, e := range l.entries {
		if e.revision.Name == name {
			return e
		}
	}
	return nil
}

// storedIn says which revision each child is stored in, and what is wrong with revisions that cannot be used. The
// newest one knows which children are held where, also if that revision was deleted, or another one lists them as well.
func (l *revisionLog) storedIn() (in map[metacontroller.Child]string, lost map[string]string) {
	in, lost = map[metacontroller.Child]string{}, map[string]string{}
	for _, e := range l.entries {
		if e.revision.Snapshot == nil && e != l.newest {
			lost[e.revision.Name] = fmt.Sprintf("which cannot be read (%v)", unreadable(e.revision))
		}
		for _, c := range e.children.Sorted() {
			in[c] = e.revision.Name
		}
	}
	for name, children := range l.held {
		e := l.entry(name)
		switch {
		case e != nil && l.original(e) != nil:
			name = l.original(e).revision.Name
		case e == nil && name != "":
			lost[name] = "which was deleted, or no longer belongs to this parent"
		}
		for _, c := range children.Sorted() {
			if at, known := in[c]; !known || !l.says(at) && (e != nil || !l.named(name, l.entry(at).revision)) {
				in[c] = name
			}
		}
	}
	return in, lost
}

// says reports whether a revision's word about its children counts beside what is held: that of the newest one, and of
// the one that says what is held. Any other may have been planted, unless it has the content of the one that was
// deleted.
func (l *revisionLog) says(name string) bool {
	return name == l.newest.revision.Name || name == l.entries[len(l.entries)-1].revision.Name
}

// unreadable says what is wrong with a revision that has no snapshot, without its name.
func unreadable(r revision.Revision) error {
	if err, ok := errors.AsType[*revision.UndecodableError](r.Err); ok {
		return err.Err
	}
	return r.Err
}

// revisionWrite is the new state of one revision.
type revisionWrite struct {
	entry *entry
	// number and children are what it is to hold.
	number   int64
	children *metacontroller.Claims
	// held is the annotation about held children for the newest revision: nil leaves it as it is.
	held *string
}

// stored are the children of a write as the revision lists them, those of other controllers included.
func (w revisionWrite) stored() []v1alpha1.ControllerRevisionChildren {
	return w.children.Union(w.entry.foreign).Stored()
}

// writes returns what is to be stored before children are touched, newest first, so that a child is always in some
// revision. belongsTo and held are those of a plan. Moved children are taken off older revisions at once:
// Metacontroller, which may take over in mid-rollout, would replace every child that two revisions list.
func (l *revisionLog) writes(belongsTo map[metacontroller.Child]string, held metacontroller.Held) []revisionWrite {
	of := map[string]*metacontroller.Claims{}
	for c, name := range belongsTo {
		if of[name] == nil {
			of[name] = &metacontroller.Claims{}
		}
		of[name].Add(c)
	}
	childrenOf := func(e *entry) *metacontroller.Claims {
		if c := of[e.revision.Name]; c != nil {
			return c
		}
		return &metacontroller.Claims{}
	}
	var out []revisionWrite
	w := revisionWrite{entry: l.newest, number: l.Number, children: childrenOf(l.newest)}
	if text := held.With(l.foreignHeld).Annotation(); text != l.newest.says(metacontroller.HeldAnnotation) {
		w.held = &text
	}
	if l.newest.object == nil || l.newest.revision.Number != l.Number || w.held != nil || !w.children.Equal(l.newest.stored) {
		out = append(out, w)
	}
	var poorer []revisionWrite // with fewer children, after those that get more: from a duplicate, or by hand
	for _, e := range slices.Backward(l.entries) {
		c := childrenOf(e)
		if e == l.newest || c.Equal(e.stored) || e.revision.Deleting {
			continue
		}
		w := revisionWrite{entry: e, number: e.revision.Number, children: c}
		if c.Within(e.stored) {
			poorer = append(poorer, w)
		} else {
			out = append(out, w)
		}
	}
	return append(out, poorer...)
}

// newestRevision identifies the newest revision, zero if it is not stored yet.
func (l *revisionLog) newestRevision() rollback.Revision {
	if l == nil {
		return rollback.Revision{}
	}
	return rollback.Revision{Name: l.newest.revision.Name, UID: l.newest.revision.UID}
}

// surplus returns the revisions beyond limit, oldest first, after duplicates without children. belongsTo is that of a
// plan, after its writes; more are names of revisions that are needed as well.
func (l *revisionLog) surplus(belongsTo map[metacontroller.Child]string, limit int, more ...string) []*entry {
	live := slices.AppendSeq(more, maps.Values(belongsTo))
	for _, e := range l.entries {
		if e.stored.Len()+e.foreign.Len() > 0 {
			live = append(live, e.revision.Name) // it still says so
		}
	}
	var out []*entry
	for _, d := range l.duplicates {
		if d.entry.stored.Len()+d.entry.foreign.Len() == 0 && !d.entry.revision.Deleting {
			out = append(out, d.entry)
		}
	}
	all := make([]revision.Revision, 0, len(l.entries))
	for _, e := range l.entries {
		if !slices.Contains(out, e) {
			all = append(all, e.revision)
		}
	}
	for _, pruned := range revision.Prune(all, l.newest.revision, revision.NewInUse(live...), limit) {
		out = append(out, l.entry(pruned.Name))
	}
	return out
}

// says returns an annotation of a stored revision, empty if there is none.
func (e *entry) says(annotation string) string {
	if e.object == nil {
		return ""
	}
	return e.object.Annotations[annotation]
}

// original returns the revision of which e is a duplicate, nil if it is none.
func (l *revisionLog) original(e *entry) *entry {
	for _, d := range l.duplicates {
		if d.entry == e {
			return d.of
		}
	}
	return nil
}
