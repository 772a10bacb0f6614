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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cairn-dev/cairn/internal/anyobject"
	"github.com/cairn-dev/cairn/internal/metacontroller/apply"
	"github.com/cairn-dev/cairn/internal/metacontroller/children"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
	"github.com/cairn-dev/cairn/rollout"
)

// This file writes the status of parents, and events: the hook's status, how far the rollout is, and what went wrong.
// It writes only if something differs, and once a second at most, except for a new generation and the end of a rollout.

const (
	// standstill is after what time without a step an event says what a rollout waits for.
	standstill = 10 * time.Second
	// statusEvery is how often the status is written at most, while only details are new.
	statusEvery = time.Second
	// contestedEvery is how often at most the same status is written again that another controller of the parent has
	// overwritten.
	contestedEvery = time.Minute
)

// reporter writes the statuses of parents, and sends events about them.
type reporter struct {
	*settings
	*pass.Controller
}

// report stores the hook's status and how far the rollout is. It returns when to do so if it is too early now.
func (r *reporter) report(ctx context.Context, o *gathered, d *decision) (time.Duration, error) {
	rolled := r.rolls && o.log != nil || len(o.memory.sharers) > 0 && r.sharing(o, d).rolls() && !o.ending
	var again time.Duration
	var said *condition
	if rolled {
		status, reason, message := d.plan.condition(d.newest)
		again = r.announce(o, d, reason, message)
		said = r.note(o, d, status, reason, message)
	}
	wantedStatus := r.statusFor(o, d, d.answer.Status, o.parent.GetGeneration(), said)
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
		return pass.Soonest(again, early), nil // also for a hook that counts its calls: each write would cause a call
	}
	if _, err := r.writeStatus(ctx, o, d, wantedStatus); err != nil {
		return 0, err
	}
	if o.log != nil {
		r.reportUnreadable(o)
	}
	return pass.Soonest(again, o.memory.version.again()), nil
}

// statusFor returns the status that a parent is to have: see statusOf. said is the hook's part of it.
func (r *reporter) statusFor(
	o *gathered, d *decision, said map[string]any, generation int64, rolled *condition,
) map[string]any {
	if len(o.memory.sharers) == 0 {
		return statusOf(ownStatus(o.parent, said, r.builtin), generation, rolled)
	}
	return r.sharing(o, d).statusOf(o.parent, said, generation, rolled)
}

// note notes how far the rollout is, and returns what the status says of it. d is nil if nothing could be decided.
func (r *reporter) note(o *gathered, d *decision, status, reason, message string) *condition {
	if !r.rolls && len(o.memory.sharers) == 0 {
		return &condition{status: status, reason: reason, message: message}
	}
	roll := pass.Rollout{
		Updated:  metav1.Condition{Status: metav1.ConditionStatus(status), Reason: reason, Message: message},
		Deadline: r.deadline,
	}
	for _, s := range r.strategies {
		roll.MinReady = max(roll.MinReady, s.ready.MinReady)
	}
	if d != nil {
		roll.Unproven = d.plan.unproven
		roll.Revision, roll.Blocker = o.log.newestRevision(), func() string { return d.blocker(o) }
		roll.Plan = &rollout.Plan{
			Total: d.plan.total, Updated: d.plan.updated, Available: d.plan.serving, Held: d.plan.keeping, Done: d.plan.done,
		}
	}
	noted := o.pass.NoteRollout(roll)
	return &condition{string(noted.Updated.Status), noted.Updated.Reason, noted.Updated.Message, noted.Stalled, noted.Good}
}

// sharing returns the controllers of the parent.
func (r *reporter) sharing(o *gathered, d *decision) sharing {
	return sharing{sharer{name: r.name, rolls: r.rolls}, o.memory.sharers, d != nil}
}

// announce sends an event when a rollout makes no progress, and when it completes after that. Progress, and the wait
// for a child that starts, are in the status. It returns when to say that there is no progress.
func (r *reporter) announce(o *gathered, d *decision, reason, message string) time.Duration {
	m := &o.memory.status
	warnLost(o, d)
	text := reason + message
	if reason == "RolloutProgressing" || text == m.event || reason == "OnLatestRevision" && m.event == "" {
		return 0
	}
	if reason == revisionLost {
		m.event = text
		return 0
	}
	if left := o.memory.pause.until.Add(standstill).Sub(r.Clock.Now()); reason == "RolloutWaiting" && left > 0 {
		return left
	}
	if m.event = text; reason == "OnLatestRevision" {
		m.event = "" // the next rollout has events of its own
	}
	o.pass.Normal(nil, reason, "Roll", "%s", message)
	return 0
}

// warnLost sends an event about children whose revision is lost, whatever other events there are: only a user can
// repair that.
func warnLost(o *gathered, d *decision) {
	message := d.plan.strandedMessage()
	if message != "" && message != o.memory.status.lost {
		o.pass.Warn(nil, revisionLost, "Roll", "%s", message)
	}
	o.memory.status.lost = message
}

func (r *reporter) reportUnreadable(o *gathered) {
	for _, u := range o.log.Undecodable {
		o.pass.Warn(nil, "UnreadableRevision", "Resolve",
			"%v; it is kept, and nothing is made from it", u.Err)
	}
}

// statusDiffers reports whether the status is to be written.
func (o *gathered) statusDiffers(status map[string]any) bool {
	current, _, _ := unstructured.NestedFieldNoCopy(o.parent.Object, "status")
	now, _ := current.(map[string]any)
	if apply.Equal(now, status) {
		return false
	}
	m := &o.memory.status
	return m.sent == nil || !apply.Equal(m.sent, status) || !apply.Equal(m.got, now)
}

// reportLast stores the status of the finalize hook's last answer, for other owners of finalizers on the parent. A
// status that the API server refuses is no reason to keep the parent. It returns the parent as stored.
func (r *reporter) reportLast(ctx context.Context, o *gathered, d *decision) (*unstructured.Unstructured, error) {
	parent, status := o.parent, r.statusFor(o, d, d.answer.Status, o.parent.GetGeneration(), nil)
	if o.statusDiffers(status) {
		written, err := r.writeStatus(ctx, o, d, status)
		_, fault := errors.AsType[*faultError](err)
		switch {
		case err == nil:
			parent = written
		case fault, apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsForbidden(err),
			apierrors.IsRequestEntityTooLargeError(err):
			o.pass.Warn(nil, "SyncError", "Sync", "Sync error: %s", pass.FirstLine(err))
		default:
			return nil, err
		}
	}
	return parent, nil
}

// failed reports a pass that ended with an error, and says when to retry. d is nil if it could not decide anything.
func (r *reporter) failed(ctx context.Context, o *gathered, d *decision, failed error) (reconcile.Result, error) {
	if busy, ok := errors.AsType[*hook.TooManyRequestsError](failed); ok {
		return r.later(ctx, o, d, busy)
	}
	if ctx.Err() != nil {
		return reconcile.Result{}, failed // the manager is being stopped, which is no failure
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
	if _, ok := errors.AsType[*children.TakenError](failed); ok {
		reason = "ChildExists"
	}
	waits, waiting := children.OnlyTaken(failed)
	if text := reason + message; !unknownOwner(failed) && (!waiting || text != o.memory.status.event) {
		o.memory.status.event = text
		o.pass.Warn(nil, "SyncError", "Sync", "Sync error: %s", message) // repeats are counted
	}
	if r.hasNoStatus(failed) {
		return reconcile.Result{}, failed
	}
	if err := r.writeFailure(ctx, o, d, reason, message); err != nil {
		failed, waiting = errors.Join(failed, err), false
	}
	switch {
	case unknownOwner(failed):
		return reconcile.Result{RequeueAfter: unknownOwnerRetry}, nil
	case waiting:
		log.FromContext(ctx).V(1).Info("Waiting for another writer", "reason", message)
		return reconcile.Result{RequeueAfter: waits.Again}, nil
	}
	return reconcile.Result{}, failed
}

// unknownOwnerRetry is how long a pass waits until the API server knows the kind of the parent as an owner.
const unknownOwnerRetry = 2 * time.Second

// unknownOwner reports whether the API server refuses children because its admission plugin
// OwnerReferencesPermissionEnforcement does not know the kind of the parent. It looks for kinds every half a minute,
// and what it could not read of a busy API server it does not know until then; a doubling delay would be as long again.
// The condition says so while it lasts; nobody has to do anything, so there is no event. The plugin gives no reason of
// its own.
func unknownOwner(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot find RESTMapping")
}

// later waits for a hook that answered 429. That is no failure, but if it goes on the parent's status says so. A hook
// that does not say for how long is asked as after a failure, later each time.
func (r *reporter) later(
	ctx context.Context, o *gathered, d *decision, busy *hook.TooManyRequestsError,
) (reconcile.Result, error) {
	log.FromContext(ctx).V(1).Info("The hook wants to be asked later", "after", busy.After)
	if o.memory.answers.busy++; o.memory.answers.busy > 1 {
		message := "the hook answers 429 Too Many Requests, and does not say when to ask again"
		if busy.After > 0 {
			message = fmt.Sprintf("the hook returned 429 several times in a row; it is called again in %s", busy.After)
		}
		if err := r.writeFailure(ctx, o, d, string(hook.Busy), message); err != nil {
			return reconcile.Result{}, err
		}
	}
	if busy.After == 0 {
		return reconcile.Result{}, busy
	}
	return reconcile.Result{RequeueAfter: busy.After}, nil
}

// writeFailure stores why a pass failed.
func (r *reporter) writeFailure(ctx context.Context, o *gathered, d *decision, reason, message string) error {
	said, _, _ := unstructured.NestedMap(o.parent.Object, "status")
	at, _, _ := unstructured.NestedInt64(o.parent.Object, "status", "observedGeneration")
	if d != nil { // the hook has answered, and all else was done
		said, at = d.answer.Status, o.parent.GetGeneration()
		warnLost(o, d)
		if o.memory.status.lost != "" {
			message += ". Besides, " + o.memory.status.lost
		}
	} else if o.said != nil {
		said = o.said
	}
	status := r.statusFor(o, d, said, at, r.note(o, d, "False", reason, message))
	if at == 0 {
		delete(status, "observedGeneration") // nothing was acted on yet
	}
	if !o.statusDiffers(status) {
		return nil
	}
	if _, err := r.writeStatus(ctx, o, d, status); !errors.Is(err, ownership.ErrStale) {
		return err
	}
	return nil
}

// writeStatus stores a status. It is fenced by the resource version: a status that was made from an older read of the
// parent never replaces one from a newer read (S2). It returns the parent as stored.
func (r *reporter) writeStatus(
	ctx context.Context, o *gathered, d *decision, status map[string]any,
) (*unstructured.Unstructured, error) {
	parent, m := o.parent, o.memory
	out := &unstructured.Unstructured{Object: make(map[string]any, len(parent.Object))}
	maps.Copy(out.Object, parent.Object)
	out.Object["status"] = status
	patch := client.MergeFromWithOptions(parent, client.MergeFromWithOptimisticLock{})
	body, err := patch.Data(out)
	if err != nil {
		return nil, fmt.Errorf("encode the status of %s: %w", anyobject.Describe(parent), err)
	}
	answer := anyobject.Blank(parent).(*unstructured.Unstructured)
	stated := o.pass.BeginStatusWrite()
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
	if v := &m.version; v.asked == parent.GetResourceVersion() || v.own == parent.GetResourceVersion() {
		first := !has && d != nil && d.answer.StatusPresence == hook.Given // {} is a status to a hook, too
		if v.own = ""; r.ignoreStatus || !first && apply.Equal(hookPart(current), hookPart(got)) {
			v.own = answer.GetResourceVersion() // all of it is from the hook, or the hook need not see it
		}
	}
	return answer, nil
}

// noStatusSubresource is the reason for a parent whose resource has no status subresource. The parent cannot show it;
// its controller can.
const noStatusSubresource = "NoStatusSubresource"

// noStatus tells a deleted parent from a resource without the status subresource, in Metacontroller's words.
func (r *reporter) noStatus(ctx context.Context, parent *unstructured.Unstructured, notFound error) error {
	if _, err := ownership.Reread(ctx, r.Live, parent); err != nil {
		return err
	}
	return &faultError{Reason: noStatusSubresource, Err: fmt.Errorf(
		"%s does not have subresource 'Status' enabled, so the state of its parents cannot be reported: "+
			"set subresources.status in its CRD (%w)", r.parent.Resource.GroupResource(), notFound)}
}

// hasNoStatus reports whether parents of that resource have no status, and writes that to their controller instead.
func (r *reporter) hasNoStatus(err error) bool {
	fault, ok := errors.AsType[*faultError](err)
	if !ok || fault.Reason != noStatusSubresource {
		return false
	}
	message := pass.Cut(pass.FirstLine(err), pass.MaxNote)
	r.Recorder.Eventf(r.declared, nil, corev1.EventTypeWarning, "SyncError", "Sync", "Sync error: %s", message)
	return true
}
