package history

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/anyobject"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/revision"
)

// This file decides: which stored revision the parent asks for. Package revision does it; this file fetches what that
// package cannot know.

// Verdict is what the log needs, and what it was decided from.
type Verdict struct {
	*revision.Resolution
	// Snapshot is the parent's target object state, and Entries are the revisions that it was compared with.
	Snapshot *revision.Snapshot
	Entries  []revision.Revision
	// Unasked are the revisions that [Options.Asks] left out.
	Unasked []revision.Revision
	// Refused holds the API server's errors where it refused a dry run under rule E3. A revision without a stamp of this
	// very generation then counts as different; the caller reports that, for instance in an event.
	Refused []error
	// Noted are annotations for the revision that is recorded: see [CompletedRevisionsAnnotation].
	Noted map[string]string
}

// heldBy reports whether a revision holds what the parent asks for.
func (v *Verdict) heldBy(r revision.Revision) bool {
	return r.Snapshot != nil && revision.Compare(v.Snapshot, r.Snapshot) != revision.RuleNone
}

// ErrStale says that what was read, the parent or its log, is older than what the API server has. The caller drops the
// pass and reads again; its cache will catch up. It is [ownership.ErrStale] under another name.
var ErrStale = ownership.ErrStale

// Resolve finds the revision that is equivalent to parent among entries, as returned by [Log.Claim]. It writes nothing.
//
// Errors:
//   - [ErrStale]: parent is an old read.
//   - [*revision.NumberError]: a new revision is needed, and an existing one was given the highest possible number. It
//     says which, and what to do. The verdict comes with the error: Update is nil, and Snapshot, Undecodable, Refused,
//     Relabel and Duplicates are valid. The caller does not call [Log.Record], reports it on the parent (an event, and
//     the history is not healthy), and goes on with what needs no new revision: lost children are recreated from the
//     revision that they had, the status is written, and the number of children follows the spec. Nothing is updated,
//     no revision is truncated, and no retry is needed: an edit or the deletion of that revision enqueues the parent.
//   - an API error: the server could not be asked (retry).
//   - anything else: the parent is broken; the message says how, and somebody has to edit the parent.
//
// Only with a NumberError is there a verdict beside an error. A verdict without an error may have Full set: the
// revision that the parent asks for exists, but cannot get a higher number than the others. It is Update, and the
// caller goes on as usual; it reports that on the parent as well, because the next edit will find no number.
func (l *Log) Resolve(ctx context.Context, parent client.Object, entries []revision.Revision) (*Verdict, error) {
	snapshot, err := l.snapshot(parent)
	if err != nil {
		return nil, err
	}
	v := &Verdict{Snapshot: snapshot, Entries: entries}
	facts := revision.ParentState{
		UID: parent.GetUID(), Generation: parent.GetGeneration(), Snapshot: snapshot, Generational: l.tracksGeneration(parent),
	}
	answers, asked, ask := l.answersFor(parent), 0, l.opts.AskServer
	for {
		if v.Resolution, err = revision.Resolve(facts, entries, answers.of(entries), ask); err != nil {
			return v, fmt.Errorf("the log of %s: %w", l.describe(parent), err)
		}
		switch v.Change {
		case revision.Stale:
			if err := l.confirmParent(ctx, parent); err != nil {
				return nil, fmt.Errorf("%w (%s)", err, v.Reason)
			}
			facts.Uncached = true
		case revision.Ask:
			if asked++; l.opts.Asks > 0 && asked > l.opts.Asks {
				v.Unasked, ask = v.Ask, false
				continue
			}
			equal, err := l.ask(ctx, parent, snapshot, v.Ask[0])
			if _, ok := errors.AsType[*refusedError](err); ok {
				v.Refused = append(v.Refused, err)
				// Without an answer a stamp is the best evidence there is: a webhook that refuses dry runs must not restart every
				// pod after an upgrade. Where edits are not counted, all stamps are the same, and prove nothing.
				equal = l.tracksGeneration(parent) && v.Ask[0].Stamp == v.Stamp
			} else if err != nil {
				return nil, err
			}
			answers.put(v.Ask[0], equal)
		case revision.NoChange, revision.Rollback, revision.RollForward:
			v.Noted = noted(parent, v)
			return v, nil
		}
	}
}

// refusedError says that the API server would not carry out a dry run.
type refusedError struct {
	revision string
	err      error
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("the API server refuses to restore revision %s: %v", e.revision, e.err)
}

func (e *refusedError) Unwrap() error { return e.err }

// ask is rule E3: would restoring r change the parent? The server fills in its defaults and drops what it no longer
// knows, on both sides, and raises generation only for a remaining difference. Where edits are not counted, what is
// versioned of its answer is compared instead. Nothing is stored.
func (l *Log) ask(ctx context.Context, parent client.Object, snapshot *revision.Snapshot, r revision.Revision) (bool, error) {
	patch, err := r.Snapshot.RestorePatch(parent)
	if err != nil {
		return false, fmt.Errorf("ask whether revision %s equals its parent: %w", r.Name, err)
	}
	out := anyobject.Blank(parent)
	err = l.opts.Client.Patch(ctx, out, client.RawPatch(types.JSONPatchType, patch), client.DryRunAll)
	switch {
	case apierrors.IsConflict(err):
		return false, fmt.Errorf("%w: it changed while the API server was asked about revision %s", ErrStale, r.Name)
	case apierrors.IsBadRequest(err), apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		return false, &refusedError{revision: r.Name, err: err}
	case err != nil:
		return false, fmt.Errorf("ask whether revision %s equals its parent: %w", r.Name, err)
	}
	if out.GetUID() != parent.GetUID() || l.tracksGeneration(parent) {
		return out.GetUID() == parent.GetUID() && out.GetGeneration() == parent.GetGeneration(), nil
	}
	restored, err := l.Snapshot(out)
	if err != nil {
		return false, fmt.Errorf("ask whether revision %s equals its parent: %w", r.Name, err)
	}
	return revision.Compare(snapshot, restored) != revision.RuleNone, nil
}

// answerBook holds the server's answers for one state of a parent.
type answerBook struct {
	state state
	equal map[answerKey]bool
}

// bookKey is the key of a book in the cache.
type bookKey struct {
	target *revision.Target
	parent types.UID
}

type answerKey struct {
	uid     types.UID
	version string
}

// answersFor returns the answers that are still valid for parent. There is only one pass over a parent at a time, so
// the book itself needs no lock.
func (l *Log) answersFor(parent client.Object) *answerBook {
	const size = 2048 // of a book with an answer about each revision of an ordinary log
	at := bookKey{l.Target(), parent.GetUID()}
	if b, ok := l.opts.Cache.Get(at); ok {
		if book := b.(*answerBook); book.state == l.state(parent) {
			return book
		}
	}
	book := &answerBook{state: l.state(parent), equal: map[answerKey]bool{}}
	l.opts.Cache.Add(parent.GetUID(), at, book, size)
	return book
}

func (b *answerBook) put(r revision.Revision, equal bool) {
	b.equal[answerKey{r.UID, r.ResourceVersion}] = equal
}

func (b *answerBook) of(entries []revision.Revision) revision.Answers {
	out := revision.Answers{}
	for _, r := range entries {
		if equal, ok := b.equal[answerKey{r.UID, r.ResourceVersion}]; ok {
			out[r.UID] = equal
		}
	}
	return out
}

// Genuine reports whether the name of a stored revision follows from what it holds, as that of each that a controller
// has made does: see [Apps.Genuine]. It is false where that cannot be said or read, and true for formats whose names
// say nothing.
func (l *Log) Genuine(ctx context.Context, parent client.Object, r revision.Revision) bool {
	apps, ok := l.Format.(*Apps)
	if !ok {
		return true
	}
	stored := &appsv1.ControllerRevision{}
	if err := l.opts.Lists.Get(ctx, client.ObjectKey{Namespace: parent.GetNamespace(), Name: r.Name}, stored); err != nil {
		return false
	}
	genuine, _ := apps.Genuine(parent, stored)
	return genuine
}
