package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/inspect/content"
	"github.com/cairn-dev/cairn/inspect/object"
	"github.com/cairn-dev/cairn/revision"
)

// This file reads the log of one parent as a user wants to see it. How entries are made of it is in entries.go.

// ChangeCauseAnnotation says, by kubectl's convention, why the parent was changed. Controllers copy it to the revision.
const ChangeCauseAnnotation = "kubernetes.io/change-cause"

// UnknownCount stands for a number of children that could not be counted.
const UnknownCount = -1

// History is the revision log of one parent.
type History struct {
	Parent object.Parent
	// Controller is the CompositeController that runs the parent, empty for kinds that have a controller of their own.
	Controller string
	// Stored is the kind of the objects that hold the revisions.
	Stored schema.GroupKind
	// Children is what the objects are called that are made from a revision, as in "5 pods". It is empty where the
	// revisions do not say what is made from them; then children are not counted.
	Children string
	// Entries are the stored revisions, oldest first: by number, ties by name. Those without a number come first.
	Entries []Entry
	// Warnings are sentences about what is unusual in this log. They are for the user.
	Warnings []string
}

// Entry is one stored revision.
type Entry struct {
	// Number rises strictly with each change, and moves when the parent goes back to this revision. It is 0 for a revision
	// that Metacontroller wrote.
	Number int64
	// Name and UID identify the ControllerRevision, Hash is the label value by which children point at it.
	Name string
	UID  types.UID
	Hash string
	// Created is when the object was made. It plays no part in the order.
	Created time.Time
	// ChangeCause is the text of [ChangeCauseAnnotation], often empty. For the current revision that of the parent counts
	// if the revision has none, unless it is that of another revision.
	ChangeCause string
	// Current is true for the one revision that is equivalent to the parent's spec now, whatever its number is.
	Current bool
	// Children is how many objects belong to this revision, terminating ones included, or [UnknownCount].
	Children int
	// Deleting is true for a revision that has a deletion timestamp.
	Deleting bool
	// Unreadable says why the content cannot be read, nil if it can.
	Unreadable error
	// Good says that the status names it as one of the last two good revisions: see [rollback.Good]. Completed says that,
	// or that another revision notes it ([history.CompletedRevisionsAnnotation]): a user may have written that.
	Good, Completed bool
	// Failed says why the rollout to this revision failed, where it is the last one that did: see [rollback.Progress].
	// Empty otherwise.
	Failed string
	// Was is the number that the revision had before the parent went back to it, 0 if it did not or that is not known.
	Was int64
	// Since is when it got its number, as far as that is known: when it was made, or the parent went back to it.
	// [Inspector.History] fills it in.
	Since time.Time
	// By is the field manager that made the edit which this revision records, and At when that was, as far as its
	// controller noted it ([history.RecordedByAnnotation]); of the current revision otherwise who wrote it last.
	By string
	At time.Time
	// Changes are what differs from the revision before, in words and with secrets masked: of the first one, and where one
	// of the two cannot be read, none. [Inspector.History] fills them in.
	Changes []content.Change

	stored object.Stored
	mask   content.Masker
}

// String returns the entry as sentences name it: revision 3 (web-7c9d).
func (e Entry) String() string { return object.RevisionName(e.Number, e.Name) }

// Origin returns a sentence about why the object may not come from a controller, empty if there is no such reason: then
// it is intact. unverified is one about why that cannot be found out, empty if it can, and for the revision that is
// current: it holds what the spec has in any case.
func (e Entry) Origin() (doubt, unverified string) {
	if e.stored.Origin == nil {
		return "", ""
	}
	if doubt, unverified = e.stored.Origin(); e.Current {
		unverified = ""
	}
	return doubt, unverified
}

// Content returns the recorded part of the parent as JSON, for instance {"spec":{"template":{…}}}, without the
// directives under which it is stored, and with secrets masked: see [Inspector.ShowSecrets]. The error is
// [Entry.Unreadable].
func (e Entry) Content() ([]byte, error) {
	out, err := e.content()
	if err != nil {
		return nil, err
	}
	return e.mask.One(out)
}

func (e Entry) content() ([]byte, error) {
	if e.Unreadable != nil {
		return nil, e.Unreadable
	}
	return content.JSON(e.stored.Snapshot)
}

// History returns the revisions of parent, oldest first. Nothing is stored or changed; where only the API server can
// tell whether a revision is equivalent to the spec, it is asked by a dry run, and a refusal becomes a warning.
//
// Errors: [*object.UnknownKindError], [*ChangedError] if parent keeps changing while it is read (ask again), or what
// the API server says.
func (i *Inspector) History(ctx context.Context, parent client.Object) (*History, error) {
	r, err := i.Read(ctx, parent)
	if err != nil {
		return nil, err
	}
	r.Count(ctx)
	h := r.History()
	h.date(r.Parent)
	h.compareEach()
	return h, ctx.Err()
}

// Log is all that was read of one parent at one moment: what [History] is made of, for those who need more of it.
type Log struct {
	object.Identity

	// Kind is the sort of history that the parent has.
	Kind   object.Kind
	Parent client.Object
	// Revisions are oldest first.
	Revisions []object.Stored
	// Resolution says which revision the parent asks for. It is nil if that could not be found out; then Lost says why.
	Resolution *revision.Resolution
	Lost       error
	// Counts are how many children each revision has, nil if they were not counted, and ChildrenErr why not. Strays is how
	// many belong to no revision.
	Counts      []int
	Strays      int
	ChildrenErr error

	// scale is the field that holds the parent's scale, nil if it was not looked for, and scaleErr why it is not known.
	scale    revision.Path
	scaleErr error

	warnings []string
	// refused says that whether a revision is the spec's could not be found out: no answer is no difference.
	refused bool
	mask    content.Masker
}

// Count counts the children of each revision.
func (r *Log) Count(ctx context.Context) {
	r.Counts, r.Strays, r.ChildrenErr = r.Kind.Count(ctx, r.Parent, r.Revisions)
}

// CountMembers is [Log.Count] where the children were read.
func (r *Log) CountMembers(m *object.Members) {
	r.Counts = make([]int, len(r.Revisions))
	for _, child := range m.Children {
		if child.Of >= 0 {
			r.Counts[child.Of]++
		}
	}
}

// maxReads bounds how often a parent is read again that changes meanwhile. During a rollout the status of a parent
// changes several times a second.
const maxReads = 8

// Read reads parent's log. Where several controllers could keep one, it is the first that has revisions. If the API
// server no longer serves a version that the discovery cache has, Read asks for its versions once more.
func (i *Inspector) Read(ctx context.Context, parent client.Object) (*Log, error) {
	return object.Fresh(i.client.RESTMapper(), func() (*Log, error) { return i.read(ctx, parent) })
}

func (i *Inspector) read(ctx context.Context, parent client.Object) (*Log, error) {
	gvk, err := i.client.GroupVersionKindFor(parent)
	if err != nil {
		return nil, fmt.Errorf("tell the kind of %T %s/%s: %w", parent, parent.GetNamespace(), parent.GetName(), err)
	}
	kinds, err := object.KindsOf(ctx, i.client, gvk.GroupKind(), parent)
	if err != nil {
		return nil, err
	}
	first, err := i.readAs(ctx, kinds[0], gvk, parent)
	if err != nil || len(first.Revisions) > 0 && len(kinds) == 1 {
		return first, err
	}
	if first.Controller == "" {
		// Objects of such a kind can be the parents of a CompositeController too. A user who may not list
		// CompositeControllers gets the built-in log only.
		more, _, err := object.Composites(ctx, i.client, gvk.GroupKind(), parent)
		if err == nil {
			kinds = append(kinds, more...)
		}
	}
	return i.choose(ctx, first, kinds, gvk, parent)
}

// choose returns the first reading that has revisions, or first.
func (i *Inspector) choose(
	ctx context.Context, first *Log, kinds []object.Kind, gvk schema.GroupVersionKind, parent client.Object,
) (*Log, error) {
	var names []string
	for _, k := range kinds {
		if name := k.Is().Controller; name != "" {
			names = append(names, name)
		}
	}
	chosen := first
	for _, k := range kinds[1:] {
		if len(chosen.Revisions) > 0 {
			break
		}
		next, err := i.readAs(ctx, k, gvk, parent)
		if err != nil {
			return nil, err
		}
		if len(next.Revisions) > 0 {
			chosen = next
		}
	}
	if len(names) > 1 {
		chosen.warnf("Several CompositeControllers have %s as parents: %s. This is the history that %s keeps.",
			object.KindName(gvk.GroupKind()), strings.Join(names, ", "), chosen.Controller)
	}
	return chosen, nil
}

// readAs reads parent's log as one of its kinds. It starts again from a newer read of parent when the log says that
// this one is outdated.
func (i *Inspector) readAs(ctx context.Context, k object.Kind, gvk schema.GroupVersionKind, parent client.Object) (*Log, error) {
	parent, err := object.As(ctx, i.client, k, gvk, parent)
	if err != nil {
		return nil, err
	}
	for range maxReads {
		r := &Log{Identity: k.Is(), Kind: k, Parent: parent, mask: content.Masker{Whole: content.Secret(gvk.GroupKind()), Off: i.reveal}}
		if err = r.read(ctx); err == nil {
			return r, nil
		}
		if !errors.Is(err, history.ErrStale) {
			return nil, err
		}
		fresh, again := i.again(ctx, k, parent)
		if again != nil {
			return nil, again
		}
		parent = fresh
	}
	return nil, &ChangedError{Parent: object.ParentOf(k, parent), Err: err}
}

// again reads parent anew and makes sure that it is still the same object.
func (i *Inspector) again(ctx context.Context, k object.Kind, parent client.Object) (client.Object, error) {
	fresh, err := object.Get(ctx, i.client, k, client.ObjectKeyFromObject(parent))
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err != nil || fresh.GetUID() != parent.GetUID() {
		return nil, &ChangedError{Parent: object.ParentOf(k, parent), Gone: true, Err: err}
	}
	return fresh, nil
}

// read fills in the log, and which of its revisions the parent asks for.
func (r *Log) read(ctx context.Context) error {
	var err error
	if r.Revisions, err = r.Kind.List(ctx, r.Parent); err != nil {
		return err
	}
	r.Resolution, r.Lost = r.resolve(ctx, r.Target, object.Revisions(r.Revisions))
	if errors.Is(r.Lost, history.ErrStale) {
		return r.Lost
	}
	return ctx.Err()
}

// resolve asks which of revisions has what the parent has in the fields of target. What could not be found out becomes
// a warning.
func (r *Log) resolve(ctx context.Context, target *revision.Target, revisions []revision.Revision) (*revision.Resolution, error) {
	found, warnings, err := r.Kind.Resolve(ctx, r.Parent, target, revisions)
	for _, warning := range warnings {
		r.warnf("%s", warning)
		r.refused = true
	}
	return found, err
}

func (r *Log) warnf(format string, args ...any) {
	if w := fmt.Sprintf(format, args...); !slices.Contains(r.warnings, w) {
		r.warnings = append(r.warnings, w)
	}
}
