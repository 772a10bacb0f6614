package daemonset

// Which nodes get a pod, which keep theirs, and which node a pod belongs to.

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPlacement(t *testing.T) {
	type verdict struct{ start, stay bool }
	yes, no, keep := verdict{true, true}, verdict{}, verdict{false, true}
	zone := func(name, zone string) *corev1.Node {
		return node(name, func(n *corev1.Node) { n.Labels["zone"] = zone })
	}
	tainted := func(key string, effect corev1.TaintEffect) *corev1.Node {
		return node("n1", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: key, Value: "v", Effect: effect}} })
	}
	spec := func(change func(*corev1.PodSpec)) dsOption {
		return func(ds *appsv1.DaemonSet) { change(&ds.Spec.Template.Spec) }
	}
	required := func(terms ...corev1.NodeSelectorTerm) dsOption {
		return spec(func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
			}}
		})
	}
	in := func(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: op, Values: values}}}
	}
	tolerating := func(toleration corev1.Toleration) dsOption {
		return spec(func(s *corev1.PodSpec) { s.Tolerations = []corev1.Toleration{toleration} })
	}
	hostNetwork := spec(func(s *corev1.PodSpec) { s.HostNetwork = true })
	for name, c := range map[string]struct {
		ds   dsOption
		node *corev1.Node
		want verdict
	}{
		"any node":                      {nil, node("n1"), yes},
		"nodeName, this":                {spec(func(s *corev1.PodSpec) { s.NodeName = "n1" }), node("n1"), yes},
		"nodeName, another":             {spec(func(s *corev1.PodSpec) { s.NodeName = "n2" }), node("n1"), no},
		"nodeSelector, matching":        {spec(func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"zone": "a"} }), zone("n1", "a"), yes},
		"nodeSelector, not matching":    {spec(func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"zone": "a"} }), zone("n1", "b"), no},
		"affinity, matching":            {required(in("zone", corev1.NodeSelectorOpIn, "a", "b")), zone("n1", "b"), yes},
		"affinity, not matching":        {required(in("zone", corev1.NodeSelectorOpIn, "a", "b")), zone("n1", "c"), no},
		"affinity, one of two terms":    {required(in("zone", corev1.NodeSelectorOpIn, "a"), in("zone", corev1.NodeSelectorOpExists)), zone("n1", "c"), yes},
		"affinity, excluded":            {required(in("zone", corev1.NodeSelectorOpNotIn, "c")), zone("n1", "c"), no},
		"affinity, nonsense":            {required(in("zone", "Like", "c")), zone("n1", "c"), no},
		"affinity by name":              {required(corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{"n2"}}}}), node("n1"), no},
		"taint NoSchedule":              {nil, tainted("x", corev1.TaintEffectNoSchedule), keep},
		"taint NoExecute":               {nil, tainted("x", corev1.TaintEffectNoExecute), no},
		"taint PreferNoSchedule":        {nil, tainted("x", corev1.TaintEffectPreferNoSchedule), yes},
		"taint NoSchedule, other node":  {spec(func(s *corev1.PodSpec) { s.NodeName = "n2" }), tainted("x", corev1.TaintEffectNoSchedule), no},
		"NoSchedule tolerated":          {tolerating(corev1.Toleration{Key: "x", Operator: corev1.TolerationOpExists}), tainted("x", corev1.TaintEffectNoSchedule), yes},
		"NoSchedule tolerated by value": {tolerating(corev1.Toleration{Key: "x", Operator: corev1.TolerationOpEqual, Value: "v"}), tainted("x", corev1.TaintEffectNoSchedule), yes},
		"NoSchedule, wrong value":       {tolerating(corev1.Toleration{Key: "x", Operator: corev1.TolerationOpEqual, Value: "w"}), tainted("x", corev1.TaintEffectNoSchedule), keep},
		"NoExecute, NoSchedule allowed": {tolerating(corev1.Toleration{Key: "x", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}), tainted("x", corev1.TaintEffectNoExecute), no},
		"everything tolerated":          {tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists}), tainted("x", corev1.TaintEffectNoExecute), yes},
		"node not ready":                {nil, tainted(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute), yes},
		"node unreachable":              {nil, tainted(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute), yes},
		"node not ready, NoSchedule":    {nil, tainted(corev1.TaintNodeNotReady, corev1.TaintEffectNoSchedule), keep},
		"disk pressure":                 {nil, tainted(corev1.TaintNodeDiskPressure, corev1.TaintEffectNoSchedule), yes},
		"memory pressure":               {nil, tainted(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule), yes},
		"PID pressure":                  {nil, tainted(corev1.TaintNodePIDPressure, corev1.TaintEffectNoSchedule), yes},
		"cordoned":                      {nil, tainted(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule), yes},
		"no network":                    {nil, tainted(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule), keep},
		"no network, host's is used":    {hostNetwork, tainted(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule), yes},
		"node not ready, own patience":  {tolerating(corev1.Toleration{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(5))}), tainted(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute), yes},
		"out of service":                {nil, tainted(corev1.TaintNodeOutOfService, corev1.TaintEffectNoExecute), no},
	} {
		t.Run(name, func(t *testing.T) {
			ds := agent()
			if c.ds != nil {
				c.ds(ds)
			}
			before := ds.DeepCopy()
			start, stay := placementFor(ds).on(c.node)
			if got := (verdict{start, stay}); got != c.want {
				t.Errorf("start and stay: %v, want %v", got, c.want)
			}
			if diff := cmp.Diff(before, ds); diff != "" {
				t.Errorf("the DaemonSet changed:\n%s", diff)
			}
		})
	}
}

func TestNodeOf(t *testing.T) {
	affinity := func(fields ...corev1.NodeSelectorRequirement) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: fields}}},
		}}}}
	}
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"scheduled":          {pod("n1", hashOld), "n1"},
		"unscheduled":        {pod("n1", hashOld, unscheduled), "n1"},
		"as podFor makes it": {podFor(agent(), hashOld, creation{node: "n1"}), "n1"},
		"scheduled elsewhere": {func() *corev1.Pod {
			p := podFor(agent(), hashOld, creation{node: "n1"})
			p.Spec.NodeName = "n2"
			return p
		}(), "n2"},
		"nowhere":              {&corev1.Pod{}, ""},
		"no node affinity":     {&corev1.Pod{Spec: corev1.PodSpec{Affinity: &corev1.Affinity{}}}, ""},
		"no required affinity": {&corev1.Pod{Spec: corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}}}, ""},
		"by another field":     {affinity(corev1.NodeSelectorRequirement{Key: "metadata.uid", Operator: corev1.NodeSelectorOpIn, Values: []string{"n1"}}), ""},
		"anywhere but there":   {affinity(corev1.NodeSelectorRequirement{Key: "metadata.name", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"n1"}}), ""},
		"two to choose from":   {affinity(corev1.NodeSelectorRequirement{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n1", "n2"}}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := nodeOf(c.pod)
			if got != c.want || (err == nil) != (c.want != "") {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestByNode(t *testing.T) {
	lost := pod("", hashOld, named("lost"))
	got := byNode([]*corev1.Pod{
		pod("n1", hashOld), pod("n1", hashNew, terminating), pod("n2", hashOld, unscheduled), lost,
		pod("n3", hashOld, phase(corev1.PodFailed)), pod("n3", hashNew, phase(corev1.PodFailed), terminating),
		pod("n4", hashNew, phase(corev1.PodSucceeded), terminating),
	})
	names := map[string][]string{}
	for node, pods := range got {
		for _, p := range pods {
			names[node] = append(names[node], p.Name)
		}
	}
	want := map[string][]string{"n1": {"n1-old", "n1-new"}, "n2": {"n2-old"}, "n3": {"n3-old"}}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("pods by node (-want +got):\n%s", diff)
	}
}
