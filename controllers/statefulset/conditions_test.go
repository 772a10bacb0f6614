package statefulset

// What the status and the events say: conditions and reasons in words, as a golden file. No client.

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/cairn-dev/cairn/pass"
	"github.com/cairn-dev/cairn/revision"
)

func TestConditions(t *testing.T) {
	var out strings.Builder
	for _, c := range []struct {
		name string
		set  []setOption
		pods []*corev1.Pod
	}{
		{"complete", nil, []*corev1.Pod{pod(0, "b"), pod(1, "b"), pod(2, "b")}},
		{"all are updated, one starts", nil, []*corev1.Pod{pod(0, "b"), pod(1, "b"), pod(2, "b", stuck)}},
		{"there are no pods yet", nil, nil},
		{"a step", nil, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "a")}},
		{"a pod terminates", nil, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "a", terminating)}},
		{"a pod is gone", nil, []*corev1.Pod{pod(0, "a"), pod(1, "a")}},
		{"a pod starts", nil, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "b", stuck)}},
		{"two pods terminate", []setOption{atOnce(2)}, []*corev1.Pod{pod(0, "a"), pod(1, "a", terminating), pod(2, "a", terminating)}},
		{"two pods are gone", []setOption{atOnce(2)}, []*corev1.Pod{pod(0, "a")}},
		{"a lost pod is back, not reached", nil, []*corev1.Pod{pod(0, "a", stuck, young), pod(2, "b")}},
		{"an old pod is down, not reached", nil, []*corev1.Pod{pod(0, "a", unready), pod(1, "a"), pod(2, "a")}},
		{"old pods are down, not reached", nil, []*corev1.Pod{pod(0, "a", unready), pod(1, "a", unready), pod(2, "a")}},
		{"an old pod is down, Parallel", []setOption{parallel}, []*corev1.Pod{pod(0, "a", unready), pod(1, "a"), pod(2, "a")}},
		{"the budget is used up", []setOption{parallel}, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "b", stuck)}},
		{"a budget of two is used up", []setOption{parallel, atOnce(2)}, []*corev1.Pod{pod(0, "a"), pod(1, "b", stuck), pod(2, "b", stuck)}},
		{"a pod was never ready", nil, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "a", crashing)}},
		{"a pod that was never ready is kept", []setOption{keepsNeverReady}, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "a", crashing)}},
		{"OnDelete", []setOption{onDelete}, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "b")}},
		{"partition", []setOption{partition(2)}, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "b")}},
		{"a surplus pod", []setOption{replicas(2)}, []*corev1.Pod{pod(0, "b"), pod(1, "b"), pod(2, "b")}},
		{"a surplus pod terminates", []setOption{replicas(1)}, []*corev1.Pod{pod(0, "b"), pod(1, "b"), pod(2, "b", terminating)}},
		{"a surplus pod terminates, Parallel", []setOption{replicas(2), parallel}, []*corev1.Pod{pod(0, "b"), pod(1, "b"), pod(2, "b", terminating)}},
		{"a pod below the first ordinal", []setOption{startAt(1), replicas(2)}, []*corev1.Pod{pod(0, "b"), pod(1, "b"), pod(2, "b")}},
		{"it waits for a pod that is gone", []setOption{startAt(1), replicas(2)}, []*corev1.Pod{pod(0, "b"), pod(1, "b")}},
		{"it waits for a pod that starts", []setOption{startAt(1), replicas(2)}, []*corev1.Pod{pod(0, "b"), pod(1, "b"), pod(2, "b", stuck)}},
		{"it waits for a pod that terminates", []setOption{startAt(1), replicas(2)}, []*corev1.Pod{pod(0, "b"), pod(1, "b"), pod(2, "b", terminating)}},
	} {
		p := mustPlan(t, given(web(c.set...), c.pods...))
		rep := report{plan: p, recorded: &pass.Recorded{Update: &revision.Revision{Name: "web-b"}}}
		condition := rep.rollout(web(c.set...), now).Updated
		fmt.Fprintf(&out, "%s\n    Updated=%s %s: %s\n", c.name, condition.Status, condition.Reason, condition.Message)
		for _, create := range p.Creates {
			fmt.Fprintf(&out, "    create web-%d: %s\n", create.ordinal, create.reason)
		}
		for _, d := range p.Deletes {
			fmt.Fprintf(&out, "    delete %s: %s\n", d.pod.Name, d.reason)
		}
	}
	golden(t, "conditions.golden", out.String())
}
