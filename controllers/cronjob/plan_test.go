package cronjob

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// world is a CronJob that is due every hour, created at ten, and its Jobs.
type world struct {
	f facts
	t testing.TB
}

func newWorld(t testing.TB, now string) *world {
	t.Helper()
	cj := &batchv1.CronJob{}
	cj.Name, cj.Namespace, cj.UID = "nightly", "default", "cj"
	cj.CreationTimestamp = metav1.NewTime(at(t, "2026-01-01T10:00:00Z"))
	cj.Spec.Schedule, cj.Spec.TimeZone = "0 * * * *", new("Etc/UTC")
	return &world{t: t, f: facts{cronJob: cj, now: hour(t, now), taken: func(string) string { return "" }}}
}

// hour is a time of that day.
func hour(t testing.TB, text string) time.Time {
	t.Helper()
	return at(t, "2026-01-01T"+text+"Z")
}

func (w *world) spec(set func(s *batchv1.CronJobSpec)) *world {
	set(&w.f.cronJob.Spec)
	return w
}

// served says which time was served last.
func (w *world) served(text string) *world {
	w.f.cronJob.Status.LastScheduleTime = &metav1.Time{Time: hour(w.t, text)}
	return w
}

// job adds the Job of a time. end is a condition, empty while it runs.
func (w *world) job(text string, end batchv1.JobConditionType, set ...func(j *batchv1.Job)) *world {
	when := hour(w.t, text)
	j, err := jobAt(w.f.cronJob, when, "")
	if err != nil {
		w.t.Fatal(err)
	}
	j.UID = types.UID(text)
	j.Status.StartTime = &metav1.Time{Time: when}
	if end != "" {
		j.Status.Conditions = []batchv1.JobCondition{{Type: end, Status: corev1.ConditionTrue}}
		if end == batchv1.JobComplete {
			j.Status.CompletionTime = &metav1.Time{Time: when.Add(time.Minute)}
		}
	}
	for _, s := range set {
		s(j)
	}
	w.f.jobs = append(w.f.jobs, judge(w.f.cronJob, j, true))
	return w
}

// active lists the last Job in the status.
func (w *world) active() *world {
	w.f.cronJob.Status.Active = append(w.f.cronJob.Status.Active, referenceTo(w.f.jobs[len(w.f.jobs)-1].Job))
	return w
}

// does says what a plan does, in words.
func (w *world) does() string {
	p := makePlan(w.f)
	var out []string
	for _, j := range p.replaced {
		out = append(out, "delete "+string(j.UID))
	}
	if !p.start.IsZero() {
		out = append(out, "start "+p.start.UTC().Format("15:04:05"))
	}
	for _, s := range p.surplus {
		out = append(out, fmt.Sprintf("drop %s (%s)", s.job.UID, s.reason))
	}
	for _, e := range p.events {
		out = append(out, e.reason)
	}
	if p.again > 0 {
		out = append(out, "again in "+p.again.String())
	}
	return strings.Join(out, ", ")
}

func (w *world) is(want string) {
	w.t.Helper()
	if got := w.does(); got != want {
		w.t.Errorf("got  %s\nwant %s", got, want)
	}
}

func policy(p batchv1.ConcurrencyPolicy) func(*batchv1.CronJobSpec) {
	return func(s *batchv1.CronJobSpec) { s.ConcurrencyPolicy = p }
}

func every(s string) func(*batchv1.CronJobSpec) {
	return func(spec *batchv1.CronJobSpec) { spec.Schedule = s }
}

func zone(name string) func(*batchv1.CronJobSpec) {
	return func(spec *batchv1.CronJobSpec) {
		if spec.TimeZone = &name; name == "" {
			spec.TimeZone = nil
		}
	}
}

func suspend(is bool) func(*batchv1.CronJobSpec) {
	return func(spec *batchv1.CronJobSpec) { spec.Suspend = &is }
}

func deadline(seconds int64) func(*batchv1.CronJobSpec) {
	return func(spec *batchv1.CronJobSpec) {
		if spec.StartingDeadlineSeconds = &seconds; seconds == 0 {
			spec.StartingDeadlineSeconds = nil
		}
	}
}

func TestAJobIsStartedWhenItIsDue(t *testing.T) {
	newWorld(t, "10:59:30").is("again in 30s")
	newWorld(t, "11:00:00").is("start 11:00:00, again in 1m0s")
	newWorld(t, "11:00:00").served("11:00:00").is("again in 1m0s")
	newWorld(t, "11:59:59").served("11:00:00").is("again in 1s")
}

// TestAJumpIsNoticedWithinAMinute: a timer does not know that the clock was set.
func TestAJumpIsNoticedWithinAMinute(t *testing.T) { newWorld(t, "10:01:00").is("again in 1m0s") }

func TestOnlyTheLatestMissedTimeIsServed(t *testing.T) {
	newWorld(t, "20:30:00").served("10:00:00").is("start 20:00:00, again in 1m0s")
}

func TestTooManyMissedTimes(t *testing.T) {
	often := func(s *batchv1.CronJobSpec) { s.Schedule = "* * * * *" }
	newWorld(t, "11:40:00").spec(often).is("start 11:40:00, again in 1m0s")
	newWorld(t, "11:41:00").spec(often).is("start 11:41:00, TooManyMissedTimes, again in 1m0s")
	newWorld(t, "11:41:00").spec(often).spec(deadline(300)).is("start 11:41:00, again in 1m0s")
}

func TestStartingDeadline(t *testing.T) {
	newWorld(t, "11:05:00").spec(deadline(300)).is("start 11:00:00, again in 1m0s")
	newWorld(t, "11:05:01").spec(deadline(300)).is("MissSchedule, again in 1m0s")
	every := func(s *batchv1.CronJobSpec) { s.Schedule = "@every 1h" }
	newWorld(t, "11:00:02").spec(every).spec(deadline(10)).is("start 11:00:00, again in 1m0s")
}

func TestSuspended(t *testing.T) {
	newWorld(t, "11:00:00").spec(func(s *batchv1.CronJobSpec) { s.Suspend = new(true) }).is("")
	// kubernetes.io, "Schedule suspension": what was missed is started when it is over, if there is no deadline.
	newWorld(t, "12:30:00").is("start 12:00:00, again in 1m0s")
}

func TestConcurrencyPolicies(t *testing.T) {
	running := func() *world { return newWorld(t, "12:00:00").served("11:00:00").job("11:00:00", "").active() }
	running().spec(policy(batchv1.AllowConcurrent)).is("start 12:00:00, again in 1m0s")
	running().spec(policy(batchv1.ForbidConcurrent)).is("JobAlreadyActive, again in 1m0s")
	running().spec(policy(batchv1.ReplaceConcurrent)).is("delete 11:00:00, start 12:00:00, again in 1m0s")
}

// TestForbiddenStartIsMadeUpFor: the Job is started late, when the one before it ends (kubernetes.io, "Concurrency
// policy").
func TestForbiddenStartIsMadeUpFor(t *testing.T) {
	newWorld(t, "12:20:00").served("11:00:00").job("11:00:00", batchv1.JobComplete).active().spec(policy(batchv1.ForbidConcurrent)).
		is("start 12:00:00, SawCompletedJob, again in 1m0s")
}

// TestAJobThatTheStatusForgotCounts: the process ended after the create, or the write of the status failed.
func TestAJobThatTheStatusForgotCounts(t *testing.T) {
	forgotten := func() *world {
		return newWorld(t, "12:00:00").job("11:00:00", "").spec(policy(batchv1.ForbidConcurrent))
	}
	forgotten().is("JobAlreadyActive, again in 1m0s")
	s := makePlan(forgotten().f).status
	if len(s.Active) != 1 || s.Active[0].UID != "11:00:00" || !s.LastScheduleTime.Equal(&metav1.Time{Time: hour(t, "11:00:00")}) {
		t.Errorf("got %+v", s)
	}
	newWorld(t, "11:30:00").job("11:00:00", batchv1.JobComplete).is("again in 1m0s")
}

// TestAJobThatAPersonMade is neither counted nor deleted: kubectl create job --from gives it the ControllerRef.
func TestAJobThatAPersonMade(t *testing.T) {
	byHand := func(j *batchv1.Job) {
		j.Name = "by-hand"
		j.Annotations = map[string]string{instantiateAnnotation: "manual"}
	}
	w := newWorld(t, "12:00:00").served("11:00:00").job("11:00:00", "", byHand).spec(policy(batchv1.ReplaceConcurrent))
	w.is("start 12:00:00, again in 1m0s")
	if s := makePlan(w.f).status; len(s.Active) != 0 {
		t.Errorf("it is listed: %+v", s.Active)
	}
	newWorld(t, "12:00:00").served("11:00:00").job("11:00:00", "", byHand).spec(policy(batchv1.ForbidConcurrent)).is("start 12:00:00, again in 1m0s")
}

func TestUnexpectedJob(t *testing.T) {
	newWorld(t, "11:30:00").served("11:00:00").job("11:00:00", "", func(j *batchv1.Job) { j.Name = "stranger" }).is("UnexpectedJob, again in 1m0s")
}

func TestAnActiveJobThatIsDeleted(t *testing.T) {
	w := newWorld(t, "11:30:00").served("11:00:00").job("11:00:00", "").active()
	w.f.jobs = nil
	w.is("MissingJob, again in 1m0s")
	if s := makePlan(w.f).status; len(s.Active) != 0 {
		t.Errorf("it is listed: %+v", s.Active)
	}
}

// TestAnActiveJobThatLostItsOwner runs all the same, so that it counts; but it is nobody's to delete.
func TestAnActiveJobThatLostItsOwner(t *testing.T) {
	lost := func(p batchv1.ConcurrencyPolicy) *world {
		w := newWorld(t, "12:00:00").served("11:00:00").job("11:00:00", "").active().spec(policy(p))
		w.f.jobs[0] = judge(w.f.cronJob, w.f.jobs[0].Job, false)
		return w
	}
	lost(batchv1.ForbidConcurrent).is("JobAlreadyActive, again in 1m0s")
	lost(batchv1.ReplaceConcurrent).is("start 12:00:00, again in 1m0s")
}

func TestHistoryLimits(t *testing.T) {
	w := newWorld(t, "15:30:00").served("15:00:00").spec(func(s *batchv1.CronJobSpec) {
		s.SuccessfulJobsHistoryLimit, s.FailedJobsHistoryLimit = new(int32(2)), new(int32(0))
	})
	for _, when := range []string{"14:00:00", "11:00:00", "13:00:00", "12:00:00"} {
		w.job(when, batchv1.JobComplete)
	}
	w.job("10:00:00", batchv1.JobFailed).job("15:00:00", "").active()
	w.is("drop 11:00:00 (2 successful jobs are kept), drop 12:00:00 (2 successful jobs are kept), drop 10:00:00 (0 failed jobs are kept), " +
		"again in 1m0s")
	if s := makePlan(w.f).status; !s.LastSuccessfulTime.Equal(&metav1.Time{Time: hour(t, "14:01:00")}) {
		t.Errorf("the last success was at %v", s.LastSuccessfulTime)
	}
}

func TestNamesThatAreTaken(t *testing.T) {
	w := newWorld(t, "11:00:00")
	w.f.taken = func(name string) string {
		if name != nameAt(w.f.cronJob, hour(t, "11:00:00")) {
			t.Errorf("asked for %s", name)
		}
		return "CronJob other"
	}
	w.is("FailedCreate, again in 10s")
}

// TestTwoTimesOfOneMinute have one name, and so one Job.
func TestTwoTimesOfOneMinute(t *testing.T) {
	newWorld(t, "10:00:45").spec(func(s *batchv1.CronJobSpec) { s.Schedule = "@every 20s" }).
		job("10:00:20", "").active().served("10:00:20").is("again in 15s")
}

// TestAScheduleIsForTimesThatCome: an edit does not start a Job for a time before it.
func TestAScheduleIsForTimesThatCome(t *testing.T) {
	var m memories
	w := newWorld(t, "13:00:00").served("11:00:00").spec(func(s *batchv1.CronJobSpec) { s.Schedule = "0 11 * * *" })
	if since := m.since(w.f.cronJob, hour(t, "12:59:30")); !since.IsZero() {
		t.Fatal(since)
	}
	w.spec(func(s *batchv1.CronJobSpec) { s.Schedule = "30 12 * * *" })
	w.f.since = m.since(w.f.cronJob, w.f.now)
	w.is("again in 1m0s")
	w.spec(func(s *batchv1.CronJobSpec) { s.Schedule = "0 13 * * *" })
	w.f.since = m.since(w.f.cronJob, w.f.now)
	w.is("again in 1m0s")
	w.f.since = hour(t, "12:59:30") // the edit came between the last pass and one o'clock
	w.is("start 13:00:00, again in 1m0s")
}

// TestAnEditWhileAJobIsOwed: an edit does not cancel the Job of twelve o'clock, which waits for the end of another Job.
// Once that Job is started, the new schedule starts none for times before the edit.
func TestAnEditWhileAJobIsOwed(t *testing.T) {
	edits := map[string][]func(*batchv1.CronJobSpec){
		"one":             {every("0 12 * * *")},
		"away and back":   {every("0 0 1 1 *"), every("0 * * * *")},
		"zone and back":   {zone("Asia/Kathmandu"), zone("")},
		"while suspended": {suspend(true), every("0 12 * * *"), suspend(false)},
		"past a deadline": {deadline(60), deadline(0), every("0 12 * * *")},
	}
	for name, edits := range edits {
		t.Run(name, func(t *testing.T) { editWhileOwed(t, edits) })
	}
}

// editWhileOwed edits a CronJob while the Job of 12:00 waits for the Job of 11:00, a pass after each edit.
func editWhileOwed(t *testing.T, edits []func(*batchv1.CronJobSpec)) {
	t.Helper()
	var m memories
	w := newWorld(t, "12:10:00").served("11:00:00").job("11:00:00", "").active().spec(policy(batchv1.ForbidConcurrent))
	pass := func(clock string) *plan {
		w.f.now = hour(t, clock)
		w.f.since = m.since(w.f.cronJob, w.f.now)
		p := makePlan(w.f)
		m.owe(w.f.cronJob.UID, p.owed)
		return p
	}
	if p := pass("12:10:00"); p.owed.IsZero() || !p.start.IsZero() {
		t.Fatalf("owed %s, start %s, want one that waits", p.owed, p.start)
	}
	for _, edit := range edits {
		w.spec(edit)
		pass("12:20:00")
	}
	w.f.jobs, w.f.cronJob.Status.Active = nil, nil
	if p := pass("12:30:00"); !p.start.Equal(hour(t, "12:00:00")) {
		t.Fatalf("start %s, want 12:00", p.start)
	}
	m.start(w.f.cronJob.UID, hour(t, "12:00:00"))
	w.served("12:00:00")
	w.spec(every("15 12 * * *"))
	if p := pass("12:40:00"); !p.start.IsZero() {
		t.Errorf("start %s, which was before the edit", p.start)
	}
}

// TestAStartThatTheStatusDoesNotSay: the status cannot be written, and the Job is deleted as soon as it has finished.
func TestAStartThatTheStatusDoesNotSay(t *testing.T) {
	var m memories
	w := newWorld(t, "11:00:10")
	m.start(w.f.cronJob.UID, hour(t, "11:00:00"))
	w.f.begun = m.started(w.f.cronJob.UID)
	w.is("again in 1m0s")
	w.f.now = hour(t, "12:00:00")
	w.is("start 12:00:00, again in 1m0s")
}

// TestAClockThatIsSetBack and an edit after it do not stop the schedule.
func TestAClockThatIsSetBack(t *testing.T) {
	var m memories
	w := newWorld(t, "18:00:00")
	m.since(w.f.cronJob, w.f.now)
	w.spec(func(s *batchv1.CronJobSpec) { s.Schedule = "*/5 * * * *" })
	m.since(w.f.cronJob, hour(t, "10:58:00"))
	w.f.now = hour(t, "11:00:00")
	w.f.since = m.since(w.f.cronJob, w.f.now)
	w.is("start 11:00:00, again in 1m0s")
}

func TestALastScheduleTimeInTheFutureIsSaid(t *testing.T) {
	newWorld(t, "11:00:00").served("18:00:00").is("LastScheduleTimeInFuture, again in 1m0s")
}

func TestWhatStopsASchedule(t *testing.T) {
	set := func(schedule, zone string) func(*batchv1.CronJobSpec) {
		return func(s *batchv1.CronJobSpec) { s.Schedule, s.TimeZone = schedule, &zone }
	}
	newWorld(t, "11:00:00").spec(set("0 * * * *", "Nowhere/Land")).is("UnknownTimeZone")
	newWorld(t, "11:00:00").spec(set("0 * *", "UTC")).is("UnparseableSchedule")
	newWorld(t, "11:00:00").spec(set("59 23 31 2 *", "UTC")).is("InvalidSchedule")
	newWorld(t, "11:00:00").spec(set("TZ=UTC 0 * * * *", "UTC")).is("start 11:00:00, UnsupportedSchedule, again in 1m0s")
}

func TestJobsOfOldClusters(t *testing.T) {
	o := &batchv1.Job{}
	o.Annotations = map[string]string{createdByAnnotation: `{"kind":"SerializedReference","apiVersion":"v1","reference":` +
		`{"kind":"CronJob","namespace":"default","name":"nightly","uid":"cj","apiVersion":"batch/v2alpha1"}}`}
	if got := indexCreatedBy(o); !slices.Equal(got, []string{"cj"}) {
		t.Errorf("got %v", got)
	}
	o.OwnerReferences = []metav1.OwnerReference{{UID: "other", Controller: new(true)}}
	if got := indexCreatedBy(o); got != nil {
		t.Errorf("the ControllerRef counts, and got %v", got)
	}
	o.OwnerReferences, o.Annotations[createdByAnnotation] = nil, "no JSON"
	if got := indexCreatedBy(o); got != nil {
		t.Errorf("got %v", got)
	}
}

func TestTheJob(t *testing.T) {
	w := newWorld(t, "11:00:00").spec(func(s *batchv1.CronJobSpec) {
		s.TimeZone = new("America/New_York")
		s.JobTemplate.Labels = map[string]string{"app": "nightly"}
		s.JobTemplate.Annotations = map[string]string{"note": "x"}
		s.JobTemplate.Spec.BackoffLimit = new(int32(3))
	})
	j, err := jobAt(w.f.cronJob, hour(t, "11:00:00"), "abc")
	if err != nil {
		t.Fatal(err)
	}
	if j.Name != "nightly-29454420" { // minutes since 1970, as the built-in controller names it
		t.Errorf("name %s", j.Name)
	}
	if got := j.Annotations[batchv1.CronJobScheduledTimestampAnnotation]; got != "2026-01-01T06:00:00-05:00" || j.Annotations["note"] != "x" {
		t.Errorf("annotations %v", j.Annotations)
	}
	if j.Labels["app"] != "nightly" || j.Labels[hashLabel] != "abc" || *j.Spec.BackoffLimit != 3 || !metav1.IsControlledBy(j, w.f.cronJob) {
		t.Errorf("got %+v", j)
	}
	if !scheduledFor(w.f.cronJob, j).Equal(hour(t, "11:00:00")) {
		t.Errorf("scheduled for %s", scheduledFor(w.f.cronJob, j))
	}
}
