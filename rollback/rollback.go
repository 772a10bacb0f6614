// Package rollback undoes rollouts that have exceeded their progress deadline: the glue between package pass, which
// knows when, and package inspect, which knows what an undo is. Give [Undo] to a controller:
//
//	pass.Config{…, Undo: rollback.Undo}
//	builder.Controller[*v1.Fleet]{…, Undo: rollback.Undo}
//
// Then a parent with the annotation cairn.dev/on-deadline: undo is brought back. docs/rollback.md says when it is not.
//
// What may not come in: a decision. When is that of package pass, where to and whether that of package inspect.
package rollback

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/inspect"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

// Undo is a [pass.Undo]: it brings the parent back to the last revision to which a rollout was complete, as "cairn
// undo" would. It needs what the controller may do anyway: get and patch on parents, list on revisions and children.
func Undo(ctx context.Context, f pass.Failure) (did string, err error) {
	i := inspect.New(direct{f.Client, f.Live})
	parent, err := untyped(f.Client, f.Parent)
	var plan *inspect.Undo
	if err == nil {
		plan, err = i.PlanRollback(ctx, parent, inspect.Failure{
			Revision: f.Revision, Reason: f.Reason, Available: f.Available, Complete: f.Complete, Anyway: f.Anyway, Now: f.Now,
		})
	}
	var done *inspect.Applied
	if err == nil {
		done, err = i.Apply(ctx, plan, false)
	}
	var (
		not     *inspect.NotRolledBackError
		changed *inspect.ChangedError
		nothing *inspect.NothingToUndoError
	)
	switch {
	case err == nil && history.RolledBackOf(done.Parent) == nil:
		return "", &pass.NotUndoneError{Why: "admission has removed what is noted of a rollback: annotation " + history.RolledBackAnnotation}
	case err == nil:
		return history.RolledBackOf(done.Parent).String(), nil
	case errors.As(err, &not):
		return "", &pass.NotUndoneError{Why: not.Error()}
	case errors.As(err, &nothing): // admission has put back what it changed
		return "", &pass.NotUndoneError{Why: nothing.Error()}
	case errors.As(err, &changed), errors.Is(err, history.ErrStale):
		return "", fmt.Errorf("%w: %w", ownership.ErrStale, err)
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return "", &pass.NotUndoneError{Why: pass.FirstLine(err)}
	default:
		return "", fmt.Errorf("undo a rollout that has failed: %w", err)
	}
}

// untyped is a parent of a kind that package inspect has no Go type of, as far as it is not read anew.
func untyped(c client.Client, parent client.Object) (client.Object, error) {
	gvk, err := c.GroupVersionKindFor(parent)
	if err != nil {
		return nil, err
	}
	if _, known := history.FormatOf(gvk.GroupKind()); known {
		return parent, nil
	}
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(gvk)
	out.SetNamespace(parent.GetNamespace())
	out.SetName(parent.GetName())
	out.SetUID(parent.GetUID())
	out.SetGeneration(parent.GetGeneration())
	out.SetAnnotations(parent.GetAnnotations())
	return out, nil
}

// direct writes through a client, and reads past its cache.
type direct struct {
	client.Client

	live client.Reader
}

// Get implements [client.Reader].
func (d direct) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return d.live.Get(ctx, key, o, opts...)
}

// List implements [client.Reader].
func (d direct) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return d.live.List(ctx, list, opts...)
}
