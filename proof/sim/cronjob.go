package sim

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check/parents"
	"github.com/cairn-dev/cairn/proof/kinds"
	"github.com/cairn-dev/cairn/proof/scenario"
)

// This file is what users do to CronJobs.

// CronJob is batch/v1 CronJobs.
func CronJob() Kind {
	return Kind{
		Check: parents.CronJob(),
		Timed: true,
		New: func(chance *rand.Rand, k Kind, name string) scenario.Step {
			set := fields{"image": anyJobImage(chance), "schedule": anySchedule(chance), "concurrency": anyConcurrency(chance)}
			set["spec.jobTemplate.metadata.labels.app"] = name // which somebody may change on a Job
			if chance.IntN(3) == 0 {
				set["ttl"] = anyNumber(chance, 3)
			}
			if chance.IntN(3) == 0 {
				set["deadline"] = anyDeadline(chance)
			}
			if chance.IntN(3) == 0 {
				set["timeZone"] = []string{"Etc/UTC", "Asia/Kathmandu", "America/New_York"}[chance.IntN(3)]
			}
			return scenario.Step{Verb: "create", Args: []string{scenario.Word(k.Check.Parents), name}, Options: set}
		},
		Edits: []Edit{
			edit("the image", 8, func(chance *rand.Rand) fields { return fields{"image": anyJobImage(chance)} }),
			edit("the schedule", 4, func(chance *rand.Rand) fields { return fields{"schedule": anySchedule(chance)} }),
			edit("the concurrency policy", 3, func(chance *rand.Rand) fields { return fields{"concurrency": anyConcurrency(chance)} }),
			edit("whether it is suspended", 3, func(chance *rand.Rand) fields {
				return fields{"suspend": strconv.FormatBool(chance.IntN(3) == 0)}
			}),
			edit("the deadline", 2, func(chance *rand.Rand) fields { return fields{"deadline": anyDeadline(chance)} }),
			edit("the limits", 3, func(chance *rand.Rand) fields {
				return fields{"successful": anyNumber(chance, 4), "failed": anyNumber(chance, 3)}
			}),
			edit("when jobs expire", 2, func(chance *rand.Rand) fields {
				return fields{"ttl": []string{"-", "0", "0", "30"}[chance.IntN(4)]}
			}),
			editAnnotation(),
		},
		Undo:  undone,
		Child: plantedJob,
		Copy:  copied,
	}
}

func anyJobImage(chance *rand.Rand) string {
	switch chance.IntN(10) {
	case 0:
		return brokenImage
	case 1, 2:
		return longImage
	case 3:
		return endlessImage
	default:
		return fmt.Sprintf("app:v%d", chance.IntN(4))
	}
}

// anySchedule is due every few minutes as a rule, so that some minutes of a world are many schedules.
func anySchedule(chance *rand.Rand) string {
	return []string{
		"* * * * *", "* * * * *", "* * * * *", "*/2 * * * *", "*/2 * * * *", "*/5 * * * *", "1-59/3 * * * *",
		"@every 90s", "@every 40s", "0 * * * *", "0 0 31 2 *",
	}[chance.IntN(11)]
}

func anyConcurrency(chance *rand.Rand) string {
	return string([]batchv1.ConcurrencyPolicy{
		batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent,
	}[chance.IntN(4)])
}

func anyDeadline(chance *rand.Rand) string {
	return []string{"-", "10", "45", "200", "3600"}[chance.IntN(5)]
}

// plantedJob is a Job that no controller made: with kubectl, by an old cluster, or by somebody who knows nothing of the
// CronJob and has taken a name that it will need.
func plantedJob(chance *rand.Rand, _ Kind, parent client.Object, _ []string) scenario.Step {
	cj := parent.(*batchv1.CronJob)
	minute := clock.RealClock{}.Now().Unix()/60 + int64(chance.IntN(4)-1)
	scheduled := fmt.Sprintf("%s-%d", cj.Name, minute)
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: scheduled, Labels: cj.Spec.JobTemplate.Labels, Annotations: map[string]string{}},
		Spec:       *cj.Spec.JobTemplate.Spec.DeepCopy(),
	}
	j.SetGroupVersionKind(kinds.Job.GVK)
	switch chance.IntN(5) {
	case 0, 1: // as kubectl create job --from does
		if j.Name = fmt.Sprintf("%s-planted-%d", cj.Name, chance.IntN(3)); chance.IntN(5) == 0 {
			j.Name = scheduled
		}
		j.Annotations["cronjob.kubernetes.io/instantiate"] = "manual"
		j.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(cj, kinds.CronJob.Parent)}
	case 2: // as clusters before Kubernetes 1.6 did
		j.Annotations["kubernetes.io/created-by"] = value(corev1.SerializedReference{
			Reference: corev1.ObjectReference{Kind: "CronJob", Namespace: cj.Namespace, Name: cj.Name, UID: cj.UID},
		})
		if chance.IntN(2) == 0 {
			j.Name = fmt.Sprintf("%s-%d", cj.Name, time.Unix(minute*60, 0).Add(-5*time.Minute).Unix()/60)
		}
	default:
	}
	return manifest(j)
}
