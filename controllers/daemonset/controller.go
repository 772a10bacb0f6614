package daemonset

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/revision"
)

// This file is one pass, from the request to the report. setup.go wires it to a manager.

var (
	kind              = appsv1.SchemeGroupVersion.WithKind("DaemonSet")
	podResource       = schema.GroupResource{Resource: "pods"}
	daemonSetResource = schema.GroupResource{Group: appsv1.GroupName, Resource: "daemonsets"}
	revisionResource  = schema.GroupResource{Group: appsv1.GroupName, Resource: "controllerrevisions"}
)

const (
	// The pause before a failed pod is replaced grows between these two, as DaemonSet users know it.
	shortestBackoff = time.Second
	longestBackoff  = 15 * time.Minute
)

// Reconciler runs passes over DaemonSets. [Setup] makes one.
type Reconciler struct {
	client   client.Client
	live     client.Reader
	log      *history.Log
	ledger   *ownership.Ledger
	recorder events.EventRecorder
	clock    clock.PassiveClock
	backoff  *flowcontrol.Backoff
	// pods writes pods; fresh confirms the cached ones once a DaemonSet.
	pods  ownership.Writer
	fresh *ownership.Confirmer
	// predecessors are what new pods do not have the names of.
	predecessors predecessors
}

// Reconcile runs one pass over one DaemonSet: gather, resolve, record, plan, act, report, truncate. A returned error is
// retried with a growing delay.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var ds appsv1.DaemonSet
	unseen, err := r.ledger.Read(ctx, r.client, req.NamespacedName, &ds)
	if err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	// What a parent that is being deleted owned may be orphaned or deleted at any moment, by the garbage collector.
	if ds.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	if unseen != "" {
		return ownership.Unseen(ctx, unseen), nil
	}
	result, err := r.pass(ctx, &ds)
	if again, dropped := ownership.Dropped(ctx, err, history.ErrStale); dropped {
		return again, nil
	}
	return result, err
}

// pass is one pass over a DaemonSet that is there.
func (r *Reconciler) pass(ctx context.Context, ds *appsv1.DaemonSet) (reconcile.Result, error) {
	selector, err := metav1.LabelSelectorAsSelector(ds.Spec.Selector)
	if err != nil || selector.Empty() {
		return reconcile.Result{}, r.refuse(ctx, ds, "SelectingAll",
			"spec.selector selects all pods, or none that can be told; a selector that is not empty is required")
	}
	o, err := r.gather(ctx, ds, selector)
	if err != nil {
		return reconcile.Result{}, err
	}
	verdict, err := r.log.Resolve(ctx, ds, o.entries)
	if err != nil {
		return reconcile.Result{}, err
	}
	for _, refused := range verdict.Refused {
		r.recorder.Eventf(ds, nil, corev1.EventTypeWarning, "RestoreRefused", "Resolve", "%v", refused)
	}
	recorded, err := r.log.Record(ctx, ds, verdict, ds.Status.CollisionCount, r.relabel(o))
	if err != nil {
		return r.unrecorded(ctx, o, verdict, err)
	}
	if recorded.Update.ResourceVersion != versionOf(verdict.Update) || verdict.Update == nil {
		log.FromContext(ctx).Info("Recorded", "revision", recorded.Update.Number, "name", recorded.Update.Name, "reason", verdict.Reason)
	}
	if verdict.Kind == revision.Rollback {
		r.recorder.Eventf(ds, nil, corev1.EventTypeNormal, "RolledBack", "Record", "%s", verdict.Reason)
	}
	rep := report{update: &recorded.Update, collisions: recorded.CollisionCount, undecodable: verdict.Undecodable}
	result, err := r.roll(ctx, o, &rep, verdict.Snapshot)
	if errors.Is(err, history.ErrStale) || ownership.Superseded(err) {
		return result, err // what is live was read too early as well
	}
	entries := history.Without(o.entries, recorded.Deleted)
	return result, errors.Join(err, r.truncate(ctx, o, entries, recorded.Update))
}

// roll plans and acts with a recorded update revision, and reports.
func (r *Reconciler) roll(ctx context.Context, o *observed, rep *report, current *revision.Snapshot) (reconcile.Result, error) {
	snapshot := rep.update.Snapshot
	if snapshot == nil {
		snapshot = current // it cannot be read, but its stamp proves that the parent has not changed since
	}
	f, err := r.facts(o, snapshot, rep.update.Hash)
	if err != nil {
		return reconcile.Result{}, err
	}
	if rep.plan, err = makePlan(f); err != nil {
		r.recorder.Eventf(o.ds, nil, corev1.EventTypeWarning, "InvalidStrategy", "Plan", "%v", err)
		return reconcile.Result{}, fmt.Errorf("plan DaemonSet %s/%s: %w", o.ds.Namespace, o.ds.Name, err)
	}
	result := reconcile.Result{RequeueAfter: rep.plan.again}
	if rep.plan.risky() {
		why, err := r.fresh.Confirm(ctx, o.ds, o.selector, o.children())
		if err != nil {
			return reconcile.Result{}, err
		}
		if why != "" {
			return reconcile.Result{}, fmt.Errorf("%w: %s", history.ErrStale, why)
		}
	}
	actErr := r.act(ctx, f, rep.plan)
	if ownership.OutcomeUnknown(actErr) {
		r.fresh.Forget(o.ds.UID) // what was written nobody told us, so that the ledger cannot wait for it
	}
	if ownership.Superseded(actErr) {
		return reconcile.Result{}, actErr
	}
	rep.actErr = actErr
	statusErr := r.report(ctx, o.ds, *rep)
	if actErr != nil && errors.Is(statusErr, history.ErrStale) {
		statusErr = nil // a lost race must not turn a failure into a quick retry
	}
	return result, errors.Join(actErr, statusErr)
}

// unrecorded ends a pass whose revision could not be stored: no pod is touched, the counters are still reported, and the
// log is still truncated, because a full log or quota may be the cause (kubernetes#85690). But not while it has duplicates:
// which of them is still there nobody has looked at, and the one that stays must not be taken for old (H3).
func (r *Reconciler) unrecorded(ctx context.Context, o *observed, verdict *history.Verdict, err error) (reconcile.Result, error) {
	if errors.Is(err, history.ErrStale) || apierrors.IsConflict(err) {
		return reconcile.Result{}, err // somebody was faster; the history is as healthy as before
	}
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return reconcile.Result{}, nil // nothing can be made here any more, and nobody wants to read so
	}
	r.recorder.Eventf(o.ds, nil, corev1.EventTypeWarning, "RecordFailed", "Record", "%v", err)
	rep := report{update: verdict.Update, undecodable: verdict.Undecodable, recordErr: err}
	hash, keep := "", revision.Revision{}
	if verdict.Update != nil {
		hash, keep = verdict.Update.Hash, *verdict.Update
	}
	f, factsErr := r.facts(o, verdict.Snapshot, hash)
	if factsErr != nil {
		return reconcile.Result{}, errors.Join(err, factsErr)
	}
	var planErr error
	if rep.plan, planErr = makePlan(f); planErr != nil {
		return reconcile.Result{}, errors.Join(err, planErr)
	}
	if _, ok := errors.AsType[*history.TooLargeError](err); ok {
		log.FromContext(ctx).Error(err, "No rollout: the snapshot cannot be stored")
		err = nil // only an edit can mend it, and an edit wakes us; the rest may have to be retried
	}
	err = errors.Join(err, r.report(ctx, o.ds, rep))
	if len(verdict.Duplicates) == 0 {
		err = errors.Join(err, r.truncate(ctx, o, o.entries, keep))
	}
	return reconcile.Result{}, err
}

func (r *Reconciler) truncate(ctx context.Context, o *observed, entries []revision.Revision, update revision.Revision) error {
	const defaultLimit = 10 // of apps/v1; the API server fills it in
	limit := defaultLimit
	if o.ds.Spec.RevisionHistoryLimit != nil {
		limit = int(*o.ds.Spec.RevisionHistoryLimit)
	}
	if len(revision.Prune(entries, update, o.live(), limit)) == 0 {
		return nil
	}
	// A pod that the cache does not show may need one of them. It will be shown, and that wakes us.
	if why, err := r.fresh.Confirm(ctx, o.ds, o.selector, o.children()); err != nil || why != "" {
		log.FromContext(ctx).V(1).Info("Not truncating the history", "reason", why)
		return err
	}
	return r.log.Truncate(ctx, o.ds, entries, update, o.live(), limit)
}

func versionOf(r *revision.Revision) string {
	if r == nil {
		return ""
	}
	return r.ResourceVersion
}
