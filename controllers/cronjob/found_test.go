package cronjob

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cairn-dev/cairn/internal/fakeserver"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

// What the simulation found: each of these broke a promise once.

// serving is a reconciler over a fake API server, from which it reads everything.
type serving struct {
	*fakeserver.Server

	t testing.TB
	r *Reconciler
}

// serve serves the CronJob of a world and its Jobs.
func (w *world) serve() *serving {
	w.t.Helper()
	objects := []client.Object{w.f.cronJob}
	for _, j := range w.f.jobs {
		objects = append(objects, j.Job)
	}
	s := &serving{t: w.t, Server: fakeserver.NewWith(w.t, fakeserver.Kinds{
		Status:  []client.Object{&batchv1.CronJob{}, &batchv1.Job{}},
		Indexed: []client.Object{&batchv1.Job{}, &appsv1.ControllerRevision{}},
		More: func(b *fake.ClientBuilder) *fake.ClientBuilder {
			return b.WithIndex(&batchv1.Job{}, createdByIndex, indexCreatedBy)
		},
	}, objects...)}
	s.r = newReconciler(w.config(s, s), false)
	return s
}

// config returns the config of a controller whose cache is c and whose API server is live.
func (w *world) config(c client.Client, live client.Reader) pass.Config {
	return pass.Config{
		Kind: cronJobs, Client: c, Live: live, Consistency: ownership.NewConsistencyStore(nil), Recorder: &fakeserver.Recorder{},
		Clock: testingclock.NewFakeClock(w.f.now),
	}
}

func (s *serving) pass() error {
	_, err := s.r.Reconcile(s.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "nightly"}})
	return err
}

func (s *serving) revisions() (names []string) {
	s.t.Helper()
	var all appsv1.ControllerRevisionList
	if err := s.Raw.List(s.t.Context(), &all); err != nil {
		s.t.Fatal(err)
	}
	for i := range all.Items {
		names = append(names, all.Items[i].Name)
	}
	return names
}

// A revision that somebody has copied is deleted, and the Jobs that come from it are pointed at the other. Jobs have no
// label by which the CronJob selects: a look past the cache that asked for one found none, and the CronJob waited for
// ever for Jobs that are there.
func TestDuplicateRevisionBesideAJob(t *testing.T) {
	w := newWorld(t, "11:00:30").job("11:00:00", "").active().served("11:00:00")
	s := w.serve()
	if err := s.pass(); err != nil {
		t.Fatal(err)
	}
	var all appsv1.ControllerRevisionList
	if err := s.Raw.List(t.Context(), &all); err != nil || len(all.Items) != 1 {
		t.Fatal(len(all.Items), err)
	}
	twin := all.Items[0].DeepCopy()
	twin.Name, twin.UID, twin.ResourceVersion = "nightly-twin", "twin", ""
	twin.Labels[hashLabel] = "twin"
	if err := s.Raw.Create(t.Context(), twin); err != nil {
		t.Fatal(err)
	}
	for range 3 { // a pass may end with what it has found past the cache
		if err := s.pass(); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.revisions(); len(got) != 1 {
		t.Errorf("there are still %v", got)
	}
}

// The clock was set back, so that a Job that has finished is for a time to come. It stays, whatever the limit: nothing
// else would say, when that time comes, that it was started.
func TestAJobOfTheFutureIsKept(t *testing.T) {
	limit := func(s *batchv1.CronJobSpec) { s.SuccessfulJobsHistoryLimit = new(int32(0)) }
	newWorld(t, "11:30:00").served("11:00:00").spec(limit).
		job("11:00:00", batchv1.JobComplete).job("14:00:00", batchv1.JobComplete).
		is("drop 11:00:00 (0 successful jobs are kept), again in 1m0s")
}

// A suspended CronJob has no time to wait for, but for that of such a Job.
func TestAJobOfTheFutureIsAccountedForThen(t *testing.T) {
	suspended := func(s *batchv1.CronJobSpec) { s.Suspend = new(true) }
	newWorld(t, "11:59:50").served("11:00:00").spec(suspended).job("12:00:00", batchv1.JobComplete).is("again in 10s")
	w := newWorld(t, "12:00:00").served("11:00:00").spec(suspended).job("12:00:00", batchv1.JobComplete)
	w.is("")
	if s := makePlan(w.f).status; !s.LastScheduleTime.Time.Equal(hour(t, "12:00:00")) {
		t.Errorf("the last time was %v", s.LastScheduleTime)
	}
}

// A Job without a ControllerRef wakes nobody when it has finished. A CronJob that waits for no time looks nevertheless.
func TestAJobThatNobodyOwnsIsLookedAt(t *testing.T) {
	suspended := func(s *batchv1.CronJobSpec) { s.Suspend = new(true) }
	released := func(j *batchv1.Job) { j.OwnerReferences = nil }
	newWorld(t, "11:30:00").served("11:00:00").spec(suspended).job("11:00:00", "", released).active().is("again in 10s")
	newWorld(t, "11:30:00").served("11:00:00").spec(suspended).job("11:00:00", "").active().is("")
}

// The status cannot be written, and a Job is deleted as soon as it has finished. It is not started again, in this
// process, and the status says so when it can be written.
func TestWhatThisProcessHasStarted(t *testing.T) {
	w := newWorld(t, "11:00:10").served("10:00:00")
	s := w.serve()
	refused := true
	s.Before = func(c fakeserver.Call) error {
		if refused && c.Verb == "patch status" {
			return errors.New("denied")
		}
		return nil
	}
	for range 3 {
		if err := s.pass(); err == nil {
			t.Error("the pass has not failed")
		}
		if err := s.Raw.DeleteAllOf(t.Context(), &batchv1.Job{}, client.InNamespace("default")); err != nil {
			t.Fatal(err)
		}
	}
	if jobs := s.Calls("create"); len(slices.DeleteFunc(jobs, func(c fakeserver.Call) bool { return c.Kind != "Job" })) != 1 {
		t.Errorf("it has asked for %v", jobs)
	}
	refused = false
	if err := s.pass(); err != nil {
		t.Fatal(err)
	}
	var now batchv1.CronJob
	if err := s.Raw.Get(t.Context(), client.ObjectKeyFromObject(w.f.cronJob), &now); err != nil {
		t.Fatal(err)
	}
	if last := now.Status.LastScheduleTime; last == nil || !last.Time.Equal(hour(t, "11:00:00")) {
		t.Errorf("the last time is %v", last)
	}
}

// A Job was started for an earlier time, within its deadline, and nothing says so: the process ended then, or the
// response was lost, and the cache does not show it. Beside it none is started, also where only one time is within the
// deadline now.
func TestForbidsBesideAJobThatNothingShows(t *testing.T) {
	w := newWorld(t, "12:00:05").served("10:00:00").spec(func(s *batchv1.CronJobSpec) {
		s.ConcurrencyPolicy, s.StartingDeadlineSeconds = batchv1.ForbidConcurrent, new(int64(10))
	})
	stale := w.serve()
	w.job("11:00:00", "")
	s := w.serve()
	s.r = newReconciler(w.config(fakeserver.Cached(s.Server, stale.Server), s), false)
	if err := s.pass(); err != nil {
		t.Fatal(err)
	}
	if creates := s.WritesTo("Job"); len(creates) > 0 {
		t.Errorf("beside a job that runs: %v", creates)
	}
}

// The Job that is to be replaced has changed since it was read, as Jobs do when they start. It is still there, so that
// no other one is started beside it; the next pass knows better.
func TestReplacesWhatHasChanged(t *testing.T) {
	w := newWorld(t, "12:00:05").served("11:00:00").spec(func(s *batchv1.CronJobSpec) { s.ConcurrencyPolicy = batchv1.ReplaceConcurrent })
	s := w.job("11:00:00", "").active().serve()
	changed := false
	s.Before = func(c fakeserver.Call) error {
		if c.Verb != "delete" || changed {
			return nil
		}
		changed = true
		var j batchv1.Job
		if err := s.Raw.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: c.Name}, &j); err != nil {
			return err
		}
		j.Status.Active = 1
		if err := s.Raw.Status().Update(t.Context(), &j); err != nil {
			return err
		}
		return apierrors.NewConflict(jobResource, c.Name, errors.New("it has changed"))
	}
	for n, want := range []string{"delete", "delete delete create"} {
		if err := s.pass(); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range s.Calls("create", "delete") {
			if c.Kind == "Job" {
				got = append(got, c.Verb)
			}
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("after pass %d: %s, want %s", n+1, got, want)
		}
	}
}

// What was started for a time that is to come, because the clock was ahead, keeps no time from being served until then.
func TestWhatWasStartedForATimeToCome(t *testing.T) {
	w := newWorld(t, "11:00:00").served("10:00:00")
	w.f.begun = hour(t, "12:00:00")
	w.is("start 11:00:00, again in 1m0s")
	w.f.now = hour(t, "12:00:10")
	w.is("again in 1m0s")
}

// A schedule that was edited while the clock was ahead is not put off until that time comes again.
func TestAnEditOfTheFuture(t *testing.T) {
	w, m := newWorld(t, "10:00:00"), &memories{}
	m.since(w.f.cronJob, hour(t, "16:00:00"))
	w.f.cronJob.Spec.Schedule = "30 * * * *"
	if got := m.since(w.f.cronJob, hour(t, "16:00:10")); !got.Equal(hour(t, "16:00:00")) {
		t.Errorf("it is in force since %v", got)
	}
	for _, now := range []string{"11:10:00", "11:40:00"} {
		if got := m.since(w.f.cronJob, hour(t, now)); !got.Equal(hour(t, "11:10:00")) {
			t.Errorf("at %s, it is in force since %v", now, got)
		}
	}
}

// A person may give a Job that belongs to the CronJob the name of one of its times. The schedule has not started it: it
// is not replaced, it is no reason not to start another one, and the name is taken.
func TestAJobByHandUnderANameOfTheSchedule(t *testing.T) {
	byHand := func(j *batchv1.Job) { j.Annotations[instantiateAnnotation] = "manual" }
	w := newWorld(t, "12:00:00").served("11:00:00").spec(func(s *batchv1.CronJobSpec) { s.ConcurrencyPolicy = batchv1.ReplaceConcurrent })
	w.job("11:00:00", "", byHand).is("start 12:00:00, again in 1m0s")
	w.job("12:00:00", "", byHand).f.taken = func(string) string { return "CronJob nightly" }
	w.is("FailedCreate, again in 10s")
}

// Where Jobs cannot be deleted, one is asked for in a pass, and not all that have piled up.
func TestRefusedDeletesAreFew(t *testing.T) {
	w := newWorld(t, "15:30:00").served("15:00:00").spec(func(s *batchv1.CronJobSpec) { s.SuccessfulJobsHistoryLimit = new(int32(0)) })
	for n := range 5 {
		w.job(fmt.Sprintf("1%d:00:00", n+1), batchv1.JobComplete)
	}
	w.f.cronJob.Status.LastSuccessfulTime = &metav1.Time{Time: hour(t, "15:01:00")}
	s := w.serve()
	s.Before = func(c fakeserver.Call) error {
		if c.Verb == "delete" {
			return errors.New("denied")
		}
		return nil
	}
	if err := s.pass(); err == nil {
		t.Error("the pass has not failed")
	}
	deletes := slices.DeleteFunc(s.Calls(), func(c fakeserver.Call) bool { return !strings.HasPrefix(c.String(), "delete ") })
	if len(deletes) != 1 {
		t.Errorf("it asked for %v", deletes)
	}
}
