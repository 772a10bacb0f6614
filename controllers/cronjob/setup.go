package cronjob

import (
	"context"
	"fmt"
	_ "time/tzdata" // the API server accepts the zones of its own copy, whatever the machine has

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/pass"
)

// This file wires the controller.

// Setup adds the CronJob controller to mgr. Schedules follow o.Clock; delays and durations follow the system's clock.
// The error is an error of mgr: a kind is not served, or the cache has started.
func Setup(ctx context.Context, mgr ctrl.Manager, o pass.Options) error {
	config, err := cronJobs.In(ctx, mgr, o)
	if err != nil {
		return err
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &batchv1.Job{}, createdByIndex, indexCreatedBy); err != nil {
		return fmt.Errorf("index jobs by %s: %w", createdByAnnotation, err)
	}
	r := newReconciler(config, o.AskServer)
	jobs := r.Parents().Router()
	jobs.Matching = creators
	return r.Watch(mgr, o.Workers).Watches(&batchv1.Job{}, r.ChildEvents(jobs)).Complete(r)
}

var cronJobs = pass.Kind{
	Name: "cronjob", GVK: kind, Resource: cronJobResource,
	New:      func() client.Object { return &batchv1.CronJob{} },
	NewList:  func() client.ObjectList { return &batchv1.CronJobList{} },
	Selector: history.CronJob().Selector,
	Owned:    map[schema.GroupResource]client.Object{history.AppsResource: &appsv1.ControllerRevision{}},
	Indexed:  map[schema.GroupResource]client.Object{jobResource: &batchv1.Job{}},
}

// newReconciler returns a Reconciler. See [pass.Options] for askServer.
func newReconciler(config pass.Config, askServer bool) *Reconciler {
	r := &Reconciler{clock: config.Clock}
	config.Clock, config.Run, config.Runs = clock.RealClock{}, r.pass, true
	r.Controller = pass.New(config)
	r.log = pass.NewLog(r.Controller, history.CronJob(), askServer)
	r.jobs = pass.NewChildren[*batchv1.Job](r.Controller, jobKind, jobResource, func() client.ObjectList { return &batchv1.JobList{} })
	r.jobs.Label = hashLabel
	r.OnForget(r.memories.forget)
	return r
}
