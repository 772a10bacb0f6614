package inspect

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/revision"
)

// This file plans the undo that nobody asks for by hand: that of a rollout which has exceeded its deadline. It is an
// undo like others, and stricter: it is for a machine to carry out at night.

// Failure is a rollout that has exceeded its deadline.
type Failure struct {
	// Revision is the name of the revision that it goes to, Reason why it has failed, in one clause.
	Revision, Reason string
	// Available is how many children of that revision were available at once, at most.
	Available int
	// Complete is the name of a revision to which a rollout was complete, whatever others note ([Entry.Completed]).
	Complete string
	// Anyway goes back although somebody else will take that back.
	Anyway bool
	// Now is the time.
	Now time.Time
}

// NotRolledBackError says why a failed rollout is not undone: there is nothing to go back to, or nobody may decide that
// but a user. Nothing was changed. The caller tells the user, and asks again when the parent was edited.
type NotRolledBackError struct {
	// Why is a clause.
	Why string
	// Err is what was found, nil if Why says it all.
	Err error
}

// Error says why.
func (e *NotRolledBackError) Error() string {
	if e.Err == nil {
		return e.Why
	}
	return fmt.Sprintf("%s: %v", e.Why, e.Err)
}

// Unwrap returns what was found.
func (e *NotRolledBackError) Unwrap() error { return e.Err }

// PlanRollback plans to bring parent back from a revision whose rollout has failed to the last one to which a rollout
// is known to have been complete ([Entry.Completed]). The scale stays as it is, also where it is part of a revision.
// What happened is noted on the parent, in the same request: see [history.RolledBackAnnotation].
//
// Errors: a [*NotRolledBackError]; a [*ChangedError] if the parent is not what the failure is about any more, or more
// children are available (look again); or what the API server says.
func (i *Inspector) PlanRollback(ctx context.Context, parent client.Object, f Failure) (*Undo, error) {
	fresh, err := i.Refresh(ctx, parent)
	if err != nil {
		return nil, err
	}
	if fresh.GetGeneration() != parent.GetGeneration() || onDeadline(fresh) != onDeadline(parent) {
		return nil, &ChangedError{}
	}
	u, err := i.plan(ctx, fresh, f.target, nil)
	if err != nil {
		return nil, f.unable(err)
	}
	if doubt, unverified := u.To.Origin(); doubt != "" || unverified != "" { // a user may force it, who has seen the diff
		return nil, &NotRolledBackError{Why: cmp.Or(doubt, unverified)}
	}
	if by := takenBack(u); by != "" && !f.Anyway {
		return nil, &NotRolledBackError{Why: by + " (annotation " + history.OnDeadlineAnnotation + ": undo-anyway goes back all the same)"}
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

func onDeadline(o client.Object) string { return o.GetAnnotations()[history.OnDeadlineAnnotation] }

// target finds the last revision that was complete. One that cannot be restored is not passed over: what is older may
// be much older.
func (f *Failure) target(h *History) (Entry, error) {
	if current := h.Current(); current == nil || current.Name != f.Revision {
		return Entry{}, &ChangedError{Parent: h.Parent}
	}
	for _, e := range slices.Backward(h.Entries) {
		switch {
		case !e.Completed && e.Name != f.Complete || e.Current:
		case e.Deleting:
			return Entry{}, &NotRolledBackError{Why: fmt.Sprintf("%s, the last that was complete, is being deleted", e)}
		default:
			return e, nil // chosen says so if it cannot be read
		}
	}
	return Entry{}, &NotRolledBackError{Why: "no rollout before it is known to have been complete"}
}

// unable sorts out which errors of a plan are an answer.
func (f *Failure) unable(err error) error {
	var (
		not        *NotRolledBackError
		changed    *ChangedError
		unreadable *UnreadableError
		nothing    *NothingToUndoError
		earlier    *EarlierReleaseError
		elsewhere  *ElsewhereError
	)
	switch {
	case errors.As(err, &not), errors.As(err, &changed):
		return err
	case errors.As(err, &unreadable), errors.As(err, &nothing), errors.As(err, &earlier), errors.As(err, &elsewhere):
		return &NotRolledBackError{Why: "the last revision that was complete cannot be restored", Err: err}
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
func (u *Undo) stillStuck(ctx context.Context, f Failure) error {
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

// rolledBack is what is noted on the parent.
func (u *Undo) rolledBack() (string, error) {
	out, err := json.Marshal(history.RolledBack{
		From: u.From.Name, FromRevision: u.From.Number, To: u.To.Name, ToRevision: u.To.Number,
		Generation: u.live.GetGeneration() + 1, At: u.rollback.Now.UTC().Truncate(time.Second), Reason: u.rollback.Reason,
	})
	return string(out), err
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
