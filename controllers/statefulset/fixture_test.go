package statefulset

// What the tests of decisions share: StatefulSets and pods in few words, and plans as text. No client in sight.

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/cairn-dev/cairn/internal/goldenfile"
)

// golden compares a text with a file of testdata.
var golden = goldenfile.Check

// now is when all facts are gathered.
var now = time.Date(2026, time.March, 4, 5, 6, 7, 0, time.UTC)

type setOption func(*appsv1.StatefulSet)

// web is a StatefulSet of three, rolled one by one.
func web(options ...setOption) *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "web-uid", Generation: 1},
		Spec: appsv1.StatefulSetSpec{
			ServiceName:         "nginx",
			PodManagementPolicy: appsv1.OrderedReadyPodManagement,
			Selector:            &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
			},
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{
				Type:          appsv1.RollingUpdateStatefulSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{},
			},
		},
	}
	replicas(3)(set)
	for _, option := range options {
		option(set)
	}
	return set
}

func replicas(n int32) setOption {
	return func(set *appsv1.StatefulSet) { set.Spec.Replicas = &n }
}

func parallel(set *appsv1.StatefulSet) { set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement }

func onDelete(set *appsv1.StatefulSet) {
	set.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
}

func partition(n int32) setOption {
	return func(set *appsv1.StatefulSet) { set.Spec.UpdateStrategy.RollingUpdate.Partition = &n }
}

// atOnce sets maxUnavailable: a number, or a percentage as a string.
func atOnce(v any) setOption {
	parsed := intstr.Parse(fmt.Sprint(v))
	return func(set *appsv1.StatefulSet) { set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = &parsed }
}

func startAt(n int32) setOption {
	return func(set *appsv1.StatefulSet) { set.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: n} }
}

func minReadyFor(seconds int32) setOption {
	return func(set *appsv1.StatefulSet) { set.Spec.MinReadySeconds = seconds }
}

func keepsNeverReady(set *appsv1.StatefulSet) { neverReadies("false")(set) }

// neverReadies says which pods that were never ready are replaced.
func neverReadies(value string) setOption {
	return func(set *appsv1.StatefulSet) {
		set.Annotations = map[string]string{ReplaceNeverReadyAnnotation: value}
	}
}

// data gives every pod a claim, under retention policies.
func data(deleted, scaled appsv1.PersistentVolumeClaimRetentionPolicyType) setOption {
	return func(set *appsv1.StatefulSet) {
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
		set.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
			WhenDeleted: deleted, WhenScaled: scaled,
		}
	}
}

// younger makes a set that was made after its pods, which it adopted.
func younger(set *appsv1.StatefulSet) { set.CreationTimestamp = metav1.NewTime(now.Add(-time.Minute)) }

const (
	retain = appsv1.RetainPersistentVolumeClaimRetentionPolicyType
	remove = appsv1.DeletePersistentVolumeClaimRetentionPolicyType
)

type podOption func(*corev1.Pod)

// pod is a pod of web with an ordinal, an hour old and available, from the revision web-<rev>.
func pod(ordinal int64, rev string, options ...podOption) *corev1.Pod {
	set := web()
	p := podFor(set, revisionNamed(rev), ordinal)
	p.ResourceVersion = "1"
	p.UID = types.UID("uid-of-" + p.Name)
	p.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour))
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: new(metav1.NewTime(now.Add(-time.Hour)))}
	ready(50 * time.Minute)(p)
	for _, option := range options {
		option(p)
	}
	return p
}

// revisionNamed is a revision of web called web-<rev>, with the image web:<rev>.
func revisionNamed(rev string) source {
	template := web().Spec.Template.DeepCopy()
	template.Spec.Containers[0].Image = "web:" + rev
	return source{name: "web-" + rev, template: template}
}

// ready makes a pod ready for that long; less than nothing means by a clock that is ahead of ours.
func ready(since time.Duration) podOption {
	return func(p *corev1.Pod) { condition(p, corev1.ConditionTrue, now.Add(-since)) }
}

// unready makes a pod not ready that was.
func unready(p *corev1.Pod) { condition(p, corev1.ConditionFalse, now.Add(-time.Minute)) }

// stuck makes a pod not ready that never was.
func stuck(p *corev1.Pod) { condition(p, corev1.ConditionFalse, p.Status.StartTime.Time) }

func condition(p *corev1.Pod, status corev1.ConditionStatus, since time.Time) {
	p.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
		{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(since)},
	}
}

// crashing makes a pod not ready that never was, and fails.
func crashing(p *corev1.Pod) {
	stuck(p)
	p.Status.ContainerStatuses = []corev1.ContainerStatus{waitingFor("CrashLoopBackOff")}
}

func waitingFor(reason string) corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}
}

// young makes a pod that was created ten seconds ago.
func young(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(now.Add(-10 * time.Second)) }

// unschedulable makes a pod wait for a node that there is not.
func unschedulable(p *corev1.Pod) {
	p.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable},
	}}
}

// pending makes a pod wait for the scheduler.
func pending(p *corev1.Pod) { p.Status = corev1.PodStatus{Phase: corev1.PodPending} }

// phase ends a pod.
func phase(phase corev1.PodPhase) podOption {
	return func(p *corev1.Pod) {
		p.Status.Phase = phase
		unready(p)
	}
}

func terminating(p *corev1.Pod) {
	at := metav1.NewTime(now)
	p.DeletionTimestamp, p.Finalizers = &at, []string{"example.com/wait"}
}

// given makes facts: the update revision is web-b, the current one web-a, unless a test changes that.
func given(set *appsv1.StatefulSet, pods ...*corev1.Pod) facts {
	return facts{
		set: set, update: revisionNamed("b"), current: revisionNamed("a"),
		pods: pods, claims: map[string]*corev1.PersistentVolumeClaim{}, now: now,
	}
}

func mustPlan(t testing.TB, f facts) *plan {
	t.Helper()
	p, err := makePlan(f)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// steps is a plan as text, without its reasons: creates as "create web-0 b", deletes as "delete web-0".
func steps(p *plan) []string {
	out := []string{}
	for _, c := range p.Creates {
		out = append(out, fmt.Sprintf("create web-%d %s", c.ordinal, strings.TrimPrefix(c.from.name, "web-")))
	}
	for _, d := range p.Deletes {
		step := "delete " + d.pod.Name
		for _, o := range d.owners {
			step += ", own " + o.claim.Name
		}
		out = append(out, step)
	}
	for _, c := range p.claims {
		out = append(out, "claim "+c.Name)
	}
	for _, o := range p.owners {
		out = append(out, "own "+o.claim.Name)
	}
	for _, i := range p.identities {
		out = append(out, "label "+i.pod.Name)
	}
	slices.Sort(out)
	return out
}

func wantSteps(t *testing.T, p *plan, want ...string) {
	t.Helper()
	slices.Sort(want)
	if diff := cmp.Diff(append([]string{}, want...), steps(p)); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}
