package object

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/history/metacontroller"
	"github.com/cairn-dev/cairn/internal/readiness"
	"github.com/cairn-dev/cairn/revision"
)

// This file says what a kind with a log is, and finds the one of an object. Kinds differ nowhere else; builtin.go,
// replicasets.go and composite.go are the three sorts there are, and convention.go finds out which of the first two an
// unknown kind is of.

// Kind is a kind whose parents have a log. One is made for each question, with the client that asks.
type Kind interface {
	Is() Identity
	// blank returns an empty parent to read into.
	Blank() client.Object
	// convert returns parent, which has the version of the kind, in the type of blank.
	Convert(parent client.Object) (client.Object, error)
	// list returns the revisions that parent owns, oldest first.
	List(ctx context.Context, parent client.Object) ([]Stored, error)
	// resolve asks which of revisions has what parent has in the fields of target. warnings are sentences about what could
	// not be read. Errors: [history.ErrStale] if parent has to be read again.
	Resolve(ctx context.Context, parent client.Object, target *revision.Target, revisions []revision.Revision) (
		found *revision.Resolution, warnings []string, err error)
	// count returns how many children belong to each of log, and how many to none.
	Count(ctx context.Context, parent client.Object, log []Stored) (counts []int, unowned int, err error)
	// members returns the children of parent, including those that a revision lists and that do not exist.
	Members(ctx context.Context, parent client.Object, log []Stored) (*Members, error)
}

// Identity is what a kind is called, and what its log is made of.
type Identity struct {
	// GroupVersionKind is that of the parents.
	schema.GroupVersionKind

	// controller is the CompositeController that runs the parents, empty for kinds that have a controller of their own.
	Controller string
	// objects is the kind of the revision objects.
	Objects schema.GroupKind
	// child and children are the noun for its children in sentences, singular and plural: "pod", "pods".
	Child, Children string
	// part is what of a parent is recorded, for sentences, and target is the same for functions.
	Part   string
	Target *revision.Target
	// runs is true if children are not replaced when the parent goes to another revision.
	Runs bool
	// Copied is true if the controller copies the annotations of the parent to its current revision, all the time.
	Copied bool
	// Foreign is true for a kind that others define, and of which no more is known than its objects show.
	Foreign bool
	// unrecorded says why the parents have no revisions, empty if they have.
	Unrecorded string
}

// Stored is one revision object.
type Stored struct {
	revision.Revision

	Object client.Object
	// Target is the part of the parent that it holds.
	Target *revision.Target
	// Origin returns a sentence about why the object may not come from a controller, empty if there is no such reason, and
	// one about why that cannot be found out. It hashes what is stored, the first time.
	Origin func() (doubt, unverified string)
	// Kind and Parent are the kind and the parent in the version in which it was recorded, nil if that is the log's own.
	Kind   Kind
	Parent client.Object
	// Left says that it holds what its controller does not version any more; nil if it does.
	Left error
}

// Members are the children of one parent.
type Members struct {
	Children []Member
	// Held are sentences about children that the update strategy keeps as they are.
	Held []string
	// Doubts are sentences about what could not be read.
	Doubts []string
}

// Member is one child.
type Member struct {
	metacontroller.Child

	// object is nil for a child that belongs to a revision and does not exist.
	Object *unstructured.Unstructured
	// of is the index of the revision that the child belongs to, -1 if there is none.
	Of int
	// rolled is true for a kind whose children belong to revisions.
	Rolled bool
	// ready is when the child is available.
	Ready readiness.Rule
}

// Available reports whether the child exists, is not terminating, and has passed its checks for at least so long.
func (m Member) Available(atLeast time.Duration, now time.Time) bool {
	if m.Object == nil || m.Object.GetDeletionTimestamp() != nil {
		return false
	}
	rule := m.Ready
	rule.MinReady = max(rule.MinReady, atLeast)
	return rule.Of(m.Object, time.Time{}, now).Available()
}

// KindsOf returns the logs that objects of a kind have, the likeliest first; there is at least one. parent is nil if
// the object was not read yet. Errors: [*UnknownKindError], or what the API server says.
func KindsOf(ctx context.Context, c client.Client, gk schema.GroupKind, parent client.Object) ([]Kind, error) {
	if format, ok := history.FormatOf(gk); ok {
		return []Kind{newBuiltin(c, format)}, nil
	}
	one, hidden := conventional(ctx, c, parent)
	if one != nil || hidden != nil && !apierrors.IsForbidden(hidden) {
		return []Kind{one}, hidden
	}
	found, parents, err := Composites(ctx, c, gk, parent)
	switch {
	case apierrors.IsForbidden(err):
		hidden = errors.Join(hidden, err)
	case err != nil:
		return nil, err
	case len(found) > 0:
		return found, nil
	}
	return nil, unknown(gk, parent, parents, hidden)
}

// As returns a copy of parent in the type and the version in which k reads it: the caller may change the object without
// changing the plan. Another version has other fields, so the API server converts.
func As(ctx context.Context, c client.Client, k Kind, gvk schema.GroupVersionKind, parent client.Object) (client.Object, error) {
	if gvk != k.Is().GroupVersionKind {
		return Get(ctx, c, k, client.ObjectKeyFromObject(parent))
	}
	out, err := k.Convert(parent)
	if err != nil {
		return nil, fmt.Errorf("read %s %s/%s as its type: %w", gvk.Kind, parent.GetNamespace(), parent.GetName(), err)
	}
	return out.DeepCopyObject().(client.Object), nil
}

// Get reads the object of that name in the type of k. Errors: what the API server says.
func Get(ctx context.Context, c client.Client, k Kind, key client.ObjectKey) (client.Object, error) {
	parent := k.Blank()
	if err := c.Get(ctx, key, parent); err != nil {
		return nil, err
	}
	return parent, nil
}

// Revisions returns log without the objects around it.
func Revisions(log []Stored) []revision.Revision {
	out := make([]revision.Revision, 0, len(log))
	for _, s := range log {
		out = append(out, s.Revision)
	}
	return out
}
