package replicaset

// What the tests of decisions share: ReplicaSets and pods in few words, and plans as text. No client in sight.

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/internal/goldenfile"
)

// golden compares a text with a file of testdata.
var golden = goldenfile.Check

// now is when all facts are gathered.
var now = time.Date(2026, time.March, 4, 5, 6, 7, 0, time.UTC)

// web is a ReplicaSet of so many.
func web(replicas int32, change ...func(*appsv1.ReplicaSet)) *appsv1.ReplicaSet {
	labels := map[string]string{"app": "web"}
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "web-uid", Generation: 1},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
			},
		},
	}
	for _, f := range change {
		f(set)
	}
	return set
}

func minReady(seconds int32) func(*appsv1.ReplicaSet) {
	return func(set *appsv1.ReplicaSet) { set.Spec.MinReadySeconds = seconds }
}

type podOption func(*corev1.Pod)

// pod is one of web's, running and ready for an hour on a node of its own, unless options say otherwise.
func pod(name string, options ...podOption) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID("uid-of-" + name), ResourceVersion: "7",
			Labels:            map[string]string{"app": "web"},
			CreationTimestamp: metav1.NewTime(now.Add(-time.Hour)),
			OwnerReferences:   []metav1.OwnerReference{*metav1.NewControllerRef(web(1), replicaSets.GVK)},
		},
		Spec:   corev1.PodSpec{NodeName: "node-" + name, Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	readyFor(time.Hour)(p)
	for _, f := range options {
		f(p)
	}
	return p
}

func readyFor(d time.Duration) podOption {
	return func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-d))}}
	}
}

func unready(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }

func pending(p *corev1.Pod) { p.Status = corev1.PodStatus{Phase: corev1.PodPending} }

func phase(phase corev1.PodPhase) podOption {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func on(node string) podOption { return func(p *corev1.Pod) { p.Spec.NodeName = node } }

func going(p *corev1.Pod) {
	p.DeletionTimestamp, p.Finalizers = new(metav1.NewTime(now)), []string{"test/stays"}
}

func cost(cost string) podOption {
	return func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.PodDeletionCost: cost} }
}

func old(d time.Duration) podOption {
	return func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(now.Add(-d)) }
}

func restarted(times int32) podOption {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", RestartCount: times}}
	}
}

func sidecarRestarted(times int32) podOption {
	return func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: "proxy", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}, {Name: "once"}}
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "proxy", RestartCount: times}, {Name: "once", RestartCount: 99}}
	}
}

// factsOf are facts where every name is known from pods, and nodes have these pods only.
func factsOf(set *appsv1.ReplicaSet, pods ...*corev1.Pod) facts {
	names, nodes := map[string]bool{}, map[string]int{}
	for _, p := range pods {
		names[p.Name] = true
		if active(p) {
			nodes[p.Spec.NodeName]++
		}
	}
	return facts{set: set, pods: pods, taken: func(name string) bool { return names[name] }, neighbours: nodes, now: now}
}

// text is a plan for people.
func (p *plan) text() string {
	var b strings.Builder
	for _, c := range p.Creates {
		fmt.Fprintf(&b, "create %s: %s\n", c.name, c.reason)
	}
	for _, d := range p.Deletes {
		fmt.Fprintf(&b, "delete %s: %s\n", d.pod.Name, d.reason)
	}
	if p.Again > 0 {
		fmt.Fprintf(&b, "again in %v\n", p.Again)
	}
	c := p.counts
	fmt.Fprintf(&b, "replicas %d, fully labeled %d, ready %d, available %d, terminating %d\n", c.replicas, c.fullyLabeled, c.ready, c.available, c.terminating)
	return b.String()
}
