package daemonset

// Which event wakes which DaemonSet. The routing of child events is tested in ownership; here is what this controller
// adds: its own events, nodes, and how it finds the DaemonSets of an orphan.

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/fakeserver"
)

func TestNodeEvents(t *testing.T) {
	anywhere := agent(func(ds *appsv1.DaemonSet) { ds.Name = "anywhere" })
	inA := agent(func(ds *appsv1.DaemonSet) {
		ds.Name, ds.Namespace = "in-a", "other"
		ds.Spec.Template.Spec.NodeSelector = map[string]string{"zone": "a"}
	})
	w := newWorld(t, anywhere, inA)
	zone := func(z string, options ...nodeOption) client.Object {
		return node("n1", append(options, func(n *corev1.Node) { n.Labels["zone"] = z })...)
	}
	heartbeat := func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, LastHeartbeatTime: metav1.NewTime(now.Add(time.Hour))}}
	}
	for name, c := range map[string]struct {
		before, after client.Object
		want          []string
	}{
		"a node comes":                 {nil, zone("b"), []string{"default/anywhere", "other/in-a"}},
		"a node comes that both want":  {nil, zone("a"), []string{"default/anywhere", "other/in-a"}},
		"a node goes":                  {zone("a"), nil, []string{"default/anywhere", "other/in-a"}},
		"a heartbeat":                  {zone("a"), zone("a", heartbeat), []string{}},
		"a label that one asks for":    {zone("b"), zone("a"), []string{"other/in-a"}},
		"a label that nobody asks for": {zone("b"), zone("c"), []string{}},
		"a taint":                      {zone("a"), zone("a", taint(corev1.TaintEffectNoSchedule)), []string{"default/anywhere", "other/in-a"}},
		"a taint that says more":       {zone("a", taint(corev1.TaintEffectNoSchedule)), zone("a", taint(corev1.TaintEffectNoExecute)), []string{"default/anywhere", "other/in-a"}},
		"a taint that everybody tolerates": {zone("a"), zone("a", func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}
		}), []string{}},
		"one that is not wanted goes": {zone("b", taint(corev1.TaintEffectNoExecute)), nil, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, fakeserver.Woken(t.Context(), w.r.nodeEvents(), c.before, c.after)); diff != "" {
				t.Errorf("woken (-want +got):\n%s", diff)
			}
		})
	}
}
