package statefulset

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cairn-dev/cairn/pass"
	"github.com/cairn-dev/cairn/revision"
)

func recreating(set *appsv1.StatefulSet) {
	set.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.RecreateStatefulSetStrategyType}
}

func TestRecreate(t *testing.T) {
	all := []string{"delete web-0", "delete web-1", "delete web-2"}
	for name, c := range map[string]struct {
		set  []setOption
		pods []*corev1.Pod
		hold bool
		want []string
	}{
		"all are deleted, in no order":            {nil, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "a")}, false, all},
		"also if none is ready":                   {nil, []*corev1.Pod{pod(0, "a", stuck), pod(1, "a", unready), pod(2, "a", crashing)}, false, all},
		"also if they have ended":                 {nil, []*corev1.Pod{pod(0, "a", phase(corev1.PodFailed)), pod(1, "a"), pod(2, "a", pending)}, false, all},
		"with surplus pods":                       {[]setOption{replicas(1)}, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "a")}, false, all},
		"updated pods stay":                       {nil, []*corev1.Pod{pod(0, "b"), pod(1, "a"), pod(2, "b", unready)}, false, []string{"delete web-1"}},
		"none is created while one terminates":    {nil, []*corev1.Pod{pod(2, "a", terminating)}, false, nil},
		"nor beside an updated pod that ended":    {nil, []*corev1.Pod{pod(0, "b", phase(corev1.PodFailed)), pod(2, "a", terminating)}, false, nil},
		"nor is an updated surplus pod deleted":   {[]setOption{replicas(1)}, []*corev1.Pod{pod(0, "a", terminating), pod(1, "b")}, false, nil},
		"an updated pod that terminates counts":   {nil, []*corev1.Pod{pod(0, "b", terminating)}, false, nil},
		"then the first is created":               {nil, nil, false, []string{"create web-0 b"}},
		"then all are created, Parallel":          {[]setOption{parallel}, nil, false, []string{"create web-0 b", "create web-1 b", "create web-2 b"}},
		"then the next is created":                {nil, []*corev1.Pod{pod(0, "b")}, false, []string{"create web-1 b"}},
		"nothing is deleted without a revision":   {nil, []*corev1.Pod{pod(0, "a"), pod(2, "a", phase(corev1.PodFailed))}, true, nil},
		"a lost pod of the recorded one is":       {nil, []*corev1.Pod{pod(0, "b"), pod(2, "b")}, true, []string{"create web-1 b"}},
		"a name of another form is left alone":    {[]setOption{replicas(0)}, []*corev1.Pod{called(pod(7, "a"), "web-07")}, false, nil},
		"one without a revision's name is as old": {[]setOption{replicas(1)}, []*corev1.Pod{pod(0, "")}, false, []string{"delete web-0"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := given(web(append([]setOption{recreating}, c.set...)...), c.pods...)
			f.hold = c.hold
			wantSteps(t, mustPlan(t, f), c.want...)
		})
	}
}

// TestProgressing: the condition of Kubernetes goes through its states, and goes with the strategy.
func TestProgressing(t *testing.T) {
	set := web(recreating)
	var conditions []metav1.Condition
	undone := false // whether the update revision is the current one, as after an undo
	after := func(change setOption, pods ...*corev1.Pod) string {
		change(set)
		rep := report{plan: mustPlan(t, given(set, pods...)), current: "web-a", recorded: &pass.Recorded{Update: &revision.Revision{Name: "web-b"}}}
		if rep.plan.promote || undone {
			rep.current = "web-b"
		}
		rep.setProgressing(set, &conditions, metav1.NewTime(now))
		if len(conditions) == 0 {
			return ""
		}
		return string(conditions[0].Status) + " " + conditions[0].Reason + ": " + conditions[0].Message
	}
	undo := func(*appsv1.StatefulSet) { undone = true }
	unchanged := func(*appsv1.StatefulSet) {}
	updated := []*corev1.Pod{pod(0, "b"), pod(1, "b"), pod(2, "b")}
	for _, c := range []struct{ got, want string }{
		{after(unchanged, updated...), ""},
		{after(unchanged, pod(0, "a"), pod(1, "a")), "True RecreateInProgress: deleting the pods of other revisions"},
		{after(unchanged, pod(1, "a", terminating)), "True RecreateInProgress: deleting the pods of other revisions"},
		{after(unchanged, pod(0, "b"), pod(1, "b", unready)), "True RecreateInProgress: waiting for the pods of revision web-b"},
		{after(unchanged, updated...), "False RecreateCompleted: all pods come from revision web-b"},
		{after(undo, pod(1, "z", terminating)), "True RecreateInProgress: deleting the pods of other revisions"},
		{after(undo), "True RecreateInProgress: waiting for the pods of revision web-b"},
		{after(undo, updated...), "False RecreateCompleted: all pods come from revision web-b"},
		{after(undo, pod(0, "b", unready), pod(1, "b"), pod(2, "b")), "False RecreateCompleted: all pods come from revision web-b"},
		{after(func(s *appsv1.StatefulSet) { s.Spec.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType }, updated...), ""},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
