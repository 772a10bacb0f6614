package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/inspect/content"
	"github.com/cairn-dev/cairn/inspect/object"
	"github.com/cairn-dev/cairn/revision"
	"github.com/cairn-dev/cairn/rollback"
)

// This file plans an undo: which revision to go back to, what that changes, and what a user should know before. The
// plan is carried out in apply.go.

// FieldOwner is the name under which an undo is written into the parent's managed fields.
const FieldOwner = "cairn"

// Undo is a plan to bring a parent back to one of its revisions. Nothing has happened yet.
type Undo struct {
	Parent object.Parent
	// From is the revision that is equivalent to the spec now, nil if none is.
	From *Entry
	// To is the revision to go back to.
	To Entry
	// Patch is the JSON patch that does it, with the UID and the resourceVersion that were read as preconditions.
	Patch []byte
	// Diff is a unified diff, as YAML, from the recorded part of the parent now to that of To. Defaults that To lacks are
	// shown as removed, though the API server will fill them in; a dry run ([Inspector.Apply]) shows what it makes of it.
	Diff string
	// Privileges are sentences about what the restored pods may do that those of the spec now may not. An undo brings back
	// what was right once, and any user who may create a revision can forge one.
	Privileges []string
	// Warnings are sentences about what else a user should know before.
	Warnings []string
	// Force carries the plan out although To may not come from a controller: see [Entry.Origin]. The caller sets it if the
	// user says so.
	Force bool

	kind object.Kind
	live client.Object
	// added are the paths of the fields that the undo adds. needs are the objects that only the restored pods need.
	added []string
	needs []content.Need
	// unfollowed is a warning that the annotation of client-side apply does not follow the undo, empty if it does.
	unfollowed string
	mask       content.Masker
	log        *Log
	// rollback is the failure that is undone, nil if a user asks, and asked what [rollback.OnDeadlineAnnotation] said.
	rollback *rollback.Failure
	asked    string
}

// Replaced counts the children that come from other revisions than that to go back to: its controller replaces them, as
// far as its strategy goes. of is what they are called, and empty where they are not known or not replaced.
func (u *Undo) Replaced(ctx context.Context) (n int, of string) {
	if u.log.Runs || u.log.Children == "" {
		return 0, ""
	}
	counts, unowned, err := u.log.Kind.Count(ctx, u.log.Parent, u.log.Revisions)
	if err != nil {
		return 0, ""
	}
	for i, r := range u.log.Revisions {
		if r.UID != u.To.UID {
			n += counts[i]
		}
	}
	return n + unowned, u.log.Children
}

// Planted returns a [*PlantedError] if the plan is not carried out unless it is forced, nil otherwise.
func (u *Undo) Planted() error {
	why, unverified := u.To.Origin()
	if why == "" && len(u.Privileges) > 0 {
		why = unverified
	}
	if why == "" || u.Force {
		return nil
	}
	return &PlantedError{Parent: u.Parent, Entry: u.To, Why: why}
}

// PlanUndo says what it takes to bring parent back to the revision with number toRevision or, if that is 0, to the
// newest revision that is not equivalent to the spec. It writes nothing.
//
// Errors: [ErrNothingToUndo], [*TerminatingError], [*NotFoundError], [*AmbiguousError], [*UnreadableError],
// [*object.UnknownKindError], [*ChangedError] (ask again), or what the API server says.
func (i *Inspector) PlanUndo(ctx context.Context, parent client.Object, toRevision int64) (*Undo, error) {
	if toRevision == 0 {
		return i.planned(ctx, parent, nil, nil)
	}
	return i.planned(ctx, parent, func(h *History) (Entry, error) { return h.Find(toRevision) }, nil)
}

// PlanUndoTo is [Inspector.PlanUndo] to the revision object called name.
func (i *Inspector) PlanUndoTo(ctx context.Context, parent client.Object, name string) (*Undo, error) {
	return i.planned(ctx, parent, func(h *History) (Entry, error) { return h.FindName(name) }, nil)
}

// planned is plan for a user: with the warnings that cost a request.
func (i *Inspector) planned(
	ctx context.Context, parent client.Object, find Find, eligible func(*Log) (func(Entry) bool, error),
) (*Undo, error) {
	u, err := i.plan(ctx, parent, find, eligible)
	if err != nil {
		return nil, err
	}
	u.Warnings = slices.Concat(u.Warnings, i.missing(ctx, u), i.autoscalers(ctx, u), i.converted(u, parent))
	return u, nil
}

// plan makes a plan to go back to what find finds; a nil find means the previous revision, of those that pass the test
// that eligible makes if that is set.
func (i *Inspector) plan(
	ctx context.Context, parent client.Object, find Find, eligible func(*Log) (func(Entry) bool, error),
) (*Undo, error) {
	stale := &ChangedError{}
	for range maxReads {
		r, err := i.Read(ctx, parent)
		if err != nil {
			return nil, err
		}
		if err := terminatingError(r.Kind, r.Parent); err != nil {
			return nil, err
		}
		if at := object.Elsewhere(r.Kind, r.Parent); at != nil {
			return nil, &ElsewhereError{Parent: object.ParentOf(r.Kind, r.Parent), At: *at, Part: r.Part}
		}
		if r.Lost != nil {
			return nil, r.Lost
		}
		r.scale, r.scaleErr = i.scalePath(ctx, r.GroupVersionKind, r.Target) // the error stops a rollback only
		u, err := r.plan(ctx, find, eligible)
		if !errors.Is(err, history.ErrStale) {
			return u, err
		}
		stale = &ChangedError{Parent: object.ParentOf(r.Kind, r.Parent), Err: err}
		if parent, err = i.again(ctx, r.Kind, r.Parent); err != nil {
			return nil, err
		}
	}
	return nil, stale
}

func (r *Log) plan(ctx context.Context, find Find, eligible func(*Log) (func(Entry) bool, error)) (*Undo, error) {
	h := r.History()
	same := func(e Entry) (bool, error) { return r.same(ctx, e) }
	var to *Entry
	var err error
	switch {
	case find != nil:
		to, err = r.chosen(h, find, same)
	case eligible != nil:
		to, err = r.lastGood(h, eligible, same)
	case r.unknown(h):
		err = &UnknownSpecError{Parent: h.Parent, Why: r.warnings}
	default:
		to, err = previous(h, same)
	}
	if err != nil {
		return nil, err
	}
	if to.stored.Left != nil {
		return nil, &EarlierReleaseError{Parent: h.Parent, Entry: *to, Err: to.stored.Left}
	}
	u := &Undo{Parent: h.Parent, From: h.Current(), To: *to, mask: r.mask, log: r}
	u.kind, u.live = r.beside(to)
	if err := u.aim(u.live); err != nil {
		return nil, err
	}
	u.Warnings = slices.Concat(cautions(u), r.warnings)
	if find == nil && eligible == nil {
		u.Warnings = append(u.Warnings, passedOver(u.To, h)...)
	}
	return u, nil
}

// converted warns where the undo is written in another version than the one in which the object was asked for: the API
// server drops what that version has not.
func (i *Inspector) converted(u *Undo, parent client.Object) []string {
	asked, err := i.client.GroupVersionKindFor(parent)
	if in := u.kind.Is().GroupVersion(); err == nil && asked.GroupVersion() != in {
		return []string{fmt.Sprintf("%s was recorded in %s, and is written in it: what only other versions have may be lost.",
			object.Capital(u.To.String()), in)}
	}
	return nil
}

// beside returns the kind and the parent in the version in which an entry was recorded. e may be nil.
func (r *Log) beside(e *Entry) (object.Kind, client.Object) {
	if e != nil && e.stored.Kind != nil {
		return e.stored.Kind, e.stored.Parent
	}
	return r.Kind, r.Parent
}

// unknown reports whether a revision may be the spec's although none compares equal to it: the API server did not say
// or, of a kind of others, its controller has seen the spec.
func (r *Log) unknown(h *History) bool {
	return h.Current() == nil && (r.refused || r.Foreign && object.Observed(r.Parent))
}

// only returns the history of the entries that pass a test.
func (h *History) only(test func(Entry) bool) *History {
	out := *h
	out.Entries = slices.DeleteFunc(slices.Clone(h.Entries), func(e Entry) bool { return !test(e) })
	return &out
}

// aim makes the patch and its description for the parent as read in live.
func (u *Undo) aim(live client.Object) error {
	snapshot, err := u.wanted(live)
	if err != nil {
		return err
	}
	if u.rollback != nil {
		if onDeadline(live) != u.asked {
			return &ChangedError{Parent: u.Parent}
		}
		if snapshot, err = u.scaleKept(snapshot, live); err != nil {
			return err
		}
	}
	u.live = live
	if u.Patch, err = snapshot.RestorePatch(live); err != nil {
		return fmt.Errorf("plan to bring %s back to %s: %w", u.Parent, u.To, err)
	}
	restored, err := snapshot.Restore(live)
	if err != nil {
		return fmt.Errorf("plan to bring %s back to %s: %w", u.Parent, u.To, err)
	}
	if u.Patch, err = u.annotated(u.Patch, live, restored); err != nil {
		return err
	}
	before, after, err := u.documents(restored)
	if err != nil {
		return err
	}
	u.added = nil
	for _, c := range u.mask.Changes(before, after) {
		if c.Before == "" {
			u.added = append(u.added, c.Path)
		}
	}
	if u.needs, err = content.AddedNeeds(before, after); err != nil {
		return err
	}
	u.Diff, u.Privileges, err = u.compare(before, after, u.To.String())
	return err
}

// annotated adds annotations of the parent to a patch: the record of client-side apply, the note of a rollback, and the
// cause of the revision to go back to. kubectl does the last as well, because the controller would copy the cause of
// the revision that the parent leaves.
func (u *Undo) annotated(patch []byte, live client.Object, restored map[string]any) ([]byte, error) {
	values := map[string]string{}
	applied, warning, err := lastApplied(live, u.kind.Is().GroupVersion(), restored, u.scale())
	if err != nil {
		return nil, fmt.Errorf("follow the last applied manifest of %s: %w", u.Parent, err)
	}
	u.unfollowed = warning
	if applied != "" {
		values[corev1.LastAppliedConfigAnnotation] = applied
	}
	if u.kind.Is().Copied {
		values[ChangeCauseAnnotation] = u.To.ChangeCause
	}
	if u.rollback != nil {
		noted, err := json.Marshal(u.note())
		if err != nil {
			return nil, err
		}
		values[rollback.NoteAnnotation] = string(noted)
	}
	return withAnnotations(patch, live, values)
}

// wanted returns what is to be restored: the revision as a whole. Where the controller of a kind of others has filled
// in what the live object has not, that is what differs between the revision and that of the spec: else its defaults,
// and what it adds for itself, would be written into the spec.
func (u *Undo) wanted(live client.Object) (*revision.Snapshot, error) {
	to := u.To.stored
	if u.log == nil || !u.log.Foreign || u.From == nil || u.From.stored.Snapshot == nil || u.From.stored.Kind != to.Kind {
		return to.Snapshot, nil
	}
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return nil, fmt.Errorf("convert %T: %w", live, err)
	}
	now, err := to.Target.Snapshot(tree)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", u.Parent, err)
	}
	hashes := make([]string, 0, len(u.log.Revisions))
	for _, r := range u.log.Revisions {
		hashes = append(hashes, r.Hash)
	}
	merged, err := content.Merge(now, u.From.stored.Snapshot, to.Snapshot, hashes)
	if err != nil {
		return nil, fmt.Errorf("plan to bring %s back to %s: %w", u.Parent, u.To, err)
	}
	return to.Target.Snapshot(merged)
}

// documents returns the recorded part of the live parent and of another state of it. Only the fields of the revision
// count.
func (u *Undo) documents(other any) (before, after []byte, err error) {
	before, errBefore := content.Recorded(u.To.stored.Target, u.live)
	after, errAfter := content.Recorded(u.To.stored.Target, other)
	if err := errors.Join(errBefore, errAfter); err != nil {
		return nil, nil, fmt.Errorf("compare two states of %s: %w", u.Parent, err)
	}
	return before, after, nil
}

// compare returns the diff and the added privileges between two states of the parent.
func (u *Undo) compare(before, after []byte, title string) (diff string, privileges []string, err error) {
	if privileges, err = content.AddedPrivileges(before, after); err != nil {
		return "", nil, err
	}
	diff, err = u.mask.Unified(u.Parent.String()+" now", before, title, after)
	return diff, privileges, err
}

// previous finds the newest revision that is not equivalent to the spec, and that somebody may want who does not name
// it ([History.unwanted]): going back to one that is equivalent would change nothing, and the user would believe that
// it did. same says whether an entry is.
func previous(h *History, same func(Entry) (bool, error)) (*Entry, error) {
	var found, unnumbered []Entry
	for _, e := range slices.Backward(h.Entries) {
		if e.Deleting || e.Current || h.unwanted(e) != "" {
			continue
		}
		if len(found) > 0 && e.Number != found[0].Number {
			break
		}
		equal, err := same(e)
		if err != nil {
			return nil, err
		}
		switch {
		case equal:
		case e.Number > 0:
			found = append(found, e)
		default:
			unnumbered = append(unnumbered, e)
		}
	}
	if len(found) > 0 {
		return one(h, found)
	}
	return one(h, unnumbered)
}

// one returns the only one of entries. Which of several with one number, or without one, is the newest cannot be known.
func one(h *History, entries []Entry) (*Entry, error) {
	switch len(entries) {
	case 0:
		return nil, &NothingToUndoError{Parent: h.Parent, PassedOver: passedOver(Entry{}, h)}
	case 1:
		return &entries[0], nil
	default:
		return nil, &AmbiguousError{Parent: h.Parent, Number: entries[0].Number, Same: entries}
	}
}

// chosen finds the revision that the user asked for, and makes sure that going back to it changes something.
func (r *Log) chosen(h *History, find Find, same func(Entry) (bool, error)) (*Entry, error) {
	e, err := find(h)
	if err != nil {
		return nil, err
	}
	if e.Unreadable != nil {
		return nil, &UnreadableError{Parent: h.Parent, Entry: e}
	}
	equal := e.Current
	if !equal {
		if equal, err = same(e); err != nil {
			return nil, err
		}
	}
	if equal {
		return nil, &NothingToUndoError{Parent: h.Parent, To: &e, Part: r.Part}
	}
	return &e, nil
}

// same reports whether the content of e is what the parent asks for, by the same rules by which a controller decides.
func (r *Log) same(ctx context.Context, e Entry) (bool, error) {
	if r.Resolution.Update != nil {
		isDuplicate := func(d revision.Duplicate) bool {
			return d.Revision.UID == e.UID && d.Of.UID == r.Resolution.Update.UID
		}
		if slices.ContainsFunc(r.Resolution.Duplicates, isDuplicate) {
			return true, nil
		}
	}
	// A stamp was already compared with those of the whole log; alone it proves nothing.
	alone := e.stored.Revision
	alone.Stamp, alone.Deleting = revision.Stamp{}, false
	v, err := r.resolve(ctx, e.stored.Target, []revision.Revision{alone})
	if err != nil {
		return false, err
	}
	return v.Update != nil, nil
}
