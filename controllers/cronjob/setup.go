package cronjob

import (
	"context"
	"fmt"
	_ "time/tzdata" // the API server accepts the zones of its own copy, whatever the machine has

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

// This file wires the controller: indexes, consistency store, watches, and which event enqueues which CronJob.

// Options tune the controller.
type Options struct {
	// Workers is how many CronJobs are reconciled at once. Zero means 5.
	Workers int
	// AskServer allows dry-run patches of CronJobs to find out whether a stored snapshot is equivalent (rule E3).
	AskServer bool
	// Clock is what says which times have come, for tests. Nil means the system's, by which everything else goes: how long
	// something takes does not depend on whether a clock is set.
	Clock clock.PassiveClock
}

// Setup adds the CronJob controller to mgr. Errors are those of mgr: a kind that is not served, or a cache that has
// started.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if o.Workers == 0 {
		o.Workers = 5
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	consistency, err := ownership.NewConsistencyStoreFor(ctx, mgr, map[schema.GroupResource]client.Object{
		jobResource:          &batchv1.Job{},
		history.AppsResource: &appsv1.ControllerRevision{},
	}, map[schema.GroupResource]client.Object{cronJobResource: &batchv1.CronJob{}})
	if err != nil {
		return err
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &batchv1.Job{}, createdByIndex, indexCreatedBy); err != nil {
		return fmt.Errorf("index jobs by %s: %w", createdByAnnotation, err)
	}
	r := newReconciler(mgr.GetClient(), mgr.GetAPIReader(), consistency, mgr.GetEventRecorder("cronjob-controller"), o)
	jobs := r.parents().Router()
	jobs.Matching = creators
	return ctrl.NewControllerManagedBy(mgr).
		Named("cronjob").
		WithOptions(r.Options(o.Workers)).
		Watches(&batchv1.CronJob{}, r.ParentEvents()).
		Watches(&batchv1.Job{}, r.ChildEvents(jobs)).
		Watches(&appsv1.ControllerRevision{}, r.ChildEvents(r.parents().Router())).
		Complete(r)
}

// newReconciler returns a Reconciler that reads from c and, past its cache, from live.
func newReconciler(
	c client.Client, live client.Reader, consistency *ownership.ConsistencyStore, recorder events.EventRecorder, o Options,
) *Reconciler {
	r := &Reconciler{clock: o.Clock}
	r.Controller = pass.New(pass.Config{
		Kind: kind, Resource: cronJobResource, New: func() client.Object { return &batchv1.CronJob{} },
		Client: c, Live: live, Consistency: consistency, Recorder: recorder, Clock: clock.RealClock{}, Run: r.pass, Runs: true,
	})
	r.log = pass.NewLog(r.Controller, history.CronJob(), o.AskServer)
	r.jobs = pass.NewChildren[*batchv1.Job](r.Controller, jobKind, jobResource, func() client.ObjectList { return &batchv1.JobList{} })
	r.jobs.Label = hashLabel
	r.OnForget(r.memories.forget)
	return r
}

// parents finds CronJobs in the cache. The selector is that of their revisions.
func (r *Reconciler) parents() ownership.Parents {
	return ownership.Parents{
		Reader:   r.Client,
		Kind:     kind.GroupKind(),
		New:      func() client.Object { return &batchv1.CronJob{} },
		NewList:  func() client.ObjectList { return &batchv1.CronJobList{} },
		Selector: r.log.Selector,
	}
}
