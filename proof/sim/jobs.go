package sim

import (
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/kinds"
	"github.com/cairn-dev/cairn/proof/sim/model"
)

// This file is who runs Jobs: it stands in for the Job controller, and for the one that deletes what has finished. They
// make no mistakes; when they act is chance.

// userJobs is the user of their requests.
const userJobs = "jobs"

// jobs is the resource of Jobs.
var jobs = kinds.Job.GVR

// The images by which Jobs differ: one of the first fails, of the second takes minutes, of the last never ends.
const (
	longImage    = "long"
	endlessImage = "endless"
)

func (w *world) jobs() []*batchv1.Job {
	objects := w.all(jobs)
	out := make([]*batchv1.Job, 0, len(objects))
	for _, o := range objects {
		out = append(out, o.(*batchv1.Job))
	}
	return out
}

// jobMoves are what can become of Jobs now.
func (w *world) jobMoves() []func() {
	var out []func()
	for _, j := range w.jobs() {
		if do, _ := w.jobDue(j); do != nil {
			out = append(out, do)
		}
	}
	return out
}

// tendJobs does what is due for a Job by its time, and returns false if nothing is.
func (w *world) tendJobs() bool {
	for _, j := range w.jobs() {
		if do, at := w.jobDue(j); do != nil && !at.After(w.clock.Now()) {
			do()
			return true
		}
	}
	return false
}

// jobDue returns what comes next for a Job, and when, unless chance is faster. Nil means that nothing does.
func (w *world) jobDue(j *batchv1.Job) (do func(), at time.Time) {
	image := j.Spec.Template.Spec.Containers[0].Image
	switch {
	case j.DeletionTimestamp != nil:
		return nil, at
	case jobFinished(j):
		if j.Spec.TTLSecondsAfterFinished == nil {
			return nil, at
		}
		ended := j.Status.Conditions[len(j.Status.Conditions)-1].LastTransitionTime
		return func() { w.expire(j) }, ended.Add(time.Duration(*j.Spec.TTLSecondsAfterFinished) * time.Second)
	case j.Status.StartTime == nil:
		return func() { w.startJob(j) }, j.CreationTimestamp.Time
	case strings.HasPrefix(image, endlessImage):
		return nil, at
	}
	takes := time.Duration(1+int(j.UID[len(j.UID)-1])%40) * time.Second
	if strings.HasPrefix(image, longImage) {
		takes *= 10
	}
	return func() { w.endJob(j, !strings.HasPrefix(image, brokenImage)) }, j.Status.StartTime.Add(takes)
}

// nextJob is how long at most nothing becomes of a Job by itself.
func (w *world) nextJob(most time.Duration) time.Duration {
	for _, j := range w.jobs() {
		if do, at := w.jobDue(j); do != nil {
			most = min(most, max(at.Sub(w.clock.Now()), time.Millisecond))
		}
	}
	return most
}

func jobFinished(j *batchv1.Job) bool {
	return slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue
	})
}

func (w *world) startJob(j *batchv1.Job) {
	out := j.DeepCopy()
	now := metav1.NewTime(w.clock.Now().Truncate(time.Second))
	out.Status.StartTime, out.Status.Active, out.Status.Ready = &now, 1, new(int32(1))
	out.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
	w.jobStatus(out)
}

func (w *world) endJob(j *batchv1.Job, well bool) {
	out := j.DeepCopy()
	now := metav1.NewTime(w.clock.Now().Truncate(time.Second))
	out.Status.Active, out.Status.Ready, out.Status.Terminating = 0, new(int32(0)), new(int32(0))
	first, last := batchv1.JobFailureTarget, batchv1.JobFailed
	if well {
		first, last = batchv1.JobSuccessCriteriaMet, batchv1.JobComplete
		out.Status.Succeeded, out.Status.CompletionTime = 1, &now
	} else {
		out.Status.Failed = 1
	}
	for _, t := range []batchv1.JobConditionType{first, last} {
		out.Status.Conditions = append(out.Status.Conditions, batchv1.JobCondition{
			Type: t, Status: corev1.ConditionTrue, LastProbeTime: now, LastTransitionTime: now,
		})
	}
	w.stats.count("jobs end")
	w.jobStatus(out)
}

func (w *world) jobStatus(j *batchv1.Job) {
	w.ask(model.Request{
		Verb: model.VerbUpdate, Resource: jobs, Subresource: "status", Namespace: j.Namespace, Name: j.Name, Object: j, User: userJobs,
	})
}

// expire deletes a Job that has finished.
func (w *world) expire(j client.Object) {
	uid, policy := j.GetUID(), metav1.DeletePropagationForeground
	w.stats.count("jobs expire")
	w.ask(model.Request{
		Verb: model.VerbDelete, Resource: jobs, Namespace: j.GetNamespace(), Name: j.GetName(), User: userJobs,
		Preconditions: &metav1.Preconditions{UID: &uid}, Propagation: &policy,
	})
}
