package cronjob

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// This file decides what one pass does. It is pure: facts in, a plan with reasons out.

// facts is all that a plan is made from.
type facts struct {
	cronJob *batchv1.CronJob
	now     time.Time
	// jobs are those of the CronJob, and those that its status lists although they are not.
	jobs []job
	// since is until when another schedule was in force, zero if nobody knows of one: what is due before is not for this
	// one.
	since time.Time
	// begun is the latest time that this process has started a Job for, zero if none: the Job may be deleted by now, and
	// the status not written.
	begun time.Time
	// taken says whose object has a name that a Job would get, empty if it is free.
	taken func(name string) string
}

// plan is what one pass does.
type plan struct {
	// status is what the status has to say before anything is started or deleted.
	status batchv1.CronJobStatus
	// start is the time for which a Job is started, zero if none is. Those of replaced are deleted before.
	start    time.Time
	replaced []job
	// owed is the time that is due and for which no Job was started, zero for none.
	owed time.Time
	// surplus are the finished Jobs beyond the history limits, with the reason.
	surplus []removal
	events  []event
	// again is when to look again although nothing happened; zero means never.
	again time.Duration
}

// removal is a Job that is deleted.
type removal struct {
	job    job
	reason string
}

// event is something to be said once.
type event struct {
	warning        bool
	about          *batchv1.Job
	reason, action string
	// key tells an event from the last one of its reason: one that is the same is not said again.
	key, note string
}

const (
	// many is how many missed times are too many to be an interruption: a clock or a schedule is wrong (kubernetes.io,
	// "CronJob limitations").
	many = 100
	// recheck is how long a pass waits at most: see the package comment. It costs no request.
	recheck = time.Minute
	// pollInterval is how often a pass looks, in the cache, for what wakes nobody: whether a name is free again, or a Job
	// without a ControllerRef has finished.
	pollInterval = 10 * time.Second
)

// planner is one run of makePlan.
type planner struct {
	facts
	*plan
}

// makePlan plans one pass.
func makePlan(f facts) *plan {
	p := &planner{facts: f, plan: &plan{status: *f.cronJob.Status.DeepCopy()}}
	p.account()
	p.retire(batchv1.JobComplete, "successful", f.cronJob.Spec.SuccessfulJobsHistoryLimit)
	p.retire(batchv1.JobFailed, "failed", f.cronJob.Spec.FailedJobsHistoryLimit)
	p.schedule()
	return p.plan
}

// lookAgain asks for a pass after some time, but soon enough to notice that the clock was set.
func (p *planner) lookAgain(after time.Duration) {
	if after = min(max(after, time.Millisecond), recheck); p.again == 0 || after < p.again {
		p.again = after
	}
}

func (p *planner) tell(e event) { p.events = append(p.events, e) }

func (p *planner) warn(reason, key, note string) {
	p.tell(event{warning: true, reason: reason, action: "Schedule", key: key, note: note})
}

// retire finds the finished Jobs beyond a history limit. Without a limit all are kept, and so is a Job that the status
// cannot account for, because by this clock its time has not come: without either, it would be started again when that
// comes.
func (p *planner) retire(end batchv1.JobConditionType, word string, limit *int32) {
	if limit == nil {
		return
	}
	var ended []job
	for _, j := range p.jobs {
		if j.owned && j.finished == end && j.DeletionTimestamp == nil {
			ended = append(ended, j)
		}
	}
	for _, j := range oldestFirst(ended)[:max(0, len(ended)-int(*limit))] {
		if last := p.status.LastScheduleTime; j.at.IsZero() || last != nil && !last.Time.Before(j.at) {
			p.surplus = append(p.surplus, removal{j, fmt.Sprintf("%d %s jobs are kept", *limit, word)})
		}
	}
}

// schedule finds out whether a Job is due, and when the next one is.
func (p *planner) schedule() {
	spec := &p.cronJob.Spec
	times, wrong := parse(spec)
	switch {
	case wrong != nil && wrong.reason == "UnknownTimeZone":
		p.warn(wrong.reason, wrong.message, wrong.message)
		return
	case spec.Suspend != nil && *spec.Suspend:
		return
	case wrong != nil:
		p.warn(wrong.reason, wrong.message, wrong.message)
		return
	case namesZone(spec):
		p.warn("UnsupportedSchedule", spec.Schedule, fmt.Sprintf(
			"CRON_TZ or TZ used in schedule %q is not officially supported, see "+
				"https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details; use spec.timeZone", spec.Schedule))
	}
	after := p.after()
	if times.never(after) && times.never(p.now) {
		p.warn("InvalidSchedule", spec.Schedule, fmt.Sprintf("invalid schedule: %s: no time matches it in the next five years", spec.Schedule))
		return
	}
	p.lookAgain(times.next(after, p.now).Sub(p.now))
	if due := times.latest(after, p.now); !due.IsZero() {
		p.due(times, after, due)
	} else if last := p.status.LastScheduleTime; after.Sub(p.now) > recheck && last != nil && last.Time.Equal(after) {
		p.warn("LastScheduleTimeInFuture", after.String(), fmt.Sprintf("status.lastScheduleTime is %s, which is in the future: "+
			"no Job is started before then; a clock was wrong, or is", after.UTC().Format(time.RFC3339)))
	}
}

// after is the time after which Jobs are due: the one that was served last, or the creation of the CronJob.
func (p *planner) after() time.Time {
	out := p.cronJob.CreationTimestamp.Time
	if p.status.LastScheduleTime != nil {
		out = p.status.LastScheduleTime.Time
	}
	for _, known := range []time.Time{p.since, p.begun} {
		if known.After(out) && !known.After(p.now) { // the clock may have been set back: what is to come does not matter yet
			out = known
		}
	}
	return out
}

// due decides what becomes of a time that is due and was not served.
func (p *planner) due(times schedule, after, at time.Time) {
	spec, key, name := &p.cronJob.Spec, at.UTC().Format(time.RFC1123Z), nameAt(p.cronJob, at)
	started := p.there(name)
	if !started {
		p.owed = at
	}
	earliest := after
	if spec.StartingDeadlineSeconds != nil {
		earliest = p.now.Add(-time.Duration(*spec.StartingDeadlineSeconds) * time.Second)
		if at.Before(earliest) {
			p.warn("MissSchedule", key, "Missed scheduled time to start a job: "+key)
			return
		}
	}
	if times.count(after, earliest, p.now, many+1) > many {
		p.warn("TooManyMissedTimes", key,
			"too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew")
	}
	if started {
		return // two times of one minute have one Job
	}
	if spec.ConcurrencyPolicy == batchv1.ForbidConcurrent && len(p.status.Active) > 0 {
		p.tell(event{
			reason: "JobAlreadyActive", action: "Schedule", key: key,
			note: "Not starting job because prior execution is running and concurrency policy is Forbid",
		})
		return
	}
	if whose := p.taken(name); whose != "" {
		p.again = min(p.again, pollInterval)
		p.warn("FailedCreate", key, fmt.Sprintf("Error creating job: %s exists and belongs to %s; delete or rename it", name, whose))
		return
	}
	p.start = at
	if spec.ConcurrencyPolicy == batchv1.ReplaceConcurrent {
		p.replace()
	}
}

// there reports whether the CronJob's schedule has started a Job of a name.
func (p *planner) there(name string) bool {
	for _, j := range p.jobs {
		if j.Name == name && j.owned && !j.at.IsZero() {
			return true
		}
	}
	return false
}

// replace finds the Jobs that run, and that the next one takes the place of. Those that no schedule has started are no
// part of it.
func (p *planner) replace() {
	for _, j := range p.jobs {
		if lists(p.status.Active, j.UID) && j.owned && j.DeletionTimestamp == nil {
			p.replaced = append(p.replaced, j)
		}
	}
}

// started returns the status after a Job was started and those of replaced were deleted.
func (p *plan) started(o *batchv1.Job) batchv1.CronJobStatus {
	out := *p.status.DeepCopy()
	out.Active = nil
	for _, ref := range p.status.Active {
		gone := false
		for _, j := range p.replaced {
			gone = gone || j.UID == ref.UID
		}
		if !gone {
			out.Active = append(out.Active, ref)
		}
	}
	if o != nil {
		out.Active = append(out.Active, referenceTo(o))
		out.LastScheduleTime = &metav1.Time{Time: p.start}
	}
	return out
}
