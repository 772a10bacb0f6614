package children

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/anyobject"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

// This file checks whether the name of a child to be created is taken. Such a child waits, and does not stop the
// others: pass.SlowStart would stop at it. The check costs no request if the reader is a cache.

// collectRetry is how often a name is checked that a child has which the garbage collector has to delete. It may be a
// child that enqueues nothing.
const collectRetry = time.Second

// TakenError says that an object which is left alone has the name of a child. Show it on the parent, and requeue after
// Again: another writer has to act, and a growing delay would only be later.
type TakenError struct {
	Again time.Duration
	text  string
}

// Error says who has the name, and what to do.
func (e *TakenError) Error() string { return e.text }

// OnlyTaken returns err as a *[TakenError] if it is nothing else. What is joined with another error is retried as that
// one is.
func OnlyTaken(err error) (*TakenError, bool) {
	e, ok := err.(*TakenError) //nolint:errorlint // see above
	return e, ok
}

// Names are those of the children of one parent.
type Names struct {
	// Parent is the object as it was read.
	Parent *unstructured.Unstructured
	// Ours reports whether an object that Parent controls is a child.
	Ours func(found client.Object) bool
	// Describe names a child for users.
	Describe func(child *unstructured.Unstructured) string
	// Orphan says why an orphan is no child.
	Orphan string
}

// Check returns nil if no object in reader has the name of child. It returns an *[TakenError] if there is one to be
// left alone, an error that wraps [ownership.ErrStale] if it is a child that a newer read would show, or a terminating
// one, and any other error if it could not be read (retry).
func (n Names) Check(ctx context.Context, reader client.Reader, child *unstructured.Unstructured) error {
	found := anyobject.Blank(child)
	err := reader.Get(ctx, client.ObjectKeyFromObject(child), found)
	name := n.Describe(child)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read who has the name of %s: %w", name, err)
	case found.GetDeletionTimestamp() != nil:
		return fmt.Errorf("%w: the old %s is still terminating", ownership.ErrStale, name)
	case n.owner().Controls(found) && n.Ours(found):
		return fmt.Errorf("%w: %s is there already", ownership.ErrStale, name)
	}
	return n.stranger(found, name)
}

func (n Names) owner() ownership.Owner {
	return ownership.OwnerOf(n.Parent, n.Parent.GroupVersionKind().GroupKind())
}

func (n Names) stranger(found client.Object, name string) error {
	who, ref := "it has no controller, and "+n.Orphan, metav1.GetControllerOf(found)
	if ref != nil {
		who = fmt.Sprintf("%s %s controls it", ref.Kind, ref.Name)
	}
	if n.owner().Controls(found) {
		who += ", and this controller did not make it"
	} else if ref != nil && ref.Kind == n.Parent.GetKind() && ref.Name == n.Parent.GetName() {
		return &TakenError{collectRetry, fmt.Sprintf(
			"%s belongs to an earlier %s of this name, and the garbage collector has not deleted it yet", name, ref.Kind)}
	}
	return &TakenError{pass.TakenRetry, fmt.Sprintf(
		"%s exists already and is not ours (%s); it is left alone. Delete or rename it, or let the hook use another name", name, who)}
}

// Refused says why a creation was refused because the name of child exists: by what live, which must not be a cache,
// shows of it. The errors are those of [Names.Check], and there is always one.
func (n Names) Refused(ctx context.Context, live client.Reader, child *unstructured.Unstructured) error {
	if err := n.Check(ctx, live, child); err != nil {
		return err
	}
	return fmt.Errorf("%w: %s existed and was deleted", ownership.ErrStale, n.Describe(child))
}

// Free returns the children that can be created, and why one of the others cannot: of several reasons, one that passes
// sooner. check is that of a child: see [Names.Check].
func Free[T any](wanted []T, check func(T) error) (free []T, blocked error) {
	for _, child := range wanted {
		switch err := check(child); {
		case err == nil:
			free = append(free, child)
		case blocked == nil || errors.Is(err, ownership.ErrStale): // which passes sooner
			blocked = err
		}
	}
	return free, blocked
}
