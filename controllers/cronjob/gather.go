package cronjob

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
	"github.com/cairn-dev/cairn/revision"
)

// This file holds all reads of a pass. Objects come from a cache without copies: nothing here or later may change them.

// observed is what one pass works on.
type observed struct {
	cronJob *batchv1.CronJob
	jobs    []job
	// owned are the Jobs with the CronJob's ControllerRef.
	owned   []*batchv1.Job
	entries []revision.Revision
}

// gather reads the Jobs and the revisions of a CronJob. Orphaned revisions of its name are adopted.
func (r *Reconciler) gather(ctx context.Context, p *pass.Pass, cj *batchv1.CronJob) (*observed, error) {
	o := &observed{cronJob: cj}
	var err error
	if o.owned, err = r.jobs.Shown(ctx, p); err != nil {
		return nil, err
	}
	seen := map[types.UID]bool{}
	add := func(found *batchv1.Job, owned bool) {
		if !seen[found.UID] {
			seen[found.UID] = true
			o.jobs = append(o.jobs, judge(cj, found, owned))
		}
	}
	for _, found := range o.owned {
		add(found, true)
	}
	var old batchv1.JobList
	if err := r.Client.List(ctx, &old, client.InNamespace(cj.Namespace), client.MatchingFields{createdByIndex: string(cj.UID)}); err != nil {
		return nil, fmt.Errorf("list the jobs that say that %s created them: %w", cj.Name, err)
	}
	for i := range old.Items {
		add(&old.Items[i], true)
	}
	for _, ref := range cj.Status.Active {
		if seen[ref.UID] {
			continue
		}
		found, err := r.listed(ctx, p, ref)
		if err != nil {
			return nil, err
		}
		if found != nil {
			add(found, false)
		}
	}
	selector, err := r.log.Selector(cj)
	if err != nil {
		return nil, err
	}
	o.entries, err = r.log.Claim(ctx, cj, selector)
	return o, err
}

// listed returns a Job that the status lists as active and that is not among the CronJob's, nil if it is deleted. The
// cache of Jobs may show less than that of CronJobs, so the API server is asked before a Job is taken for missing:
// under Forbid another one would be started beside it.
func (r *Reconciler) listed(ctx context.Context, p *pass.Pass, ref corev1.ObjectReference) (*batchv1.Job, error) {
	key := client.ObjectKey{Namespace: p.Parent.GetNamespace(), Name: ref.Name}
	found := &batchv1.Job{}
	if err := r.Client.Get(ctx, key, found); err == nil && found.UID == ref.UID {
		return found, nil
	}
	found = &batchv1.Job{}
	switch err := r.Live.Get(ctx, key, found); {
	case apierrors.IsNotFound(err), err == nil && found.UID != ref.UID:
		return nil, nil //nolint:nilnil // it is deleted
	case err != nil:
		return nil, fmt.Errorf("read the active job %s past the cache: %w", ref.Name, err)
	}
	r.Consistency.WroteAt(p.Parent.GetUID(), jobResource, found) // the next pass waits until the cache shows it
	return nil, fmt.Errorf("%w: it does not show job %s", ownership.ErrStale, ref.Name)
}

// facts are what the plan for o is made from.
func (r *Reconciler) facts(ctx context.Context, o *observed) facts {
	now := r.clock.Now()
	return facts{
		cronJob: o.cronJob, now: now, jobs: o.jobs,
		since: r.memories.since(o.cronJob, now), begun: r.memories.started(o.cronJob.UID),
		// A name that cannot be looked up counts as free: the response to the create tells.
		taken: func(name string) string {
			found := &batchv1.Job{}
			if r.Client.Get(ctx, client.ObjectKey{Namespace: o.cronJob.Namespace, Name: name}, found) != nil {
				return ""
			}
			if ref := metav1.GetControllerOfNoCopy(found); ref != nil {
				return ref.Kind + " " + ref.Name
			}
			return "no controller"
		},
	}
}

// live returns the revisions that Jobs come from.
func (o *observed) live(more ...string) revision.InUse {
	for _, j := range o.jobs {
		more = append(more, j.Labels[hashLabel])
	}
	return revision.NewInUse(more...)
}

// confirm makes sure, before a Job is started, that the plan does not rest on an old cache. The parent is read each
// time: its status says which times were served, by another manager too. Where it matters what runs, its Jobs are
// listed once in a process, and after a request whose outcome is unknown: the status does not know of a Job that was
// started, for an earlier time, without being written down.
func (r *Reconciler) confirm(ctx context.Context, p *pass.Pass, o *observed) error {
	if err := p.Unchanged(ctx); err != nil {
		return err
	}
	if o.cronJob.Spec.ConcurrencyPolicy == batchv1.AllowConcurrent {
		return nil
	}
	return r.confirmJobs(ctx, p, o)
}

func (r *Reconciler) confirmJobs(ctx context.Context, p *pass.Pass, o *observed) error {
	return r.jobs.Confirm(ctx, p, labels.Everything(), o.owned)
}

// indexCreatedBy is the index function of createdByIndex.
func indexCreatedBy(o client.Object) []string {
	if owner, ok := createdBy(o); ok {
		return []string{string(owner.UID)}
	}
	return nil
}

// creators returns the CronJob that an old cluster wrote into a Job.
func creators(_ context.Context, orphan client.Object) []types.NamespacedName {
	owner, ok := createdBy(orphan)
	if !ok {
		return nil
	}
	return []types.NamespacedName{{Namespace: orphan.GetNamespace(), Name: owner.Name}}
}
