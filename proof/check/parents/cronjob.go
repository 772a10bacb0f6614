package parents

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	batchdefaults "k8s.io/kubernetes/pkg/apis/batch/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/check/content"
	"github.com/cairn-dev/cairn/proof/kinds"
)

// This file tells the rules what a CronJob is: a parent whose children are runs. When they are due is asked of the
// library whose syntax schedules have, and what a template means with its defaults of upstream's code.

// CronJob describes batch/v1 CronJobs.
func CronJob() check.Kind {
	return check.Kind{
		Kind:     kinds.CronJob,
		Runs:     &check.Runs{Of: scheduleOf, Run: runOf, Owner: ownerOf, Next: nextDue, Latest: latestDue},
		Names:    namesByHash,
		Labelled: func(child client.Object) bool { return child.GetLabels()[appsv1.ControllerRevisionHashLabelKey] != "" },
		Number:   numberOf,
		Snapshot: func(revision client.Object) (string, error) {
			template, err := jobTemplateIn(as[appsv1.ControllerRevision](revision))
			if err != nil {
				return "", err
			}
			return jobDefaulted(*template), nil
		},
		Target: func(parent client.Object) string { return jobDefaulted(as[batchv1.CronJob](parent).Spec.JobTemplate) },
		Strays: func(child, revision client.Object) string {
			template, err := jobTemplateIn(as[appsv1.ControllerRevision](revision))
			if err != nil {
				return "" // nobody knows what it asks for
			}
			return jobStrays(as[batchv1.Job](child), template)
		},
		StraysNow: func(child, parent client.Object) string {
			return jobStrays(as[batchv1.Job](child), &as[batchv1.CronJob](parent).Spec.JobTemplate)
		},
		Units:              func(*check.State, client.Object) []check.Unit { return nil },
		Ended:              func(child client.Object) bool { return jobEnd(as[batchv1.Job](child)) != "" },
		Available:          func(client.Object, client.Object, time.Time) bool { return true },
		Budget:             func(client.Object, int) check.Budget { return check.Budget{} },
		ObservedGeneration: client.Object.GetGeneration,
		Complete:           func(client.Object) bool { return false }, // there are no rollouts
		Implausible:        cronJobImplausible,
		Miscounted:         cronJobMiscounted,
		StatusRevisions:    func(client.Object) []string { return nil },
		Limit:              func(client.Object) int { return limitOr10(nil) },
	}
}

// jobTemplateIn is the template that a revision holds.
func jobTemplateIn(r *appsv1.ControllerRevision) (*batchv1.JobTemplateSpec, error) {
	var data struct {
		Spec struct {
			Template *batchv1.JobTemplateSpec `json:"jobTemplate"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(r.Data.Raw, &data); err != nil {
		return nil, fmt.Errorf("revision %s: %w", r.Name, err)
	}
	if data.Spec.Template == nil {
		return nil, errors.New("revision " + r.Name + " holds no template")
	}
	return data.Spec.Template, nil
}

// jobDefaulted is a template as the API server would store it.
func jobDefaulted(template batchv1.JobTemplateSpec) string {
	cj := &batchv1.CronJob{Spec: batchv1.CronJobSpec{JobTemplate: *template.DeepCopy()}}
	batchdefaults.SetObjectDefaults_CronJob(cj)
	return content.Canonical(&cj.Spec.JobTemplate)
}

// jobStrays says in what a Job differs from a template.
func jobStrays(j *batchv1.Job, template *batchv1.JobTemplateSpec) string {
	want, have := content.Tree(template.DeepCopy()), content.Tree(j)
	meta, _ := want["metadata"].(map[string]any)
	for _, part := range []string{"labels", "annotations"} {
		if s := content.Missing("metadata."+part, meta[part], content.At(have, []string{"metadata", part})); s != "" {
			return s
		}
	}
	return content.Missing("spec", want["spec"], have["spec"])
}

// jobEnd is the condition by which a Job has finished, empty while it has not.
func jobEnd(j *batchv1.Job) string {
	for _, c := range j.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return string(c.Type)
		}
	}
	return ""
}

// scheduleOf is what a CronJob asks for, and what its status knows.
func scheduleOf(parent client.Object) check.Schedule {
	cj := as[batchv1.CronJob](parent)
	out := check.Schedule{
		Suspended: ptr.Deref(cj.Spec.Suspend, false),
		Forbids:   cj.Spec.ConcurrencyPolicy == batchv1.ForbidConcurrent,
		Replaces:  cj.Spec.ConcurrencyPolicy == batchv1.ReplaceConcurrent,
		Keeps:     map[string]int{},
		Served:    timeOf(cj.Status.LastScheduleTime),
		Succeeded: timeOf(cj.Status.LastSuccessfulTime),
		Says:      ptr.Deref(cj.Spec.TimeZone, "") + " " + cj.Spec.Schedule,
		Name:      func(at time.Time) string { return cj.Name + "-" + strconv.FormatInt(at.Unix()/60, 10) },
	}
	if s := cj.Spec.StartingDeadlineSeconds; s != nil {
		out.Deadline = new(time.Duration(*s) * time.Second)
	}
	if n := cj.Spec.SuccessfulJobsHistoryLimit; n != nil {
		out.Keeps[string(batchv1.JobComplete)] = int(*n)
	}
	if n := cj.Spec.FailedJobsHistoryLimit; n != nil {
		out.Keeps[string(batchv1.JobFailed)] = int(*n)
	}
	for _, ref := range cj.Status.Active {
		out.Active = append(out.Active, ref.UID)
	}
	return out
}

func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// ownerOf is the UID of the CronJob that a Job belongs to.
func ownerOf(child client.Object) types.UID {
	if ref := metav1.GetControllerOfNoCopy(child); ref != nil {
		return ref.UID
	}
	var stored corev1.SerializedReference
	if json.Unmarshal([]byte(child.GetAnnotations()["kubernetes.io/created-by"]), &stored) != nil {
		return ""
	}
	return stored.Reference.UID
}

// runOf is what a Job is to a CronJob, if it is its.
func runOf(child, parent client.Object) check.Run {
	j := as[batchv1.Job](child)
	out := check.Run{
		Ended: jobEnd(j), Started: timeOf(j.Status.StartTime), Succeeded: timeOf(j.Status.CompletionTime),
		ByHand: j.Annotations["cronjob.kubernetes.io/instantiate"] != "",
	}
	digits, ok := strings.CutPrefix(j.Name, parent.GetName()+"-")
	minute, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || strconv.FormatInt(minute, 10) != digits {
		return out
	}
	out.At = time.Unix(minute*60, 0)
	if exact, err := time.Parse(time.RFC3339, j.Annotations[batchv1.CronJobScheduledTimestampAnnotation]); err == nil {
		out.Exact = exact
		if exact.Unix()/60 == minute {
			out.At = exact
		}
	}
	return out
}

// times are when a CronJob's Jobs are due. every is how far apart they are if they count from a start, zero if not.
func times(parent client.Object) (s cron.Schedule, every time.Duration) {
	spec := as[batchv1.CronJob](parent).Spec
	text := spec.Schedule
	if zone := spec.TimeZone; zone != nil {
		text = "TZ=" + *zone + " " + text
	}
	s, err := cron.ParseStandard(text)
	if err != nil {
		return nil, 0
	}
	if interval, ok := s.(cron.ConstantDelaySchedule); ok {
		every = interval.Delay
	}
	return s, every
}

// nextDue is the first time that is due after one, zero if none is.
func nextDue(parent client.Object, after time.Time) (at time.Time, counts bool) {
	s, every := times(parent)
	if s == nil {
		return at, false
	}
	return s.Next(after), every > 0
}

// latestDue is the last time that is due after one time and not after another, zero if none is.
func latestDue(parent client.Object, after, now time.Time) (out time.Time) {
	s, _ := times(parent)
	if s == nil {
		return out
	}
	for at := s.Next(after); !at.IsZero() && !at.After(now); at = s.Next(at) {
		out = at
	}
	return out
}

// cronJobImplausible finds what no status can say.
func cronJobImplausible(parent client.Object) (found []string) {
	active := as[batchv1.CronJob](parent).Status.Active
	for i, ref := range active {
		if ref.UID == "" || ref.Name == "" {
			found = append(found, "an active job has no name or no UID")
		}
		if slices.ContainsFunc(active[:i], func(other corev1.ObjectReference) bool { return other.UID == ref.UID }) {
			found = append(found, "job "+ref.Name+" is active twice")
		}
	}
	return found
}

// cronJobMiscounted compares the list of active Jobs with those that the schedule started and that have not finished.
// One that was listed stays so although it has lost its owner.
func cronJobMiscounted(s *check.State, parent client.Object) (found []string) {
	cj := as[batchv1.CronJob](parent)
	for _, ref := range cj.Status.Active {
		if o := s.ByUID(ref.UID); o == nil || jobEnd(as[batchv1.Job](o)) != "" {
			found = append(found, fmt.Sprintf("job %s is called active, and it has finished or is gone", ref.Name))
		}
	}
	for _, o := range s.List(kinds.Job.GVR, cj.Namespace) {
		run := runOf(o, parent)
		listed := slices.ContainsFunc(cj.Status.Active, func(ref corev1.ObjectReference) bool { return ref.UID == o.GetUID() })
		if ownerOf(o) == cj.UID && !run.At.IsZero() && !run.ByHand && run.Ended == "" && !listed {
			found = append(found, fmt.Sprintf("job %s runs, and is not called active", o.GetName()))
		}
	}
	return found
}
