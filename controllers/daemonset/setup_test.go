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
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/fakeserver"
	"github.com/cairn-dev/cairn/ownership"
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

// A DaemonSet of the same name inherits nothing (X1): neither unseen writes nor the check of the cache.
func TestOwnEvents(t *testing.T) {
	again := agent(func(ds *appsv1.DaemonSet) { ds.UID = "again" })
	for name, c := range map[string]struct {
		before, after client.Object
		woken         []string
		forgotten     bool
	}{
		"created":  {nil, agent(), []string{"default/agent"}, false},
		"updated":  {agent(), agent(), []string{"default/agent"}, false},
		"replaced": {agent(), again, []string{"default/agent"}, true},
		"deleted":  {agent(), nil, []string{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := worldOf(newServer(t), nil, map[schema.GroupResource]ownership.Store{podResource: &store{version: "1"}})
			w.r.Consistency.WroteAt("agent-uid", podResource, pod("n1", hashNew, func(p *corev1.Pod) { p.ResourceVersion = "5" }))
			confirm := func(cached ...client.Object) string {
				why, err := w.r.pods.Fresh.Confirm(t.Context(), agent(), labels.SelectorFromSet(labels.Set{"app": "agent"}), cached)
				if err != nil {
					t.Fatal(err)
				}
				return why
			}
			if why := confirm(); why != "" {
				t.Fatal(why)
			}
			if diff := cmp.Diff(c.woken, fakeserver.Woken(t.Context(), w.r.ParentEvents(), c.before, c.after)); diff != "" {
				t.Errorf("woken (-want +got):\n%s", diff)
			}
			confirmed := confirm(pod("n1", hashNew)) == "" // there is no such pod, so only a memory says so
			if unseen := w.r.Consistency.Unseen("agent-uid") != ""; unseen == c.forgotten || confirmed == c.forgotten {
				t.Errorf("unseen writes: %v, confirmed: %v", unseen, confirmed)
			}
		})
	}
}

func TestChildEvents(t *testing.T) {
	everything := agent(func(ds *appsv1.DaemonSet) {
		ds.Name, ds.UID, ds.Spec.Selector = "everything", "e", &metav1.LabelSelector{}
	})
	elsewhere := agent(func(ds *appsv1.DaemonSet) { ds.Namespace, ds.UID = "other", "o" })
	twin := agent(func(ds *appsv1.DaemonSet) { ds.Name, ds.UID = "twin", "t" })
	w := newWorld(t, agent(), everything, elsewhere, twin)
	orphan := pod("n1", hashNew)
	orphan.OwnerReferences = nil
	foreign := pod("n1", hashNew, func(p *corev1.Pod) { p.OwnerReferences[0].UID = "old-uid" })
	for name, c := range map[string]struct {
		child client.Object
		want  []string
	}{
		"ours":              {pod("n1", hashNew), []string{"default/agent"}},
		"of our namesake":   {foreign, []string{}},
		"a matching orphan": {orphan, []string{"default/agent", "default/twin"}},
		"another orphan":    {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default"}}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, fakeserver.Woken(t.Context(), w.r.Parents().Router().Handler(), nil, c.child)); diff != "" {
				t.Errorf("woken (-want +got):\n%s", diff)
			}
		})
	}
}
