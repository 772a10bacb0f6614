package statefulset

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
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
	kind        = appsv1.SchemeGroupVersion.WithKind("StatefulSet")
	podKind     = corev1.SchemeGroupVersion.WithKind("Pod")
	podResource = schema.GroupResource{Resource: "pods"}
	// Claims are children without a ControllerRef as long as they are to be kept.
	claimResource       = schema.GroupResource{Resource: "persistentvolumeclaims"}
	statefulSetResource = schema.GroupResource{Group: appsv1.GroupName, Resource: "statefulsets"}
	revisionResource    = schema.GroupResource{Group: appsv1.GroupName, Resource: "controllerrevisions"}
)

// Reconciler runs passes over StatefulSets. [Setup] makes one.
type Reconciler struct {
	client   client.Client
	live     client.Reader
	log      *history.Log
	ledger   *ownership.Ledger
	recorder events.EventRecorder
	clock    clock.PassiveClock
	// pods writes pods; fresh confirms the cached ones once a StatefulSet.
	pods  ownership.Writer
	fresh *ownership.Confirmer
}

// Reconcile runs one pass over one StatefulSet: gather, resolve, record, plan, act, report, truncate. A returned error is
// retried with a growing delay.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var set appsv1.StatefulSet
	unseen, err := r.ledger.Read(ctx, r.client, req.NamespacedName, &set)
	if err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	// What a parent that is being deleted owned may be orphaned or deleted at any moment, by the garbage collector.
	if set.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	if unseen != "" {
		return ownership.Unseen(ctx, unseen), nil
	}
	result, err := r.pass(ctx, &set)
	if again, dropped := ownership.Dropped(ctx, err, history.ErrStale); dropped {
		return again, nil
	}
	return result, err
}

// pass is one pass over a StatefulSet that is there.
func (r *Reconciler) pass(ctx context.Context, set *appsv1.StatefulSet) (reconcile.Result, error) {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil || selector.Empty() {
		return reconcile.Result{}, r.refuse(ctx, set, "SelectingAll",
			"spec.selector selects all pods, or none that can be told; a selector that is not empty is required")
	}
	if _, _, err := strategyOf(set); err != nil {
		return reconcile.Result{}, r.refuse(ctx, set, "InvalidStrategy", err.Error())
	}
	o, err := r.gather(ctx, set, selector)
	if err != nil {
		return reconcile.Result{}, err
	}
	verdict, err := r.log.Resolve(ctx, set, o.entries)
	if err != nil {
		return reconcile.Result{}, err
	}
	for _, refused := range verdict.Refused {
		r.recorder.Eventf(set, nil, corev1.EventTypeWarning, "RestoreRefused", "Resolve", "%v", refused)
	}
	recorded, err := r.log.Record(ctx, set, verdict, set.Status.CollisionCount, r.relabel(o))
	if err != nil {
		return r.unrecorded(ctx, o, verdict, err)
	}
	if verdict.Update == nil || recorded.Update.ResourceVersion != verdict.Update.ResourceVersion {
		log.FromContext(ctx).Info("Recorded", "revision", recorded.Update.Number, "name", recorded.Update.Name, "reason", verdict.Reason)
	}
	if verdict.Kind == revision.Rollback {
		r.recorder.Eventf(set, nil, corev1.EventTypeNormal, "RolledBack", "Record", "%s", verdict.Reason)
	}
	o.entries = history.Without(o.entries, recorded.Deleted)
	rep := report{update: &recorded.Update, collisions: recorded.CollisionCount, undecodable: verdict.Undecodable}
	result, err := r.roll(ctx, o, &rep, verdict.Snapshot)
	if errors.Is(err, history.ErrStale) || ownership.Superseded(err) {
		return result, err // there are pods that this pass has not seen, and the revisions of those live, too (H3)
	}
	return result, errors.Join(err, r.truncate(ctx, o, recorded.Update))
}

// roll plans and acts with a recorded update revision, and reports.
func (r *Reconciler) roll(ctx context.Context, o *observed, rep *report, asked *revision.Snapshot) (reconcile.Result, error) {
	f, err := r.facts(o, *rep.update, asked)
	if err != nil {
		return reconcile.Result{}, err
	}
	if rep.plan, err = makePlan(f); err != nil {
		return reconcile.Result{}, fmt.Errorf("plan StatefulSet %s/%s: %w", o.set.Namespace, o.set.Name, err)
	}
	rep.current = f.current.name
	if rep.plan.promote {
		rep.current, rep.plan.counts.current = f.update.name, rep.plan.counts.updated
	}
	result := reconcile.Result{RequeueAfter: rep.plan.again}
	if rep.plan.risky() {
		if err := r.confirm(ctx, o); err != nil {
			return reconcile.Result{}, err
		}
	}
	rep.actErr = r.act(ctx, f.set, rep.plan)
	if ownership.OutcomeUnknown(rep.actErr) {
		r.fresh.Forget(o.set.UID) // nobody told us what was written, so that the ledger cannot wait for it
	}
	if errors.Is(rep.actErr, history.ErrStale) || ownership.Superseded(rep.actErr) {
		return reconcile.Result{}, rep.actErr
	}
	statusErr := r.report(ctx, o.set, *rep)
	if rep.actErr != nil && errors.Is(statusErr, history.ErrStale) {
		statusErr = nil // a lost race must not turn a failure into a quick retry
	}
	return result, errors.Join(rep.actErr, statusErr)
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
	r.recorder.Eventf(o.set, nil, corev1.EventTypeWarning, "RecordFailed", "Record", "%v", err)
	rep := report{undecodable: verdict.Undecodable, recordErr: err, current: o.set.Status.CurrentRevision}
	rep.plan = &plan{counts: countsOf(o.set, o.pods, rep.current, o.set.Status.UpdateRevision, r.clock.Now())}
	if _, ok := errors.AsType[*history.TooLargeError](err); ok {
		log.FromContext(ctx).Error(err, "No rollout: the snapshot cannot be stored")
		err = nil // only an edit can mend it, and an edit wakes us; the rest may have to be retried
	}
	keep := revision.Revision{}
	if verdict.Update != nil {
		keep = *verdict.Update
	}
	err = errors.Join(err, r.report(ctx, o.set, rep))
	if len(verdict.Duplicates) == 0 {
		err = errors.Join(err, r.truncate(ctx, o, keep))
	}
	return reconcile.Result{}, err
}

// truncate forgets old revisions. A negative limit keeps them all: the API server says so when it accepts one.
func (r *Reconciler) truncate(ctx context.Context, o *observed, update revision.Revision) error {
	limit := 10 // of apps/v1; the API server fills it in
	if o.set.Spec.RevisionHistoryLimit != nil {
		limit = int(*o.set.Spec.RevisionHistoryLimit)
	}
	if limit < 0 || len(revision.Prune(o.entries, update, o.live(), limit)) == 0 {
		return nil
	}
	// A pod that the cache does not show may need one of them. It will be shown, and that wakes us.
	if err := r.confirm(ctx, o); err != nil {
		log.FromContext(ctx).V(1).Info("Not truncating the history", "reason", err.Error())
		if errors.Is(err, history.ErrStale) {
			return nil
		}
		return err
	}
	return r.log.Truncate(ctx, o.set, o.entries, update, o.live(), limit)
}
