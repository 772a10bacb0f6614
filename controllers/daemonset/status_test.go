package daemonset

// What the status says: conditions in words, as a golden file, and when it changes. No client.

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/pass"
	"github.com/cairn-dev/cairn/revision"
)

func TestConditions(t *testing.T) {
	healthyBefore := func(ds *appsv1.DaemonSet) {
		ds.Status.Conditions = []appsv1.DaemonSetCondition{{Type: ConditionHistoryHealthy, Status: corev1.ConditionFalse}}
	}
	recorded := &revision.Revision{Name: "agent-new"}
	unreadable := []revision.Revision{{Name: "agent-x", Err: &revision.UndecodableError{Revision: "agent-x", Err: errors.New("it is null, not an object")}}, {}}
	tooLarge := fmt.Errorf("record: %w", &history.TooLargeError{Bytes: 2000000})
	var out strings.Builder
	for _, c := range []struct {
		name  string
		ds    []dsOption
		nodes int
		pods  []*corev1.Pod
		rep   report
	}{
		{"no nodes", nil, 0, nil, report{recorded: &pass.Recorded{Update: recorded}}},
		{"complete", nil, 2, []*corev1.Pod{pod("n1", hashNew), pod("n2", hashNew)}, report{recorded: &pass.Recorded{Update: recorded}}},
		{"complete, not available", nil, 2, []*corev1.Pod{pod("n1", hashNew, notReady), pod("n2", hashNew)}, report{recorded: &pass.Recorded{Update: recorded}}},
		{"complete, OnDelete", []dsOption{onDelete}, 1, []*corev1.Pod{pod("n1", hashNew)}, report{recorded: &pass.Recorded{Update: recorded}}},
		{"a step", nil, 2, []*corev1.Pod{pod("n1", hashNew), pod("n2", hashOld)}, report{recorded: &pass.Recorded{Update: recorded}}},
		{"a free step", nil, 2, []*corev1.Pod{pod("n1", hashOld), pod("n2", hashOld, notReady)}, report{recorded: &pass.Recorded{Update: recorded}}},
		{"a surge", []dsOption{rolling(0, 1)}, 2, []*corev1.Pod{pod("n1", hashNew), pod("n2", hashOld)}, report{recorded: &pass.Recorded{Update: recorded}}},
		{"a surge that waits", []dsOption{rolling(0, 1)}, 1, []*corev1.Pod{pod("n1", hashNew, notReady), pod("n1", hashOld)}, report{recorded: &pass.Recorded{Update: recorded}}},
		{"a surge that is over", []dsOption{rolling(0, 1)}, 1, []*corev1.Pod{pod("n1", hashNew), pod("n1", hashOld)}, report{recorded: &pass.Recorded{Update: recorded}}},
		{"two are down", []dsOption{rolling(2, 0)}, 3, []*corev1.Pod{pod("n1", hashNew, notReady), pod("n2", hashNew, notReady), pod("n3", hashOld)}, report{recorded: &pass.Recorded{Update: recorded}}},
		{"waiting", nil, 2, []*corev1.Pod{pod("n1", hashNew, notReady), pod("n2", hashOld)}, report{recorded: &pass.Recorded{Update: recorded}}},
		{"waiting for a person", []dsOption{onDelete}, 2, []*corev1.Pod{pod("n1", hashNew), pod("n2", hashOld)}, report{recorded: &pass.Recorded{Update: recorded}}},
		{"starting", nil, 2, nil, report{recorded: &pass.Recorded{Update: recorded}}},
		{"not recorded", nil, 1, []*corev1.Pod{pod("n1", hashOld)}, report{recorded: &pass.Recorded{Failed: errors.New("create revision agent-new: forbidden")}}},
		{"too large", nil, 1, nil, report{recorded: &pass.Recorded{Failed: tooLarge}}},
		{"unreadable", nil, 0, nil, report{recorded: &pass.Recorded{Update: recorded, Undecodable: unreadable}}},
		{"unreadable and not recorded", nil, 0, nil, report{recorded: &pass.Recorded{Undecodable: unreadable, Failed: errors.New("boom")}}},
		{"pods that are refused", nil, 2, nil, report{recorded: &pass.Recorded{Update: recorded}, failed: errors.Join(errors.New("create a pod for node n1: no"), errors.New("the next"))}},
		{"well again", []dsOption{healthyBefore}, 0, nil, report{recorded: &pass.Recorded{Update: recorded}}},
	} {
		ds := agent(c.ds...)
		f := given(ds, nodes("n1", "n2", "n3")[:c.nodes], c.pods...)
		if c.rep.recorded.Update == nil {
			f.hash = ""
		}
		c.rep.plan = mustPlan(t, f)
		fmt.Fprintf(&out, "%s\n", c.name)
		conditions := pass.ConditionsOf(ds.Status.Conditions, conditionFields)
		pass.SetCondition(&conditions, c.rep.rollout(ds, now).Updated)
		r := newWorld(t).r
		c.rep.recorded.SetHealthy(r.NewPass(ds), &conditions, nil, now)
		slices.SortFunc(conditions, func(a, b metav1.Condition) int { return -strings.Compare(a.Type, b.Type) })
		for _, condition := range conditions {
			fmt.Fprintf(&out, "    %s=%s %s: %s\n", condition.Type, condition.Status, condition.Reason, condition.Message)
		}
	}
	golden(t, "conditions.golden", out.String())
}

// A node that takes no new pod keeps the one it has, and is no part of the rollout. While it holds two, one of them is
// about to go, and the condition says what that waits for.
func TestConditionOfALeavingNode(t *testing.T) {
	ds := agent(onDelete)
	tainted := nodes("n1")
	tainted[0].Spec.Taints = []corev1.Taint{{Key: "full", Effect: corev1.TaintEffectNoSchedule}}
	for message, pods := range map[string][]*corev1.Pod{
		"latest ControllerRevision: agent-new": {pod("n1", hashOld)},
		"0 of 0 pods updated; n1: ":            {pod("n1", hashNew, notReady), pod("n1", hashOld)},
	} {
		rep := report{recorded: &pass.Recorded{Update: &revision.Revision{Name: "agent-new"}}, plan: mustPlan(t, given(ds, tainted, pods...))}
		if c := rep.rollout(ds, now).Updated; !strings.HasPrefix(c.Message, message) || (c.Status == metav1.ConditionTrue) != (len(pods) == 1) {
			t.Errorf("with %d pods: %s %s: %s", len(pods), c.Status, c.Reason, c.Message)
		}
	}
}
