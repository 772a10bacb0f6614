package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/manager"
)

// This file runs CronJobs under cairn, with a clock that tests set; the Job controller, the garbage collector and the
// pods are real.

// shifted is the system's clock, ahead of it or behind.
type shifted struct {
	clock.RealClock

	by atomic.Int64
}

func (c *shifted) Now() time.Time                  { return time.Now().Add(time.Duration(c.by.Load())) }
func (c *shifted) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// set puts the clock to a time.
func (c *shifted) set(to time.Time) { c.by.Store(int64(time.Until(to))) }

// cron is a CronJob that is due every hour, and the clock of who runs it.
type cron struct {
	*env
	*batchv1.CronJob

	clock *shifted
	// hour is the first full hour after it was created.
	hour time.Time
}

// newCron creates a CronJob.
func newCron(t *testing.T, change ...func(*batchv1.CronJobSpec)) *cron {
	t.Helper()
	e := newEnv(t)
	o := &batchv1.CronJob{}
	o.Name, o.Namespace = "nightly", e.namespace
	o.Spec.Schedule, o.Spec.TimeZone = "0 * * * *", new("Etc/UTC")
	o.Spec.JobTemplate.Spec.Template.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "app:1"}},
	}
	for _, c := range change {
		c(&o.Spec)
	}
	e.create(o)
	return &cron{env: e, CronJob: o, clock: &shifted{}, hour: o.CreationTimestamp.Truncate(time.Hour).Add(time.Hour)}
}

// cairn runs cairn's controller by a clock.
func (c *cron) cairnBy(by *shifted) (stop func()) {
	c.Helper()
	return c.cairnWith(func(*rest.Config) {}, manager.Options{Controllers: []string{"cronjob"}, AskServer: true, Clock: by})
}

// after sets the clock to some time after the n-th hour, and lets the controller look at it.
func (c *cron) after(n int, more time.Duration) {
	c.Helper()
	c.clock.set(c.at(n).Add(more))
	c.wake()
}

// at is the n-th hour that is due.
func (c *cron) at(n int) time.Time { return c.hour.Add(time.Duration(n-1) * time.Hour) }

func (c *cron) wake() {
	c.Helper()
	c.patched(fmt.Sprintf(`{"metadata":{"annotations":{"looked":%q}}}`, time.Now().Format(time.RFC3339Nano)))
}

func (c *cron) patched(body string) {
	c.Helper()
	must(c.T, c.Patch(c.Context(), &batchv1.CronJob{ObjectMeta: c.ObjectMeta}, client.RawPatch("application/merge-patch+json", []byte(body))))
}

func (c *cron) image(image string) {
	c.Helper()
	c.patched(`{"spec":{"jobTemplate":{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"` + image + `"}]}}}}}}`)
}

// jobs are the Jobs by name.
func (c *cron) jobs() map[string]*batchv1.Job {
	c.Helper()
	var all batchv1.JobList
	must(c.T, c.List(c.Context(), &all, client.InNamespace(c.Namespace)))
	out := map[string]*batchv1.Job{}
	for i := range all.Items {
		out[all.Items[i].Name] = &all.Items[i]
	}
	return out
}

// are waits until the Jobs are just these: the hour, the image, with a + if it has succeeded.
func (c *cron) are(want string) {
	c.Helper()
	c.eventually("the jobs "+want, func() error {
		jobs, got := c.jobs(), []string(nil)
		for n := 1; n < 60; n++ {
			name := fmt.Sprintf("%s-%d", c.Name, c.at(n).Unix()/60)
			if j := jobs[name]; j != nil {
				text := fmt.Sprintf("%d=%s", n, j.Spec.Template.Spec.Containers[0].Image)
				if j.Status.Succeeded > 0 && j.Status.CompletionTime != nil {
					text += "+"
				}
				got = append(got, text)
			}
			delete(jobs, name)
		}
		got = append(got, slices.Sorted(maps.Keys(jobs))...)
		if text := strings.Join(got, " "); text != want {
			return fmt.Errorf("they are %q", text)
		}
		return nil
	})
}

// says waits until the status is as it should be.
func (c *cron) says(what string, ok func(s batchv1.CronJobStatus) bool) {
	c.Helper()
	c.eventually("the status says "+what, func() error {
		var now batchv1.CronJob
		if err := c.Get(c.Context(), client.ObjectKeyFromObject(c.CronJob), &now); err != nil {
			return err
		}
		if !ok(now.Status) {
			return fmt.Errorf("it says %+v", now.Status)
		}
		return nil
	})
}

// reasons waits for an event.
func (c *cron) reasons(want string) {
	c.Helper()
	c.eventually("the event "+want, func() error {
		var all corev1.EventList
		if err := c.List(c.Context(), &all, client.InNamespace(c.Namespace)); err != nil {
			return err
		}
		var got []string
		for i := range all.Items {
			if e := &all.Items[i]; e.InvolvedObject.Kind == "CronJob" {
				if e.Reason == want {
					return nil
				}
				got = append(got, e.Reason)
			}
		}
		return fmt.Errorf("there are %v", got)
	})
}

// A CronJob starts Jobs, keeps as many as it is asked to, and has a history of their template.
func TestCronJob(t *testing.T) {
	c := newCron(t, func(s *batchv1.CronJobSpec) { s.SuccessfulJobsHistoryLimit = new(int32(2)) })
	c.cairnBy(c.clock)
	c.after(1, 0)
	c.are("1=app:1+")
	c.says("when a job succeeded", func(s batchv1.CronJobStatus) bool {
		return len(s.Active) == 0 && s.LastSuccessfulTime != nil && s.LastScheduleTime.Time.Equal(c.at(1))
	})
	c.image("app:2")
	c.after(2, time.Minute)
	c.are("1=app:1+ 2=app:2+")
	c.after(3, time.Minute)
	c.are("2=app:2+ 3=app:2+")
	c.reasons("SuccessfulCreate")
	c.reasons("SuccessfulDelete")
	c.eventually("the pods of the deleted job are deleted", func() error {
		var pods corev1.PodList
		if err := c.List(t.Context(), &pods, client.InNamespace(c.Namespace)); err != nil {
			return err
		}
		if len(pods.Items) != 2 {
			return fmt.Errorf("there are %d", len(pods.Items))
		}
		return nil
	})

	out := c.cli("history", "cronjob/nightly")
	t.Log(out)
	if strings.Count(out, "nightly-") != 2 {
		t.Errorf("cairn history:\n%s", out)
	}
	if out := c.cli("diff", "cronjob/nightly", "--revision", "1"); !strings.Contains(out, "app:1") || !strings.Contains(out, "app:2") {
		t.Errorf("cairn diff:\n%s", out)
	}
	c.cli("undo", "cronjob/nightly")
	c.after(4, time.Minute)
	c.are("3=app:2+ 4=app:1+")
	t.Log(c.cli("history", "cronjob/nightly"))
	if out := c.cli("status", "cronjob/nightly"); !strings.Contains(out, "cronjob.batch/nightly is done: ") {
		t.Errorf("cairn status:\n%s", out)
	}
}

// watched counts how often a Job of each name is created from now on.
func (c *cron) watched() (created func() map[string]int) {
	c.Helper()
	watch, err := c.Watch(c.Context(), &batchv1.JobList{}, client.InNamespace(c.Namespace))
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(watch.Stop)
	var mu sync.Mutex
	names := map[string]int{}
	go func() {
		for event := range watch.ResultChan() {
			if j, ok := event.Object.(*batchv1.Job); ok && event.Type == "ADDED" {
				mu.Lock()
				names[j.Name]++
				mu.Unlock()
			}
		}
	}()
	return func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(names)
	}
}

// A CronJob is handed over while a time is due that nobody has served, and back: each minute has one Job, and none is
// touched.
func TestCronJobHandover(t *testing.T) {
	upstream := func(c *cron, _ time.Time) func() { return c.upstreamOf("cronjob") }
	cairn := func(c *cron, now time.Time) func() {
		c.clock.set(now)
		return c.cairnBy(c.clock)
	}
	for name, test := range map[string]struct {
		first, second func(*cron, time.Time) func()
		// at are the times at which the two serve, as far from now. The built-in controller goes by the system's clock.
		firstAt, secondAt time.Duration
	}{
		"upstream to cairn": {upstream, cairn, 0, 2 * time.Minute},
		"cairn to upstream": {cairn, upstream, -5 * time.Minute, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCron(t, func(s *batchv1.CronJobSpec) { s.Schedule, s.ConcurrencyPolicy = "* * * * *", batchv1.ForbidConcurrent })
			started := time.Now()
			c.Status.LastScheduleTime = &metav1.Time{Time: started.Truncate(time.Minute).Add(-10 * time.Minute)}
			must(t, c.env.Status().Update(t.Context(), c.CronJob))
			created := c.watched()
			serves := func(since time.Time, d time.Duration) {
				t.Helper()
				c.says("which minute was served, and that its job has succeeded", func(s batchv1.CronJobStatus) bool {
					at := s.LastScheduleTime.Time // a minute may have begun meanwhile
					return !at.Before(since.Add(d).Truncate(time.Minute)) && len(s.Active) == 0 && s.LastSuccessfulTime != nil
				})
			}
			stop := test.first(c, started.Add(test.firstAt))
			serves(started, test.firstAt)
			stop()
			before := c.jobs()
			again := time.Now()
			stop = test.second(c, again.Add(test.secondAt))
			serves(again, test.secondAt)
			stop()
			after := c.jobs()
			if len(after) <= len(before) {
				t.Errorf("there are %v, and there were %v", slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(before)))
			}
			for name, j := range before {
				if after[name] == nil || after[name].UID != j.UID {
					t.Errorf("job %s was replaced", name)
				}
			}
			for name, n := range created() {
				if n != 1 {
					t.Errorf("job %s was created %d times", name, n)
				}
			}
			if revisions := c.revisionsOf(c.Namespace, &metav1.LabelSelector{}); len(revisions) != 1 {
				t.Errorf("%d revisions, want 1", len(revisions))
			}
		})
	}
}
