package cronjob

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/pass"
)

// This file is one pass, from the parent to the report. setup.go wires it to a manager; package pass begins and ends
// it.

var (
	kind            = batchv1.SchemeGroupVersion.WithKind("CronJob")
	jobKind         = batchv1.SchemeGroupVersion.WithKind("Job")
	cronJobResource = schema.GroupResource{Group: batchv1.GroupName, Resource: "cronjobs"}
	jobResource     = schema.GroupResource{Group: batchv1.GroupName, Resource: "jobs"}
)

const (
	// hashLabel is the label of revisions and of Jobs by which a Job says which revision it comes from.
	hashLabel = appsv1.ControllerRevisionHashLabelKey
	// createdByIndex finds Jobs without a ControllerRef by the UID of whom an old cluster says created them.
	createdByIndex = "metadata.createdBy"
)

// Reconciler runs passes over CronJobs. [Setup] makes one.
type Reconciler struct {
	*pass.Controller

	clock    clock.PassiveClock
	jobs     *pass.Children[*batchv1.Job]
	log      *history.Log
	memories memories
}

// pass is one pass over a CronJob that exists: gather, record, plan, act, report, truncate. What cannot be recorded
// delays no Job.
func (r *Reconciler) pass(ctx context.Context, p *pass.Pass) error {
	cj := p.Parent.(*batchv1.CronJob)
	o, err := r.gather(ctx, p, cj)
	if err != nil {
		return err
	}
	relabel := r.jobs.Claimed(p, labels.Everything(), o.owned).Relabel
	recorded, err := pass.Record(ctx, p, r.log, o.entries, nil, relabel)
	if err != nil {
		return err
	}
	plan := makePlan(r.facts(ctx, o))
	r.memories.owe(o.cronJob.UID, plan.owed)
	p.RequeueAfter(plan.again)
	status := plan.status
	var failed error
	if !plan.start.IsZero() {
		if err := r.confirm(ctx, p, o); err != nil {
			return err
		}
		status, failed = r.act(ctx, p, o, plan, labelOf(recorded))
		p.NoteUnknownOutcome(failed)
		if pass.Unreported(failed) {
			return failed
		}
	}
	stored, reported := r.report(ctx, p, o, plan, status)
	err = pass.Finished(errors.Join(failed, recorded.Retry()), reported)
	if pass.IsStale(err) || !stored {
		return err // what follows deletes what only the status would know of
	}
	err = errors.Join(err, r.retire(ctx, p, plan))
	confirm := func(ctx context.Context) error { return r.confirmJobs(ctx, p, o) }
	return errors.Join(err, recorded.Truncate(ctx, p, r.log, o.live(labelOf(recorded)), nil, confirm))
}

// labelOf is what a Job says of its revision, empty if it could not be recorded.
func labelOf(recorded *pass.Recorded) string {
	if recorded.Update == nil {
		return ""
	}
	return recorded.Update.Hash
}
