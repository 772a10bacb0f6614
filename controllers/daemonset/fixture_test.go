package daemonset

// What the tests of decisions share: DaemonSets, nodes and pods in few words, and plans as text. No client in sight.

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/cairn-dev/cairn/internal/goldenfile"
	"github.com/cairn-dev/cairn/pass"
)

// golden compares a text with a file of testdata.
var golden = goldenfile.Check

// now is when all facts are gathered.
var now = time.Date(2026, time.March, 4, 5, 6, 7, 0, time.UTC)

// hashOld and hashNew label the pods of two revisions; the update revision is the new one.
const (
	hashOld = "old"
	hashNew = "new"
)

type dsOption func(*appsv1.DaemonSet)

// agent is a DaemonSet that rolls one pod at a time.
func agent(options ...dsOption) *appsv1.DaemonSet {
	ds := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "agent", UID: "agent-uid", Generation: 1},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "agent"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "agent", Image: "agent:1"}}},
			},
		},
	}
	rolling(1, 0)(ds)
	for _, option := range options {
		option(ds)
	}
	return ds
}

// rolling sets the budget: numbers, or percentages as strings.
func rolling(unavailable, surge any) dsOption {
	value := func(v any) *intstr.IntOrString {
		parsed := intstr.Parse(fmt.Sprint(v))
		return &parsed
	}
	return func(ds *appsv1.DaemonSet) {
		ds.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{
			Type:          appsv1.RollingUpdateDaemonSetStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: value(unavailable), MaxSurge: value(surge)},
		}
	}
}

func onDelete(ds *appsv1.DaemonSet) {
	ds.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}
}

func minReady(seconds int32) dsOption {
	return func(ds *appsv1.DaemonSet) { ds.Spec.MinReadySeconds = seconds }
}

type nodeOption func(*corev1.Node)

func node(name string, options ...nodeOption) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
	for _, option := range options {
		option(n)
	}
	return n
}

func nodes(names ...string) []*corev1.Node {
	var out []*corev1.Node
	for _, name := range names {
		out = append(out, node(name))
	}
	return out
}

func taint(effect corev1.TaintEffect) nodeOption {
	return func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "dedicated", Value: "yes", Effect: effect})
	}
}

type podOption func(*corev1.Pod)

// pod is a pod of a revision on a node, an hour old and available; its name is node-hash.
func pod(nodeName, hash string, options ...podOption) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: nodeName + "-" + hash, ResourceVersion: "1",
			Labels:            map[string]string{"app": "agent", "controller-revision-hash": hash},
			CreationTimestamp: metav1.NewTime(now.Add(-time.Hour)),
			OwnerReferences:   []metav1.OwnerReference{*metav1.NewControllerRef(agent(), kind)},
		},
		Spec: corev1.PodSpec{NodeName: nodeName},
	}
	phase(corev1.PodRunning)(p)
	ready(time.Hour)(p)
	for _, option := range options {
		option(p)
	}
	p.UID = types.UID("uid-of-" + p.Name)
	return p
}

// ready makes a pod ready for that long; less than nothing means by a clock that is ahead of ours.
func ready(since time.Duration) podOption {
	return func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-since))},
		}
	}
}

func notReady(p *corev1.Pod) {
	ready(time.Hour)(p)
	p.Status.Conditions[1].Status = corev1.ConditionFalse
}

func noConditions(p *corev1.Pod) { p.Status.Conditions = nil }

// phase sets the phase; a pod that ended is not ready.
func phase(phase corev1.PodPhase) podOption {
	return func(p *corev1.Pod) {
		p.Status.Phase = phase
		if phase != corev1.PodRunning {
			notReady(p)
		}
	}
}

func terminating(p *corev1.Pod) {
	at := metav1.NewTime(now)
	p.DeletionTimestamp, p.Finalizers = &at, []string{"example.com/wait"}
}

func named(name string) podOption { return func(p *corev1.Pod) { p.Name = name } }

func age(d time.Duration) podOption {
	return func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(now.Add(-d)) }
}

// unscheduled makes a pod wait for the scheduler, bound for the node that it was made for.
func unscheduled(p *corev1.Pod) {
	bind(&p.Spec, p.Spec.NodeName)
	p.Spec.NodeName = ""
	p.Status = corev1.PodStatus{Phase: corev1.PodPending}
}

// given makes facts. No failed pod has to wait, unless a test says so.
func given(ds *appsv1.DaemonSet, nodes []*corev1.Node, pods ...*corev1.Pod) facts {
	selector, err := metav1.LabelSelectorAsSelector(ds.Spec.Selector)
	if err != nil {
		panic(err)
	}
	return facts{
		ds: ds, selector: selector, hash: hashNew, nodes: nodes, pods: byNode(pods), now: now,
		backoff: func(string) pass.Wait { return pass.Wait{} },
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

// steps is a plan as text, without its reasons.
func steps(p *plan) []string {
	out := []string{}
	for _, c := range p.Creates {
		out = append(out, "create "+c.node)
	}
	for _, d := range p.Deletes {
		verb := "delete"
		switch {
		case d.failed:
			verb = "delete failed"
		case d.succeeded:
			verb = "delete succeeded"
		}
		out = append(out, verb+" "+d.pod.Name)
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
