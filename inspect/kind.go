package inspect

import (
	"context"
	"fmt"

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

// kind is a kind whose parents have a log. One is made for each question, with the client that asks.
type kind interface {
	is() identity
	// blank returns an empty parent to read into.
	blank() client.Object
	// convert returns parent, which has the version of the kind, in the type of blank.
	convert(parent client.Object) (client.Object, error)
	// list returns the revisions that parent owns, oldest first.
	list(ctx context.Context, parent client.Object) ([]kept, error)
	// resolve asks which of revisions has what parent has in the fields of target. doubts are sentences about what could
	// not be read. Errors: [history.ErrStale] if parent has to be read again.
	resolve(ctx context.Context, parent client.Object, target *revision.Target, revisions []revision.Revision) (
		found *revision.Resolution, doubts []string, err error)
	// count returns how many children belong to each of log, and how many to none.
	count(ctx context.Context, parent client.Object, log []kept) (counts []int, strays int, err error)
	// members returns the children of parent, including those that a revision lists and that do not exist.
	members(ctx context.Context, parent client.Object, log []kept) (*members, error)
}

// identity is what a kind is called, and what its log is made of.
type identity struct {
	// GroupVersionKind is that of the parents.
	schema.GroupVersionKind

	// controller is the CompositeController that runs the parents, empty for kinds that have a controller of their own.
	controller string
	// objects is the kind of the revision objects.
	objects schema.GroupKind
	// child and children are the noun for its children in sentences, singular and plural: "pod", "pods".
	child, children string
	// part is what of a parent is recorded, for sentences, and target is the same for functions.
	part   string
	target *revision.Target
	// runs is true if children are not replaced when the parent goes to another revision.
	runs bool
	// unrecorded says why the parents have no revisions, empty if they have.
	unrecorded string
}

// kept is one revision object.
type kept struct {
	revision.Revision

	object client.Object
	// target is the part of the parent that it holds.
	target *revision.Target
	// doubt is a sentence about why the object may not come from a controller, empty if there is no such reason.
	doubt string
	// unverified is a sentence about why that cannot be found out, empty if it can.
	unverified string
	// left says that it holds what its controller does not version any more; nil if it does.
	left error
}

// members are the children of one parent.
type members struct {
	children []member
	// held are sentences about children that the update strategy keeps as they are.
	held []string
	// doubts are sentences about what could not be read.
	doubts []string
}

// member is one child.
type member struct {
	metacontroller.Child

	// object is nil for a child that belongs to a revision and does not exist.
	object *unstructured.Unstructured
	// of is the index of the revision that the child belongs to, -1 if there is none.
	of int
	// rolled is true for a kind whose children belong to revisions.
	rolled bool
	// ready is when the child is available.
	ready readiness.Rule
}

// kinds returns the logs that objects of a kind have, the likeliest first; there is at least one. parent is nil if the
// object was not read yet. Errors: [*UnknownKindError], or what the API server says.
func (i *Inspector) kinds(ctx context.Context, gk schema.GroupKind, parent client.Object) ([]kind, error) {
	if format, ok := history.FormatOf(gk); ok {
		return []kind{newBuiltin(i.client, format)}, nil
	}
	if found, err := i.conventional(ctx, parent); err != nil || found != nil {
		return []kind{found}, err
	}
	found, parents, err := i.composites(ctx, gk, parent)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, i.unknown(gk, parent, parents)
	}
	return found, nil
}

// as returns a copy of parent in the type and the version in which k reads it: the caller may change the object without
// changing the plan. Another version has other fields, so the API server converts.
func (i *Inspector) as(ctx context.Context, k kind, gvk schema.GroupVersionKind, parent client.Object) (client.Object, error) {
	if gvk != k.is().GroupVersionKind {
		return i.get(ctx, k, client.ObjectKeyFromObject(parent))
	}
	out, err := k.convert(parent)
	if err != nil {
		return nil, fmt.Errorf("read %s %s/%s as its type: %w", gvk.Kind, parent.GetNamespace(), parent.GetName(), err)
	}
	return out.DeepCopyObject().(client.Object), nil //nolint:forcetypeassert // a copy is what it is a copy of
}

func (i *Inspector) get(ctx context.Context, k kind, key client.ObjectKey) (client.Object, error) {
	parent := k.blank()
	if err := i.client.Get(ctx, key, parent); err != nil {
		return nil, err
	}
	return parent, nil
}

// revisions returns log without the objects around it.
func revisions(log []kept) []revision.Revision {
	out := make([]revision.Revision, 0, len(log))
	for _, s := range log {
		out = append(out, s.Revision)
	}
	return out
}
