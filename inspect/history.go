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
	"github.com/cairn-dev/cairn/revision"
)

// This file reads the log of one parent as a user wants to see it. How entries are made of it is in entries.go.

// ChangeCauseAnnotation says, by kubectl's convention, why the parent was changed. Controllers copy it to the revision.
const ChangeCauseAnnotation = "kubernetes.io/change-cause"

// UnknownCount stands for a number of children that could not be counted.
const UnknownCount = -1

// History is the revision log of one parent.
type History struct {
	Parent Parent
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
	// Doubt is a sentence about why the object may not come from a controller, empty if there is no such reason: then it
	// is intact.
	Doubt string
	// Unverified is a sentence about why it cannot be found out whether the object comes from a controller, empty if it
	// can, and for the revision that is current: it holds what the spec has in any case.
	Unverified string
	// Completed says that a rollout to this revision is known to have been complete once ([history.CompletedAnnotation]).
	Completed bool
	// By is the field manager that made the edit which this revision records, and At when that was, as far as its
	// controller noted it ([history.RecordedByAnnotation]).
	By string
	At time.Time
	// Changes are what differs from the revision before, in words and with secrets masked: of the first one, and where one
	// of the two cannot be read, none.
	Changes []Change

	stored kept
	mask   masker
}

// String returns the entry as sentences name it: revision 3 (web-7c9d).
func (e Entry) String() string { return entryName(e.Number, e.Name) }

func entryName(number int64, name string) string {
	if number == 0 {
		return "the unnumbered revision " + name
	}
	return fmt.Sprintf("revision %d (%s)", number, name)
}

// Content returns the recorded part of the parent as JSON, for instance {"spec":{"template":{…}}}, without the
// directives under which it is stored, and with secrets masked: see [Inspector.ShowSecrets]. The error is
// [Entry.Unreadable].
func (e Entry) Content() ([]byte, error) {
	out, err := e.content()
	if err != nil {
		return nil, err
	}
	return e.mask.one(out)
}

func (e Entry) content() ([]byte, error) {
	if e.Unreadable != nil {
		return nil, e.Unreadable
	}
	return content(e.stored.Snapshot)
}

// History returns the revisions of parent, oldest first. Nothing is stored or changed; where only the API server can
// tell whether a revision is equivalent to the spec, it is asked by a dry run, and a refusal becomes a warning.
//
// Errors: [*UnknownKindError], [*ChangedError] if parent keeps changing while it is read (ask again), or what the API
// server says.
func (i *Inspector) History(ctx context.Context, parent client.Object) (*History, error) {
	r, err := i.read(ctx, parent)
	if err != nil {
		return nil, err
	}
	r.counts, r.strays, r.childrenErr = r.kind.count(ctx, r.parent, r.log)
	return r.history(), ctx.Err()
}

// reading is all that was read of one parent at one moment.
type reading struct {
	identity

	kind     kind
	parent   client.Object
	log      []kept
	verdict  *revision.Resolution // nil if it could not be made; then lost says why
	lost     error
	warnings []string
	mask     masker

	// counts are the numbers of children of each of log, nil if they were not counted.
	counts      []int
	strays      int
	childrenErr error
}

// maxReads bounds how often a parent is read again that changes meanwhile. During a rollout the status of a parent
// changes several times a second.
const maxReads = 8

// read reads parent's log. Where several controllers could keep one, it is the first that has revisions.
func (i *Inspector) read(ctx context.Context, parent client.Object) (*reading, error) {
	gvk, err := i.client.GroupVersionKindFor(parent)
	if err != nil {
		return nil, fmt.Errorf("tell the kind of %T %s/%s: %w", parent, parent.GetNamespace(), parent.GetName(), err)
	}
	kinds, err := i.kinds(ctx, gvk.GroupKind(), parent)
	if err != nil {
		return nil, err
	}
	first, err := i.readAs(ctx, kinds[0], gvk, parent)
	if err != nil || len(first.log) > 0 && len(kinds) == 1 {
		return first, err
	}
	if first.controller == "" {
		// Objects of such a kind can be the parents of a CompositeController too. A user who may not list
		// CompositeControllers gets the built-in log only.
		more, _, err := i.composites(ctx, gvk.GroupKind(), parent)
		if err == nil {
			kinds = append(kinds, more...)
		}
	}
	return i.choose(ctx, first, kinds, gvk, parent)
}

// choose returns the first reading that has revisions, or first.
func (i *Inspector) choose(
	ctx context.Context, first *reading, kinds []kind, gvk schema.GroupVersionKind, parent client.Object,
) (*reading, error) {
	var names []string
	for _, k := range kinds {
		if name := k.is().controller; name != "" {
			names = append(names, name)
		}
	}
	chosen := first
	for _, k := range kinds[1:] {
		if len(chosen.log) > 0 {
			break
		}
		next, err := i.readAs(ctx, k, gvk, parent)
		if err != nil {
			return nil, err
		}
		if len(next.log) > 0 {
			chosen = next
		}
	}
	if len(names) > 1 {
		chosen.warnf("Several CompositeControllers have %s as parents: %s. This is the history that %s keeps.",
			kindName(gvk.GroupKind()), strings.Join(names, ", "), chosen.controller)
	}
	return chosen, nil
}

// readAs reads parent's log as one of its kinds. It starts again from a newer read of parent when the log says that
// this one is outdated.
func (i *Inspector) readAs(ctx context.Context, k kind, gvk schema.GroupVersionKind, parent client.Object) (*reading, error) {
	parent, err := i.as(ctx, k, gvk, parent)
	if err != nil {
		return nil, err
	}
	for range maxReads {
		r := &reading{identity: k.is(), kind: k, parent: parent, mask: masker{whole: secret(gvk.GroupKind()), off: i.reveal}}
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
	return nil, &ChangedError{Parent: parentOf(k, parent), Err: err}
}

// again reads parent anew and makes sure that it is still the same object.
func (i *Inspector) again(ctx context.Context, k kind, parent client.Object) (client.Object, error) {
	fresh, err := i.get(ctx, k, client.ObjectKeyFromObject(parent))
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err != nil || fresh.GetUID() != parent.GetUID() {
		return nil, &ChangedError{Parent: parentOf(k, parent), Gone: true, Err: err}
	}
	return fresh, nil
}

// read fills in the log, and which of its revisions the parent asks for.
func (r *reading) read(ctx context.Context) error {
	var err error
	if r.log, err = r.kind.list(ctx, r.parent); err != nil {
		return err
	}
	r.verdict, r.lost = r.resolve(ctx, r.target, revisions(r.log))
	if errors.Is(r.lost, history.ErrStale) {
		return r.lost
	}
	return ctx.Err()
}

// resolve asks which of revisions has what the parent has in the fields of target. What could not be found out becomes
// a warning.
func (r *reading) resolve(ctx context.Context, target *revision.Target, revisions []revision.Revision) (*revision.Resolution, error) {
	found, doubts, err := r.kind.resolve(ctx, r.parent, target, revisions)
	for _, doubt := range doubts {
		r.warnf("%s", doubt)
	}
	return found, err
}

func (r *reading) warnf(format string, args ...any) {
	if w := fmt.Sprintf(format, args...); !slices.Contains(r.warnings, w) {
		r.warnings = append(r.warnings, w)
	}
}

// parentOf returns the name that parent has in sentences.
func parentOf(k kind, parent client.Object) Parent {
	return Parent{GroupVersionKind: k.is().GroupVersionKind, Namespace: parent.GetNamespace(), Name: parent.GetName(), UID: parent.GetUID()}
}
