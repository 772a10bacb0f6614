package cronjob

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

// This file holds all writes to Jobs but the relabelling, which is package pass's.

// act deletes the Jobs that the next one takes the place of, and starts that one. It returns what the status has to say
// afterwards, with an error as well. One that is [pass.IsStale] says that the plan rests on a stale read.
func (r *Reconciler) act(ctx context.Context, p *pass.Pass, o *observed, plan *plan, revision string) (batchv1.CronJobStatus, error) {
	for _, j := range plan.replaced {
		deleted, err := r.jobs.Removed(ctx, p, j.Job, "the next one is due, and concurrency policy is Replace")
		if err == nil && !deleted { // the Job controller was faster, as a rule: it still runs
			err = fmt.Errorf("%w: job %s has changed since", ownership.ErrStale, j.Name)
		}
		if err != nil {
			return plan.status, err
		}
	}
	job, err := jobAt(o.cronJob, plan.start, revision)
	if err != nil {
		return plan.started(nil), err
	}
	how, err := r.jobs.Create(ctx, p.Parent, job, func(client.Object) bool { return true })
	switch err = pass.AsNamespaceTerminating(err); {
	case pass.IsStale(err):
		return plan.status, err
	case err != nil:
		p.Warn(nil, "FailedCreate", "Create", "Error creating job: %v", err)
		return plan.started(nil), fmt.Errorf("create job %s: %w", job.Name, err)
	case how == ownership.Taken:
		return plan.status, fmt.Errorf("%w: the name %s is taken, and the cache does not show by whom", ownership.ErrStale, job.Name)
	case how == ownership.Existed: // another request of ours, or another manager: the cache will show it
		return plan.status, fmt.Errorf("%w: it does not show job %s", ownership.ErrStale, job.Name)
	}
	r.memories.start(o.cronJob.UID, plan.start)
	p.Normal(job, "SuccessfulCreate", "Create", "Created job %s", job.Name)
	return plan.started(job), nil
}

// retire deletes the finished Jobs beyond the history limits, as long as the API server lets it: what is refused for
// good is asked for once in a pass, however many Jobs have piled up.
func (r *Reconciler) retire(ctx context.Context, p *pass.Pass, plan *plan) error {
	err := pass.SlowStart(p, pass.Writes[removal]{
		Items: plan.surplus,
		Do:    func(s removal) error { return r.jobs.Remove(ctx, p, s.job.Job, s.reason) },
		Name:  func(s removal) string { return s.job.Name },
	})
	p.NoteUnknownOutcome(err)
	return err
}
