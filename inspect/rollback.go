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

// This file carries out the undo that nobody asks for by hand: that of a rollout which has exceeded its progress
// deadline. It is an undo like others, and stricter: it is for a machine to carry out at night.

// RollBack brings parent back from a revision whose rollout has failed, as "cairn undo" would, and returns what it did
// in one clause. It is for a controller that is built with package builder: give it as its RollBack. c writes, live
// reads past every cache. It needs what the controller may do anyway: get and patch on parents, list on revisions and
// children.
//
// Errors: those of [Inspector.PlanRollback], and those of [Inspector.Apply] as the API server says them (retry); one
// that wraps [ownership.ErrStale] if the parent is not what the failure is about any more. Nothing was changed then,
// unless a response was lost.
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
			did += "; admission has removed the note of it, annotation " + rollback.NoteAnnotation
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

// PlanRollback plans to bring parent back from a revision whose rollout has failed to f.To. The scale stays as it is,
// also where it is part of a revision. What happened is noted on the parent, in the same request: see
// [rollback.NoteAnnotation].
//
// Errors: a [*rollback.RefusedError]; a [*ChangedError] if the parent is not what the failure is about any more, or
// more children are available (look again); or what the API server says.
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
	if doubt, unverified := u.To.Origin(); doubt != "" || unverified != "" { // a user may force it, who has seen the diff
		return nil, &rollback.RefusedError{Why: cmp.Or(doubt, unverified)}
	}
	if by := takenBack(u); by != "" && !f.Anyway {
		return nil, &rollback.RefusedError{Why: by + " (annotation " + rollback.OnDeadlineAnnotation + ": undo-anyway goes back all the same)"}
	}
	if err := u.stillStuck(ctx, f); err != nil {
		return nil, err
	}
	u.rollback = &f
	u.asked = onDeadline(u.live)
	if err := u.aim(u.live); err != nil {
		return nil, err
	}
	return u, nil
}

func onDeadline(o client.Object) string { return o.GetAnnotations()[rollback.OnDeadlineAnnotation] }

// targetOf finds the revision to go back to. One that cannot be restored is not passed over: what is older may be much
// older.
func targetOf(f rollback.Failure) Find {
	return func(h *History) (Entry, error) {
		if current := h.Current(); current == nil || current.Name != f.Revision {
			return Entry{}, &ChangedError{Parent: h.Parent}
		}
		i := slices.IndexFunc(h.Entries, func(e Entry) bool { return e.UID == f.To.UID && e.Name == f.To.Name })
		switch {
		case i < 0:
			return Entry{}, &rollback.RefusedError{Why: fmt.Sprintf("revision %s, the last that is known to have worked, is gone", f.To.Name)}
		case h.Entries[i].Deleting:
			return Entry{}, &rollback.RefusedError{Why: fmt.Sprintf("%s, the last that is known to have worked, is being deleted", h.Entries[i])}
		default:
			return h.Entries[i], nil // chosen says so if it cannot be read
		}
	}
}

// unable sorts out which errors of a plan are an answer.
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
		return &rollback.RefusedError{Why: "the last revision that is known to have worked cannot be restored", Err: err}
	default:
		return err
	}
}

// tools are those that apply what a repository or a chart says, by the names under which they write. Their marks are
// not on every object: Argo CD's may be a label that others have as well.
var tools = map[string]string{
	"argocd-controller": "Argo CD", "argocd-application-controller": "Argo CD", "kustomize-controller": "Flux", "helm-controller": "Flux",
	"helm": "Helm",
}

// takenBack says who keeps the parent as something else says, empty if nobody is known. A user who applies a manifest
// by hand looks first; a tool does not.
func takenBack(u *Undo) string {
	for _, k := range keepers {
		if mark := k.mark(u.live); mark != "" {
			return fmt.Sprintf("it belongs to %s %q, which would take that back", k.tool, mark)
		}
	}
	for _, m := range u.live.GetManagedFields() {
		if tool := tools[m.Manager]; tool != "" && m.Subresource == "" {
			return fmt.Sprintf("%s applies it, as %q, and would take that back", tool, m.Manager)
		}
	}
	if ref := metav1.GetControllerOfNoCopy(u.live); ref != nil {
		return fmt.Sprintf("it is controlled by %s %s, which would take that back", ref.Kind, ref.Name)
	}
	return ""
}

// stillStuck looks at the children past every cache: nothing is undone that has just got on.
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

// note is what is noted on the parent.
func (u *Undo) note() *rollback.Note {
	return &rollback.Note{
		From: u.From.Name, FromRevision: u.From.Number, To: u.To.Name, ToRevision: u.To.Number,
		At: u.rollback.Now.UTC().Truncate(time.Second), Reason: u.rollback.Reason,
	}
}

// scaleKept is what a snapshot restores in live, with the scale that live has: an autoscaler may have set it.
func (u *Undo) scaleKept(snapshot *revision.Snapshot, live client.Object) (*revision.Snapshot, error) {
	restored, err := snapshot.Restore(live)
	if err != nil {
		return nil, fmt.Errorf("plan to bring %s back to %s: %w", u.Parent, u.To, err)
	}
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return nil, fmt.Errorf("convert %T: %w", live, err)
	}
	if field(tree, "replicas") == field(restored, "replicas") {
		return snapshot, nil
	}
	if now, found, _ := unstructured.NestedFieldCopy(tree, "spec", "replicas"); found {
		err = unstructured.SetNestedField(restored, now, "spec", "replicas")
	} else {
		unstructured.RemoveNestedField(restored, "spec", "replicas")
	}
	if err != nil {
		return nil, fmt.Errorf("keep the scale of %s: %w", u.Parent, err)
	}
	return u.To.stored.Target.Snapshot(restored)
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
