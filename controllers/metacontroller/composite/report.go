package composite

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cairn-dev/cairn/internal/anyobject"
	"github.com/cairn-dev/cairn/internal/metacontroller/apply"
	"github.com/cairn-dev/cairn/internal/metacontroller/children"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
	"github.com/cairn-dev/cairn/internal/metacontroller/taken"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

// This file writes the status of parents, and events: what the hook said, how far the rollout is, and what went wrong. It
// writes only what differs, and once a second at most, but for a new generation and the end of a rollout.

// faultError is something that is wrong with a parent, its controller or what the hook said, and that another try alone
// will not mend.
type faultError struct {
	// Reason is one word, for the condition.
	Reason string
	Err    error
}

func (e *faultError) Error() string { return e.Err.Error() }
func (e *faultError) Unwrap() error { return e.Err }

// statusMemory is what was done about the status of a parent.
type statusMemory struct {
	// at is when it was written last.
	at time.Time
	// sent is what was written, got what the API server made of it: schemas drop what they do not know, and it must not be
	// written in every pass.
	sent, got map[string]any
	// event is the last text that an event was sent with, so that a parent that waits says so once. lost is that about
	// children whose revision is lost: what else goes wrong comes and goes beside it.
	event, lost string
}

// report stores what the hook said and how far the rollout is. It returns when to do so if it is too early now.
func (r *reconciler) report(ctx context.Context, o *observed, d *decision) (time.Duration, error) {
	rolled := r.rolls && o.log != nil || len(o.memory.sharers) > 0 && r.sharing(o.memory).rolls() && !o.ending
	status, reason, message := d.plan.condition(d.newest)
	wantedStatus := r.statusFor(o.parent, o.memory, d.answer.Status, o.parent.GetGeneration(), rolled, status, reason, message)
	var again time.Duration
	if rolled {
		again = r.announce(o, reason, message)
	}
	if !o.statusDiffers(wantedStatus) {
		return again, nil
	}
	m := &o.memory.status
	urgent := o.newGeneration() || rolled && isUpdated(wantedStatus) != updatedIs(o.parent)
	every := statusEvery
	if len(o.memory.sharers) > 0 && apply.Equal(m.sent, wantedStatus) {
		every = contestedEvery
	}
	if early := m.at.Add(every).Sub(r.Clock.Now()); early > 0 && !urgent {
		return soonest(again, early), nil // also of a hook that counts its calls, which would be called for each write
	}
	if _, err := r.writeStatus(ctx, o.parent, o.memory, wantedStatus); err != nil {
		return 0, err
	}
	if o.log != nil {
		r.reportUnreadable(o)
	}
	return again, nil
}

// statusFor returns the status that a parent is to have: see statusOf. said is the hook's part of it.
func (r *reconciler) statusFor(parent *unstructured.Unstructured, m *memory, said map[string]any, generation int64,
	rolled bool, status, reason, message string,
) map[string]any {
	if len(m.sharers) == 0 {
		return statusOf(ownStatus(parent, said, r.builtin), generation, rolled, status, reason, message)
	}
	return r.sharing(m).statusOf(parent, said, generation, rolled, status, reason, message)
}

// sharing says who has the parent.
func (r *reconciler) sharing(m *memory) sharing {
	return sharing{sharer{name: r.name, rolls: r.rolls}, m.sharers, m.decided != nil}
}

// announce sends an event when a rollout stands still, and when it is over after that. Progress, and the wait for a child
// that starts, are in the status. It returns when it is time to say that nothing has moved.
func (r *reconciler) announce(o *observed, reason, message string) time.Duration {
	m := &o.memory.status
	o.memory.warnLost()
	text := reason + message
	if reason == "RolloutProgressing" || text == m.event || reason == "OnLatestRevision" && m.event == "" {
		return 0
	}
	if reason == revisionLost {
		m.event = text
		return 0
	}
	if left := o.memory.quiet.Add(standstill).Sub(r.Clock.Now()); reason == "RolloutWaiting" && left > 0 {
		return left
	}
	if m.event = text; reason == "OnLatestRevision" {
		m.event = "" // the next rollout is not a part of this story
	}
	o.memory.pass.Normal(nil, reason, "Roll", "%s", message)
	return 0
}

// warnLost sends an event about children whose revision is lost, whatever else there is to say: nobody but a person can
// mend that.
func (m *memory) warnLost() {
	message := m.decided.plan.strandedMessage()
	if message != "" && message != m.status.lost {
		m.pass.Warn(nil, revisionLost, "Roll", "%s", message)
	}
	m.status.lost = message
}

func (r *reconciler) reportUnreadable(o *observed) {
	for _, u := range o.log.Undecodable {
		o.memory.pass.Warn(nil, "UnreadableRevision", "Resolve",
			"%v; it is kept, and nothing is made from it", u.Err)
	}
}

// newGeneration reports whether the stored status is about an older generation.
func (o *observed) newGeneration() bool {
	at, _, _ := unstructured.NestedInt64(o.parent.Object, "status", "observedGeneration")
	return at != o.parent.GetGeneration()
}

// statusDiffers reports whether the status is to be written.
func (o *observed) statusDiffers(status map[string]any) bool {
	current, _, _ := unstructured.NestedFieldNoCopy(o.parent.Object, "status")
	now, _ := current.(map[string]any)
	if apply.Equal(now, status) {
		return false
	}
	m := &o.memory.status
	return m.sent == nil || !apply.Equal(m.sent, status) || !apply.Equal(m.got, now)
}

// failed reports a pass that ended with an error, and says when to try again.
func (r *reconciler) failed(ctx context.Context, parent *unstructured.Unstructured, m *memory, failed error) (reconcile.Result, error) {
	if busy, ok := errors.AsType[*hook.TooManyRequestsError](failed); ok {
		return r.later(ctx, parent, m, busy)
	}
	if ctx.Err() != nil {
		return reconcile.Result{}, failed // we are being stopped, which is nobody's fault
	}
	reason, message := "SyncError", pass.FirstLine(failed)
	if fault, ok := errors.AsType[*faultError](failed); ok {
		reason = fault.Reason
	}
	if fault, ok := errors.AsType[*hook.Error](failed); ok {
		reason = string(fault.Reason)
	}
	if held, ok := errors.AsType[*children.HeldError](failed); ok && message == pass.FirstLine(held) {
		reason = held.Reason
	}
	if _, ok := errors.AsType[*taken.Error](failed); ok {
		reason = "ChildExists"
	}
	waits, waiting := taken.Only(failed)
	if text := reason + message; !waiting || text != m.status.event {
		m.status.event = text
		m.pass.Warn(nil, "SyncError", "Sync", "Sync error: %s", message) // repeats are counted
	}
	if r.hasNoStatus(failed) {
		return reconcile.Result{}, failed
	}
	if err := r.writeFailure(ctx, parent, m, reason, message); err != nil {
		failed, waiting = errors.Join(failed, err), false
	}
	switch {
	case unknownOwner(failed):
		return reconcile.Result{RequeueAfter: unknownOwnerRetry}, nil
	case waiting:
		log.FromContext(ctx).V(1).Info("Waiting for somebody else", "reason", message)
		return reconcile.Result{RequeueAfter: waits.Again}, nil
	}
	return reconcile.Result{}, failed
}

// unknownOwnerRetry is how long a pass waits until the API server knows the kind of the parent as an owner.
const unknownOwnerRetry = 2 * time.Second

// unknownOwner reports whether the API server lets nothing have the parent as its owner, because its admission plugin
// (OwnerReferencesPermissionEnforcement) does not know the kind yet. It looks for new kinds every half a minute; a delay that
// doubles would come to as much again. The plugin gives that no reason of its own.
func unknownOwner(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot find RESTMapping")
}

// later waits for a hook that wants to be asked later. That is no fault, but if it goes on the parent says so.
func (r *reconciler) later(
	ctx context.Context, parent *unstructured.Unstructured, m *memory, busy *hook.TooManyRequestsError,
) (reconcile.Result, error) {
	log.FromContext(ctx).V(1).Info("The hook wants to be asked later", "after", busy.After)
	if m.busy++; m.busy > 1 {
		message := fmt.Sprintf("the hook wants to be asked again in %s, and has said so several times", busy.After)
		if err := r.writeFailure(ctx, parent, m, string(hook.Busy), message); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{RequeueAfter: max(busy.After, pass.UnseenRetry)}, nil
}

// writeFailure stores why a pass did not do what it should.
func (r *reconciler) writeFailure(ctx context.Context, parent *unstructured.Unstructured, m *memory, reason, message string) error {
	o := &observed{parent: parent, memory: m}
	said, _, _ := unstructured.NestedMap(parent.Object, "status")
	at, _, _ := unstructured.NestedInt64(parent.Object, "status", "observedGeneration")
	if d := m.decided; d != nil { // the hook has answered, and what could be done was
		said, at = d.answer.Status, parent.GetGeneration()
		m.warnLost()
		if m.status.lost != "" {
			message += ". Besides, " + m.status.lost
		}
	} else if m.said != nil {
		said = m.said
	}
	status := r.statusFor(parent, m, said, at, true, "False", reason, message)
	if at == 0 {
		delete(status, "observedGeneration") // nothing was acted on yet
	}
	if !o.statusDiffers(status) {
		return nil
	}
	if _, err := r.writeStatus(ctx, parent, m, status); !errors.Is(err, ownership.ErrStale) {
		return err
	}
	return nil
}

// writeStatus stores a status. It is fenced by the resource version: what is said of an older read of the parent never
// replaces what is said of a newer one (S2). It returns the parent as it is then.
func (r *reconciler) writeStatus(
	ctx context.Context, parent *unstructured.Unstructured, m *memory, status map[string]any,
) (*unstructured.Unstructured, error) {
	out := &unstructured.Unstructured{Object: make(map[string]any, len(parent.Object))}
	maps.Copy(out.Object, parent.Object)
	out.Object["status"] = status
	patch := client.MergeFromWithOptions(parent, client.MergeFromWithOptimisticLock{})
	body, err := patch.Data(out)
	if err != nil {
		return nil, fmt.Errorf("encode the status of %s: %w", anyobject.Describe(parent), err)
	}
	answer := anyobject.Blank(parent).(*unstructured.Unstructured) //nolint:forcetypeassert // Blank returns the type that it is given
	stated := m.pass.Stating()
	err = r.Client.Status().Patch(ctx, answer, client.RawPatch(patch.Type(), body))
	stated(answer, err)
	switch {
	case apierrors.IsConflict(err):
		return nil, fmt.Errorf("%w: %w", ownership.ErrStale, err)
	case apierrors.IsNotFound(err):
		return nil, r.noStatus(ctx, parent, err)
	case err != nil:
		return nil, fmt.Errorf("write the status of %s: %w", anyobject.Describe(parent), err)
	}
	got, _, _ := unstructured.NestedMap(answer.Object, "status")
	m.status.at, m.status.sent, m.status.got = r.Clock.Now(), status, got
	current, has, _ := unstructured.NestedMap(parent.Object, "status")
	if m.told == parent.GetResourceVersion() || m.own == parent.GetResourceVersion() {
		first := !has && m.decided != nil && m.decided.answer.StatusPresence == hook.Given // {} is a status to a hook, too
		if m.own = ""; r.ignoreStatus || !first && apply.Equal(hookPart(current), hookPart(got)) {
			m.own = answer.GetResourceVersion() // the hook has said all of it, or does not care
		}
	}
	return answer, nil
}

// noStatusSubresource is the reason of a parent whose resource has no status subresource. The parent cannot say so itself;
// its controller can.
const noStatusSubresource = "NoStatusSubresource"

// noStatus tells a parent that is gone from a resource without the status subresource, in Metacontroller's words.
func (r *reconciler) noStatus(ctx context.Context, parent *unstructured.Unstructured, notFound error) error {
	if _, err := ownership.Reread(ctx, r.Live, parent); err != nil {
		return err
	}
	return &faultError{Reason: noStatusSubresource, Err: fmt.Errorf(
		"%s does not have subresource 'Status' enabled, so that nobody can see what became of its parents: "+
			"set subresources.status in its CRD (%w)", r.parent.Resource.GroupResource(), notFound)}
}

// hasNoStatus reports whether a parent of that resource cannot be told anything, and tells its controller instead.
func (r *reconciler) hasNoStatus(err error) bool {
	fault, ok := errors.AsType[*faultError](err)
	if !ok || fault.Reason != noStatusSubresource {
		return false
	}
	message := pass.Cut(pass.FirstLine(err), pass.MaxNote)
	r.Recorder.Eventf(r.declared, nil, corev1.EventTypeWarning, "SyncError", "Sync", "Sync error: %s", message)
	return true
}
