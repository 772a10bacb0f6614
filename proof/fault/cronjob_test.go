package fault_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/cairn-dev/cairn/internal/manager"
	"github.com/cairn-dev/cairn/proof/check/parents"
	"github.com/cairn-dev/cairn/proof/fault"
)

// This file is the sweep's subject CronJob. What is due goes by a clock that the scenario sets; the Job controller is
// the real one, and goes by its own.

const cronName = "swept"

var (
	cronJobResource = schema.GroupResource{Group: "batch", Resource: "cronjobs"}
	jobResource     = schema.GroupResource{Group: "batch", Resource: "jobs"}
)

func cronJobs() subject {
	clocks := &runClocks{of: map[string]*shifted{}}
	return builtIn(parents.CronJob(), subject{
		manager:   func(ctx context.Context, o *manager.Options) { o.Clock = clocks.in(fault.NamespaceOf(ctx)) },
		scenarios: []fault.Scenario{clocks.editedAndUndone(), clocks.replaces(), clocks.forbids()},
		aimed: []fault.Fault{
			{Mode: fault.Unseen, At: 1, Resource: revisionResource, Verb: "create", Times: 2},
			{Mode: fault.Unseen, At: 1, Resource: jobResource, Verb: "create", Times: 2},
			{Mode: fault.KillStale, At: 1, Resource: jobResource, Verb: "create", Times: 2},
			{Mode: fault.KillStale, At: 1, Resource: cronJobResource, Subresource: "status", Verb: "patch", Times: 3},
			{Mode: fault.Unseen, At: 2, Resource: cronJobResource, Subresource: "status", Verb: "patch", Times: 2},
		},
		refusals: []fault.Refusal{
			{Resource: revisionResource, Verb: "create", Status: http.StatusForbidden, Times: 3},
			{Resource: jobResource, Verb: "create", Status: http.StatusForbidden, Times: 4},
			{Resource: jobResource, Verb: "delete", Status: http.StatusForbidden, Times: 3},
			{Resource: cronJobResource, Subresource: "status", Status: http.StatusInternalServerError, Times: 3},
		},
	})
}

// shifted is the system's clock, ahead of it.
type shifted struct {
	clock.RealClock

	by atomic.Int64
}

func (c *shifted) Now() time.Time                  { return time.Now().Add(time.Duration(c.by.Load())) }
func (c *shifted) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// runClocks are the clocks of the runs, by their namespaces.
type runClocks struct {
	mu sync.Mutex
	of map[string]*shifted
}

func (c *runClocks) in(namespace string) *shifted {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[namespace] == nil {
		c.of[namespace] = &shifted{}
	}
	return c.of[namespace]
}

// hour is the n-th full hour after a CronJob was created.
func hour(cj *batchv1.CronJob, n int) time.Time {
	return cj.CreationTimestamp.Truncate(time.Hour).Add(time.Duration(n) * time.Hour)
}

// strikes sets the clock of a run to an hour, and lets the manager look at it.
func (c *runClocks) strikes(n int) step {
	return func(ctx context.Context, e *fault.Env) error {
		cj, err := e.Client.BatchV1().CronJobs(e.Namespace).Get(ctx, cronName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		c.in(e.Namespace).by.Store(int64(time.Until(hour(cj, n))))
		return patchCron(fmt.Sprintf(`{"metadata":{"annotations":{"hour":"%d"}}}`, n))(ctx, e)
	}
}

func patchCron(patch string) step {
	return func(ctx context.Context, e *fault.Env) error {
		_, err := e.Client.BatchV1().CronJobs(e.Namespace).Patch(
			ctx, cronName, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	}
}

func cronImage(image string) string {
	return `{"spec":{"jobTemplate":{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"` + image + `"}]}}}}}}`
}

func createCron(change func(*batchv1.CronJobSpec)) step {
	return func(ctx context.Context, e *fault.Env) error {
		cj := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: cronName}}
		cj.Spec.Schedule, cj.Spec.TimeZone = "0 * * * *", new("Etc/UTC")
		cj.Spec.JobTemplate.Spec.Template.Spec = corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "app:1"}},
		}
		change(&cj.Spec)
		_, err := e.Client.BatchV1().CronJobs(e.Namespace).Create(ctx, cj, metav1.CreateOptions{})
		return err
	}
}

// editedAndUndone starts a Job in each of three hours: of app:1, of app:2, and of app:1 again after an undo. The last
// one is kept.
func (c *runClocks) editedAndUndone() fault.Scenario {
	return fault.Scenario{
		Name: "cronjob edited and undone",
		Drive: func(ctx context.Context, e *fault.Env) error {
			if err := createCron(func(s *batchv1.CronJobSpec) { s.SuccessfulJobsHistoryLimit = new(int32(1)) })(ctx, e); err != nil {
				return err
			}
			for n, image := range []string{"app:1", "app:2"} {
				if err := steps(patchCron(cronImage(image)), c.strikes(n+1))(ctx, e); err != nil {
					return err
				}
				want := fmt.Sprintf("%d=%s+", n+1, image)
				if err := until("jobs "+want, cronIs(want, ""))(ctx, e); err != nil {
					return err
				}
			}
			revisions, err := revisionsOf(ctx, e)
			if err != nil {
				return err
			}
			return steps(patchCron(string(revisions[0].Data.Raw)), c.strikes(3))(ctx, e)
		},
		Ended:  cronIs("3=app:1+", ""),
		AtRest: historyIs("2=app:2 3=app:1"),
	}
}

// runsOn keeps Jobs running: no node takes their pods.
func runsOn(policy batchv1.ConcurrencyPolicy) func(*batchv1.CronJobSpec) {
	return func(s *batchv1.CronJobSpec) {
		s.ConcurrencyPolicy = policy
		s.JobTemplate.Spec.Template.Spec.NodeSelector = map[string]string{"nobody": "has-it"}
	}
}

// replaces starts a Job that goes on running, and another one in its place.
func (c *runClocks) replaces() fault.Scenario {
	return fault.Scenario{
		Name:  "cronjob replaces a job that runs",
		Share: 2,
		Drive: steps(
			createCron(runsOn(batchv1.ReplaceConcurrent)),
			c.strikes(1),
			until("the first job", cronIs("1=app:1", "1")),
			c.strikes(2),
		),
		Ended: cronIs("2=app:1", "2"),
	}
}

// forbids starts a Job that goes on running, with a deadline that is over when the next one is due. The manager looks
// at that hour as soon as the Job is there, whatever it has written down.
func (c *runClocks) forbids() fault.Scenario {
	return fault.Scenario{
		Name:    "cronjob forbids a second job",
		Share:   2,
		Unaimed: true,
		Drive: func(ctx context.Context, e *fault.Env) error {
			forbid := func(s *batchv1.CronJobSpec) {
				runsOn(batchv1.ForbidConcurrent)(s)
				s.StartingDeadlineSeconds = new(int64(60))
			}
			if err := steps(createCron(forbid), c.strikes(1))(ctx, e); err != nil {
				return err
			}
			there := func(ctx context.Context) error {
				_, err := e.Client.BatchV1().Jobs(e.Namespace).Get(ctx, cronJobName(ctx, e, 1), metav1.GetOptions{})
				return err
			}
			if err := e.Until(ctx, "the first job", there); err != nil {
				return err
			}
			return c.strikes(2)(ctx, e)
		},
		Ended: cronIs("1=app:1", "1"),
	}
}

// cronJobName is the name of the Job of an hour, "" if the CronJob cannot be read.
func cronJobName(ctx context.Context, e *fault.Env, n int) string {
	cj, err := e.Client.BatchV1().CronJobs(e.Namespace).Get(ctx, cronName, metav1.GetOptions{})
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s-%d", cronName, hour(cj, n).Unix()/60)
}

// cronIs returns nil if the Jobs are just these, by their hours, with a plus for one that has succeeded, and the status
// says that those of active run and that the last of them was served.
func cronIs(want, active string) step {
	return func(ctx context.Context, e *fault.Env) error {
		cj, err := e.Client.BatchV1().CronJobs(e.Namespace).Get(ctx, cronName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		jobs, err := e.Client.BatchV1().Jobs(e.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		hours := map[string]int{}
		for n := range 10 {
			hours[fmt.Sprintf("%s-%d", cronName, hour(cj, n).Unix()/60)] = n
		}
		var got, runs []string
		for i := range jobs.Items {
			j := &jobs.Items[i]
			text := fmt.Sprintf("%d=%s", hours[j.Name], j.Spec.Template.Spec.Containers[0].Image)
			if j.Status.CompletionTime != nil {
				text += "+"
			}
			got = append(got, text)
		}
		for _, ref := range cj.Status.Active {
			runs = append(runs, fmt.Sprint(hours[ref.Name]))
		}
		if got, runs := strings.Join(got, " "), strings.Join(runs, " "); got != want || runs != active {
			return fmt.Errorf("the jobs are %q, want %q; %q are active, want %q", got, want, runs, active)
		}
		last := hour(cj, hours[jobs.Items[len(jobs.Items)-1].Name])
		switch s := cj.Status; {
		case s.LastScheduleTime == nil || !s.LastScheduleTime.Time.Equal(last):
			return fmt.Errorf("%v was served last, want %v", s.LastScheduleTime, last)
		case strings.HasSuffix(want, "+") && (s.LastSuccessfulTime == nil || !s.LastSuccessfulTime.Equal(jobs.Items[len(jobs.Items)-1].Status.CompletionTime)):
			return fmt.Errorf("the last one succeeded at %v", s.LastSuccessfulTime)
		}
		return nil
	}
}
