package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/revision"
	"github.com/cairn-dev/cairn/rollback"
)

// This file carries out automatic rollbacks of rollouts that have exceeded their progress deadline. A rollback is an
// undo with stricter checks, because no user confirms it.

// RollBack rolls parent back from a failed revision, as "cairn undo" would, and returns a clause about what it did. It
// is the option RollBack of a controller built with package builder. c writes; live reads from the API server, not from
// a cache. It needs permissions that the controller has: get and patch on parents, list on revisions and children.
//
// Errors: those of [Inspector.PlanRollback] and [Inspector.Apply]; an error that wraps [ownership.ErrStale] if the
// parent has changed since the failure. With an error nothing was changed, unless a response was lost.
func RollBack(ctx context.Context, c client.Client, live client.Reader, parent client.Object, f rollback.Failure) (did string, err error) {
	i := New(direct{c, live})
	if parent, err = untyped(c, parent); err != nil {
		return "", err
	}
	plan, err := i.PlanRollback(ctx, parent, f)
	var done *Applied
	if err == nil {
		done, err = i.Apply(ctx, plan, false)
	}
	var (
		changed *ChangedError
		nothing *NothingToUndoError
		planted *PlantedError
	)
	switch {
	case err == nil:
		did := plan.note().String()
		if rollback.NoteOf(done.Parent) == nil {
			did += "; admission has removed annotation " + rollback.NoteAnnotation + ", which records it"
		}
		return did, nil
	case errors.As(err, &nothing), errors.As(err, &planted): // admission has put back what it changed
		return "", &rollback.RefusedError{Why: err.Error()}
	case errors.As(err, &changed), errors.Is(err, history.ErrStale):
		return "", fmt.Errorf("%w: %w", ownership.ErrStale, err)
	default:
		return "", fmt.Errorf("roll a failed rollout back: %w", err)
	}
}

// PlanRollback plans the rollback of parent from a failed revision to f.To. It leaves the scale unchanged, even if the
// scale is part of the revision. The same request records the rollback on the parent: see [rollback.NoteAnnotation].
//
// Errors: a [*rollback.RefusedError]; a [*ChangedError] if the parent has changed since the failure, or more children
// are available (plan again); or an error of the API server.
func (i *Inspector) PlanRollback(ctx context.Context, parent client.Object, f rollback.Failure) (*Undo, error) {
	fresh, err := i.Refresh(ctx, parent)
	if err != nil {
		return nil, err
	}
	if fresh.GetGeneration() != parent.GetGeneration() || onDeadline(fresh) != onDeadline(parent) {
		return nil, &ChangedError{}
	}
	u, err := i.plan(ctx, fresh, targetOf(f), nil)
	if err != nil {
		return nil, unable(err)
	}
	if doubt, unverified := u.To.Origin(); doubt != "" || unverified != "" { // a user who has seen the diff may force it
		return nil, &rollback.RefusedError{Why: cmp.Or(doubt, unverified)}
	}
	if by := takenBack(u); by != "" && !f.Anyway {
		return nil, &rollback.RefusedError{Why: by + " (annotation " + rollback.OnDeadlineAnnotation + "=undo-anyway rolls it back nevertheless)"}
	}
	if err := u.stillStuck(ctx, f); err != nil {
		return nil, err
	}
	if u.log.scaleErr != nil {
		return nil, u.log.scaleErr
	}
	u.rollback = &f
	u.asked = onDeadline(u.live)
	if err := u.aim(u.live); err != nil {
		return nil, err
	}
	return u, nil
}

func onDeadline(o client.Object) string { return o.GetAnnotations()[rollback.OnDeadlineAnnotation] }

// targetOf finds the revision to roll back to. It does not fall back to an older revision if that one cannot be
// restored.
func targetOf(f rollback.Failure) Find {
	return func(h *History) (Entry, error) {
		if current := h.Current(); current == nil || current.Name != f.Revision {
			return Entry{}, &ChangedError{Parent: h.Parent}
		}
		i := slices.IndexFunc(h.Entries, func(e Entry) bool { return e.UID == f.To.UID && e.Name == f.To.Name })
		switch {
		case i < 0:
			return Entry{}, &rollback.RefusedError{Why: fmt.Sprintf("revision %s, the last good one, no longer exists", f.To.Name)}
		case h.Entries[i].Deleting:
			return Entry{}, &rollback.RefusedError{Why: fmt.Sprintf("%s, the last good one, is being deleted", h.Entries[i])}
		default:
			return h.Entries[i], nil // chosen reports one that cannot be read
		}
	}
}

// unable turns the errors of a plan that are final into a [*rollback.RefusedError].
func unable(err error) error {
	var (
		refused    *rollback.RefusedError
		changed    *ChangedError
		unreadable *UnreadableError
		nothing    *NothingToUndoError
		earlier    *EarlierReleaseError
		elsewhere  *ElsewhereError
	)
	switch {
	case errors.As(err, &refused), errors.As(err, &changed):
		return err
	case errors.As(err, &unreadable), errors.As(err, &nothing), errors.As(err, &earlier), errors.As(err, &elsewhere):
		return &rollback.RefusedError{Why: "the last good revision cannot be restored", Err: err}
	default:
		return err
	}
}

// tools are the names of tools that apply manifests from a repository or a chart, by their field managers. Not every
// object has the marks of its tool: Argo CD's mark may be a label that has other uses.
var tools = map[string]string{
	"argocd-controller": "Argo CD", "argocd-application-controller": "Argo CD", "kustomize-controller": "Flux", "helm-controller": "Flux",
	"helm": "Helm",
}

// takenBack returns a clause about the tool or controller that would revert a rollback, empty if none is known. kubectl
// apply does not count: a user runs it, and sees the result.
func takenBack(u *Undo) string {
	for _, k := range keepers {
		if mark := k.mark(u.live); mark != "" {
			return fmt.Sprintf("it belongs to %s %q, which would revert a rollback", k.tool, mark)
		}
	}
	for _, m := range u.live.GetManagedFields() {
		if tool := tools[m.Manager]; tool != "" && m.Subresource == "" {
			return fmt.Sprintf("%s applies it, as %q, and would revert a rollback", tool, m.Manager)
		}
	}
	if ref := metav1.GetControllerOfNoCopy(u.live); ref != nil {
		return fmt.Sprintf("it is controlled by %s %s, which would revert a rollback", ref.Kind, ref.Name)
	}
	return ""
}

// stillStuck counts the available children without a cache, so that a rollout that has just made progress is not
// undone.
func (u *Undo) stillStuck(ctx context.Context, f rollback.Failure) error {
	m, err := u.log.Kind.Members(ctx, u.log.Parent, u.log.Revisions)
	if err != nil {
		return fmt.Errorf("find the %s of %s: %w", u.log.Children, u.Parent, err)
	}
	available := 0
	for _, child := range m.Children {
		if child.Of >= 0 && u.log.Revisions[child.Of].Name == f.Revision && child.Available(0, f.Now) {
			available++
		}
	}
	if available > f.Available {
		return &ChangedError{Parent: u.Parent}
	}
	return nil
}

// note is the record of the rollback, for the parent.
func (u *Undo) note() *rollback.Note {
	return &rollback.Note{
		Parent: u.live.GetUID(), From: u.From.Name, FromRevision: u.From.Number, To: u.To.Name, ToRevision: u.To.Number,
		At: u.rollback.Now.UTC().Truncate(time.Second), Reason: u.rollback.Reason,
	}
}

// scaleKept returns a snapshot with the scale of live, which an autoscaler may have set.
func (u *Undo) scaleKept(snapshot *revision.Snapshot, live client.Object) (*revision.Snapshot, error) {
	restored, err := snapshot.Restore(live)
	if err != nil {
		return nil, fmt.Errorf("plan to bring %s back to %s: %w", u.Parent, u.To, err)
	}
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return nil, fmt.Errorf("convert %T: %w", live, err)
	}
	path := u.scale()
	if field(tree, path) == field(restored, path) {
		return snapshot, nil
	}
	if now, found, _ := unstructured.NestedFieldCopy(tree, path...); found {
		err = unstructured.SetNestedField(restored, now, path...)
	} else {
		unstructured.RemoveNestedField(restored, path...)
	}
	if err != nil {
		return nil, fmt.Errorf("keep the scale of %s: %w", u.Parent, err)
	}
	return u.To.stored.Target.Snapshot(restored)
}

// untyped converts a parent of a kind that package inspect has no Go type for. It copies only the fields that are
// needed until the parent is read again.
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

// direct writes through a client, and reads from the API server.
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
