package cronjob

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// This file says what a Job is to its CronJob, and makes one. It is pure.

const (
	// createdByAnnotation is how clusters before Kubernetes 1.6 said whose Job it is, in the form of a
	// SerializedReference.
	createdByAnnotation = "kubernetes.io/created-by"
	// instantiateAnnotation is on Jobs that kubectl create job --from made. No schedule is about them.
	instantiateAnnotation = "cronjob.kubernetes.io/instantiate"
)

// job is one Job that matters to a CronJob.
type job struct {
	*batchv1.Job

	// owned says that it belongs to the CronJob. One that does not is listed as active in its status: it has lost its
	// ControllerRef since, and is nobody's to delete.
	owned bool
	// finished is the condition that says so, empty while it runs.
	finished batchv1.JobConditionType
	// at is the time that it was started for, zero if no schedule has started it.
	at time.Time
}

// judge looks at one Job of a CronJob.
func judge(cj *batchv1.CronJob, o *batchv1.Job, owned bool) job {
	out := job{Job: o, owned: owned}
	if owned {
		out.at = scheduledFor(cj, o)
	}
	for _, c := range o.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			out.finished = c.Type
		}
	}
	return out
}

// nameAt is the name of the Job for a time, as the built-in controller has it: by the minute.
func nameAt(cj *batchv1.CronJob, at time.Time) string {
	return cj.Name + "-" + strconv.FormatInt(at.Unix()/60, 10)
}

// scheduledFor returns the time that an owned Job was started for, zero if its name does not follow from one, or if a
// person has given it such a name.
func scheduledFor(cj *batchv1.CronJob, o *batchv1.Job) time.Time {
	if o.Annotations[instantiateAnnotation] != "" {
		return time.Time{}
	}
	digits, ok := strings.CutPrefix(o.Name, cj.Name+"-")
	minute, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || strconv.FormatInt(minute, 10) != digits {
		return time.Time{}
	}
	at := time.Unix(minute*60, 0)
	// The annotation has the second as well, which "@every 90s" needs.
	exact, err := time.Parse(time.RFC3339, o.Annotations[batchv1.CronJobScheduledTimestampAnnotation])
	if err == nil && exact.Unix()/60 == minute {
		at = exact
	}
	return at
}

// jobAt makes the Job for a time. revision is the label value of the revision that its template is recorded as, empty
// if it could not be recorded: a Job is not missed for that.
func jobAt(cj *batchv1.CronJob, at time.Time, revision string) (*batchv1.Job, error) {
	template := cj.Spec.JobTemplate.DeepCopy()
	zone, err := time.LoadLocation(ptr.Deref(cj.Spec.TimeZone, "")) // UTC, as the built-in controller writes it
	if err != nil {
		return nil, err
	}
	out := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name:            nameAt(cj, at),
			Namespace:       cj.Namespace,
			Labels:          map[string]string{},
			Annotations:     map[string]string{},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cj, kind)},
		},
		Spec: template.Spec,
	}
	maps.Copy(out.Labels, template.Labels)
	maps.Copy(out.Annotations, template.Annotations)
	out.Annotations[batchv1.CronJobScheduledTimestampAnnotation] = at.In(zone).Format(time.RFC3339)
	if revision != "" {
		out.Labels[appsv1.ControllerRevisionHashLabelKey] = revision
	}
	return out, nil
}

// createdBy returns the owner that an old cluster wrote into a Job without a ControllerRef. ok is false if there is
// none.
func createdBy(o metav1.Object) (owner corev1.ObjectReference, ok bool) {
	text := o.GetAnnotations()[createdByAnnotation]
	if text == "" || metav1.GetControllerOfNoCopy(o) != nil {
		return owner, false
	}
	var stored corev1.SerializedReference
	if err := json.Unmarshal([]byte(text), &stored); err != nil || stored.Reference.UID == "" {
		return owner, false
	}
	return stored.Reference, true
}

// oldestFirst sorts finished Jobs by when they were started, as the history limits count them; one that never started
// is the youngest.
func oldestFirst(jobs []job) []job {
	return slices.SortedFunc(slices.Values(jobs), func(a, b job) int {
		switch x, y := a.Status.StartTime, b.Status.StartTime; {
		case x == nil && y == nil, x.Equal(y):
			return cmp.Compare(a.Name, b.Name)
		case x == nil:
			return 1
		case y == nil:
			return -1
		default:
			return x.Compare(y.Time)
		}
	})
}

// referenceTo is how the status of a CronJob names a Job that runs.
func referenceTo(o *batchv1.Job) corev1.ObjectReference {
	version, name := jobKind.ToAPIVersionAndKind()
	return corev1.ObjectReference{APIVersion: version, Kind: name, Namespace: o.Namespace, Name: o.Name, UID: o.UID}
}

// lists reports whether references name an object, by its UID.
func lists(references []corev1.ObjectReference, uid types.UID) bool {
	return slices.ContainsFunc(references, func(r corev1.ObjectReference) bool { return r.UID == uid })
}
