package cronjob

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// This file says what the status has to say of the Jobs that there are: which run, when one succeeded last, and which
// time was served last. It is pure.
//
// The status is not only a report. It is what a manager that comes later knows of Jobs that are deleted by then, this
// one after a restart or the built-in controller after a handover.

// account brings the status in line with the Jobs that there are, and says what has happened.
func (p *planner) account() {
	p.dropEnded(&p.status)
	if !p.begun.After(p.now) {
		p.serve(p.begun)
	}
	for _, j := range byTime(p.jobs) {
		if j.finished == "" && metav1.GetControllerOfNoCopy(j) == nil {
			p.lookAgain(pollInterval) // its end wakes nobody
		}
		if j.owned {
			p.accountFor(j)
		}
	}
}

// accountFor brings the status in line with a Job of the CronJob.
func (p *planner) accountFor(j job) {
	s := &p.status
	switch listed := lists(s.Active, j.UID); {
	case j.finished != "" || listed:
	case !j.at.IsZero():
		// It was started, and the write of the status failed, or is another manager's and comes later.
		s.Active = append(s.Active, referenceTo(j.Job))
	case j.Annotations[instantiateAnnotation] == "":
		p.tell(event{
			warning: true, about: j.Job, reason: "UnexpectedJob", action: "Report", key: string(j.UID),
			note: "Saw a job that the controller did not create or forgot: " + j.Name,
		})
	}
	if j.at.After(p.now) { // the clock was set back
		p.lookAgain(j.at.Sub(p.now))
	} else {
		p.serve(j.at)
	}
	if done := j.Status.CompletionTime; j.finished == batchv1.JobComplete && done != nil &&
		(s.LastSuccessfulTime == nil || s.LastSuccessfulTime.Before(done)) {
		s.LastSuccessfulTime = done.DeepCopy()
	}
}

// serve says in the status that a time was served, unless a later one was. The zero time is none.
func (p *planner) serve(at time.Time) {
	if last := p.status.LastScheduleTime; !at.IsZero() && (last == nil || last.Time.Before(at)) {
		p.status.LastScheduleTime = &metav1.Time{Time: at}
	}
}

// dropEnded drops the references to Jobs that have finished or are deleted.
func (p *planner) dropEnded(s *batchv1.CronJobStatus) {
	s.Active = slices.DeleteFunc(slices.Clone(s.Active), func(ref corev1.ObjectReference) bool {
		i := slices.IndexFunc(p.jobs, func(j job) bool { return j.UID == ref.UID })
		switch {
		case i < 0:
			p.tell(event{reason: "MissingJob", action: "Report", key: string(ref.UID), note: "Active job went missing: " + ref.Name})
			return true
		case p.jobs[i].finished != "":
			j := p.jobs[i]
			p.tell(event{
				about: j.Job, reason: "SawCompletedJob", action: "Report", key: string(ref.UID),
				note: "Saw completed job: " + j.Name + ", condition: " + string(j.finished),
			})
			return true
		}
		return false
	})
	if len(s.Active) == 0 {
		s.Active = nil
	}
}

// byTime returns Jobs in the order in which they were due.
func byTime(jobs []job) []job {
	return slices.SortedFunc(slices.Values(jobs), func(a, b job) int { return a.at.Compare(b.at) })
}
