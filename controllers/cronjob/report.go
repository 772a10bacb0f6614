package cronjob

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/pass"
)

// This file reports: the status, which is written at once if anything in it differs, and events.

// report says what a pass found out. stored says whether the API server has that status now.
func (r *Reconciler) report(
	ctx context.Context, p *pass.Pass, o *observed, plan *plan, status batchv1.CronJobStatus,
) (stored bool, err error) {
	for _, e := range plan.events {
		if r.memories.first(o.cronJob.UID, e) {
			r.send(p, e)
		}
	}
	return p.WriteStatus(ctx, withStatus(o.cronJob, o.cronJob.Status), withStatus(o.cronJob, status), true)
}

func (r *Reconciler) send(p *pass.Pass, e event) {
	var about client.Object
	if e.about != nil {
		about = e.about
	}
	if e.warning {
		p.Warn(about, e.reason, e.action, "%s", e.note)
		return
	}
	p.Normal(about, e.reason, e.action, "%s", e.note)
}

// withStatus returns an object with the name, UID and version of a CronJob, and a status, for a patch.
func withStatus(cj *batchv1.CronJob, status batchv1.CronJobStatus) *batchv1.CronJob {
	return &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: cj.Namespace, Name: cj.Name, UID: cj.UID, ResourceVersion: cj.ResourceVersion},
		Status:     status,
	}
}
