package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/revision"
)

// This file reads the log of one parent as a person wants to see it. What to make of what was read is in entries.go.

// ChangeCauseAnnotation holds, by kubectl's habit, why somebody changed the parent. Controllers copy it to the revision.
const ChangeCauseAnnotation = "kubernetes.io/change-cause"

// UnknownCount stands for a number of children that could not be counted.
const UnknownCount = -1

// History is the revision log of one parent.
type History struct {
	Parent Parent
	// Entries are the stored revisions, oldest first: by number, ties by name.
	Entries []Entry
	// Warnings are sentences about what is unusual in this log. They go to whoever looks at it.
	Warnings []string
}

// Entry is one stored revision.
type Entry struct {
	// Number rises strictly with each change, and moves when the parent goes back to this revision.
	Number int64
	// Name and UID identify the ControllerRevision, Hash is the label value by which children point at it.
	Name string
	UID  types.UID
	Hash string
	// Created is when the object was made. It plays no part in the order.
	Created time.Time
	// ChangeCause is the text of [ChangeCauseAnnotation], often empty.
	ChangeCause string
	// Current is true for the one revision that is equivalent to the parent's spec now, whatever its number is.
	Current bool
	// Children is how many objects made from this revision exist, terminating ones included, or [UnknownCount].
	Children int
	// Deleting is true for a revision that has a deletion timestamp.
	Deleting bool
	// Unreadable says why the content cannot be read, nil if it can.
	Unreadable error

	revision revision.Revision
}

// String returns the entry as sentences name it: revision 3 (web-7c9d).
func (e Entry) String() string { return fmt.Sprintf("revision %d (%s)", e.Number, e.Name) }

// Content returns the recorded part of the parent as JSON, for instance {"spec":{"template":{…}}}, without the
// directives under which it is stored. The error is [Entry.Unreadable].
func (e Entry) Content() ([]byte, error) {
	if e.Unreadable != nil {
		return nil, e.Unreadable
	}
	return content(e.revision.Snapshot)
}

// History returns the revisions of parent, oldest first. Nothing is stored or changed; where only the API server can
// tell whether a revision is equivalent to the spec, it is asked by a dry run, and a refusal becomes a warning.
//
// Errors: [*UnknownKindError], [*ChangedError] if parent keeps changing under our eyes (ask again), or what the API
// server says.
func (i *Inspector) History(ctx context.Context, parent client.Object) (*History, error) {
	r, err := i.read(ctx, parent)
	if err != nil {
		return nil, err
	}
	return r.history(), nil
}

// reading is all that was read of one parent at one moment.
type reading struct {
	format    history.Format
	parent    client.Object
	revisions []revision.Revision
	objects   map[types.UID]metav1.Object
	verdict   *history.Verdict // nil if there is none; then lost says why
	lost      error
	warnings  []string

	children    []metav1.PartialObjectMetadata
	childrenErr error

	ask, quiet *history.Log
}

// maxReads bounds how often a parent is read again that changes while it is looked at. The status of a parent that rolls
// out changes several times a second.
const maxReads = 8

// read reads parent's log and children. It starts again from a newer read of parent when the log says that this one is
// outdated.
func (i *Inspector) read(ctx context.Context, parent client.Object) (*reading, error) {
	format, parent, err := i.typed(ctx, parent)
	if err != nil {
		return nil, err
	}
	uid := parent.GetUID()
	for range maxReads {
		var r *reading
		if r, err = i.readOnce(ctx, format, parent); err == nil {
			return r, nil
		}
		if !errors.Is(err, history.ErrStale) {
			return nil, err
		}
		fresh, again := i.again(ctx, format, parent, uid)
		if again != nil {
			return nil, again
		}
		parent = fresh
	}
	return nil, &ChangedError{Parent: parentOf(format, parent), Err: err}
}

// again reads parent anew and makes sure that it is still the same object.
func (i *Inspector) again(ctx context.Context, format history.Format, parent client.Object, uid types.UID) (client.Object, error) {
	fresh, err := i.Get(ctx, format.Parent.GroupKind(), parent.GetNamespace(), parent.GetName())
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err != nil || fresh.GetUID() != uid {
		return nil, &ChangedError{Parent: parentOf(format, parent), Gone: true, Err: err}
	}
	return fresh, nil
}

func (i *Inspector) readOnce(ctx context.Context, format history.Format, parent client.Object) (*reading, error) {
	r := &reading{format: format, parent: parent}
	seen := &lister{Client: i.client}
	r.ask = history.New(format, history.Options{Client: seen, AskServer: true})
	r.quiet = history.New(format, history.Options{Client: seen})
	var err error
	if r.revisions, err = r.ask.List(ctx, parent); err != nil {
		return nil, err
	}
	r.objects = seen.objects
	r.verdict, r.lost = r.resolve(ctx, r.revisions)
	if errors.Is(r.lost, history.ErrStale) {
		return nil, r.lost
	}
	r.children, r.childrenErr = i.list(ctx, format, parent)
	return r, ctx.Err()
}

// resolve asks which of revisions is equivalent to the parent. The API server is asked as well, because it is the only
// authority on defaults; if it cannot answer, what cannot be told apart counts as different, and a warning says so.
func (r *reading) resolve(ctx context.Context, revisions []revision.Revision) (*history.Verdict, error) {
	v, err := r.ask.Resolve(ctx, r.parent, revisions)
	if err != nil && !errors.Is(err, history.ErrStale) && ctx.Err() == nil {
		asked := err
		if v, err = r.quiet.Resolve(ctx, r.parent, revisions); err == nil {
			r.warnf("The API server could not be asked which revision is the spec's: %v.", asked)
		}
	}
	if err != nil {
		return nil, err
	}
	for _, refused := range v.Refused {
		r.warnf("Whether a revision is the spec's could not be found out: %v.", refused)
	}
	return v, nil
}

func (r *reading) warnf(format string, args ...any) {
	if w := fmt.Sprintf(format, args...); !slices.Contains(r.warnings, w) {
		r.warnings = append(r.warnings, w)
	}
}

// list returns the metadata of the children of parent. Their content plays no part, and there may be thousands.
func (i *Inspector) list(ctx context.Context, format history.Format, parent client.Object) ([]metav1.PartialObjectMetadata, error) {
	selector, err := format.Selector(parent)
	if err != nil {
		return nil, err
	}
	var found metav1.PartialObjectMetadataList
	gvk := format.Children
	gvk.Kind += "List"
	found.SetGroupVersionKind(gvk)
	err = i.client.List(ctx, &found, client.InNamespace(parent.GetNamespace()), client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found.Items, func(o metav1.PartialObjectMetadata) bool {
		ref := metav1.GetControllerOfNoCopy(&o)
		return ref == nil || ref.UID != parent.GetUID()
	}), nil
}

// lister remembers the revision objects that a log reads through it: a log returns what the algorithms need, and a
// person wants to see dates and annotations as well, from the same read.
type lister struct {
	client.Client

	objects map[types.UID]metav1.Object
}

// List lists through the client below.
func (l *lister) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := l.Client.List(ctx, list, opts...); err != nil {
		return err
	}
	if found, ok := list.(*appsv1.ControllerRevisionList); ok {
		l.objects = make(map[types.UID]metav1.Object, len(found.Items))
		for n := range found.Items {
			l.objects[found.Items[n].UID] = &found.Items[n]
		}
	}
	return nil
}

// parentOf returns the name that parent has in sentences.
func parentOf(format history.Format, parent client.Object) Parent {
	return Parent{GroupVersionKind: format.Parent, Namespace: parent.GetNamespace(), Name: parent.GetName(), UID: parent.GetUID()}
}
