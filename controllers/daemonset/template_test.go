package daemonset

// The pod of a revision for a node: as a golden file, and what each part of it depends on; and its name.

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

// rich is a DaemonSet whose template has a bit of everything that a pod of it gets or loses.
func rich() *appsv1.DaemonSet {
	seconds := int64(30)
	return agent(func(ds *appsv1.DaemonSet) {
		ds.Labels = map[string]string{"of": "the DaemonSet, not the pod's"}
		ds.Annotations = map[string]string{appsv1.DeprecatedTemplateGeneration: "5", "of": "the DaemonSet, not the pod's"}
		template := &ds.Spec.Template
		template.Name = "ignored"
		template.Labels["tier"] = "node"
		template.Annotations = map[string]string{"note": "kept"}
		template.Finalizers = []string{"example.com/kept"}
		template.Spec.HostNetwork = true
		template.Spec.Tolerations = []corev1.Toleration{
			{Key: "dedicated", Operator: corev1.TolerationOpExists},
			{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds},
		}
		template.Spec.Affinity = &corev1.Affinity{
			PodAntiAffinity: &corev1.PodAntiAffinity{},
			NodeAffinity: &corev1.NodeAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1}},
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}},
				}}},
			},
		}
	})
}

func TestPodFor(t *testing.T) {
	ds := rich()
	before := ds.DeepCopy()
	got, err := yaml.Marshal(podFor(ds, "59c5455d9b", creation{node: "worker-1"}))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "pod.yaml", string(got))
	if diff := cmp.Diff(before, ds); diff != "" {
		t.Errorf("the DaemonSet changed:\n%s", diff)
	}
}

// Changing a pod must not change the DaemonSet that it was made from: that one comes from a cache.
func TestPodSharesNothing(t *testing.T) {
	ds := rich()
	before := ds.DeepCopy()
	p := podFor(ds, hashNew, creation{node: "n1"})
	p.Labels["x"], p.Annotations["x"], p.Finalizers[0], p.Spec.Containers[0].Image = "x", "x", "x", "x"
	p.Spec.Tolerations[0].Key, p.Spec.Affinity.PodAntiAffinity = "x", nil
	if diff := cmp.Diff(before, ds); diff != "" {
		t.Errorf("the DaemonSet changed:\n%s", diff)
	}
}

func TestTemplateGenerationLabel(t *testing.T) {
	for annotation, want := range map[string]string{"5": "5", "007": "7", "": "", "five": ""} {
		ds := agent(func(ds *appsv1.DaemonSet) {
			ds.Annotations = map[string]string{appsv1.DeprecatedTemplateGeneration: annotation}
		})
		if got := podFor(ds, hashNew, creation{node: "n1"}).Labels["pod-template-generation"]; got != want {
			t.Errorf("annotation %q gives label %q, want %q", annotation, got, want)
		}
	}
	if _, ok := podFor(agent(), hashNew, creation{node: "n1"}).Labels["pod-template-generation"]; ok {
		t.Error("there is a label without the annotation")
	}
}

// The revision's hash wins over whatever the template says, or a pod could pass for one of another revision.
func TestHashLabelOfTheTemplate(t *testing.T) {
	ds := agent(func(ds *appsv1.DaemonSet) { ds.Spec.Template.Labels["controller-revision-hash"] = "forged" })
	if got := podFor(ds, hashNew, creation{node: "n1"}).Labels["controller-revision-hash"]; got != hashNew {
		t.Errorf("labelled %q", got)
	}
}

func TestDefaultTolerations(t *testing.T) {
	keys := func(spec *corev1.PodSpec) map[string]corev1.TaintEffect {
		out := map[string]corev1.TaintEffect{}
		for _, toleration := range spec.Tolerations {
			if toleration.Operator != corev1.TolerationOpExists || toleration.TolerationSeconds != nil {
				t.Errorf("toleration %+v", toleration)
			}
			out[toleration.Key] = toleration.Effect
		}
		return out
	}
	want := map[string]corev1.TaintEffect{
		"node.kubernetes.io/not-ready": "NoExecute", "node.kubernetes.io/unreachable": "NoExecute",
		"node.kubernetes.io/disk-pressure": "NoSchedule", "node.kubernetes.io/memory-pressure": "NoSchedule",
		"node.kubernetes.io/pid-pressure": "NoSchedule", "node.kubernetes.io/unschedulable": "NoSchedule",
	}
	spec := corev1.PodSpec{}
	tolerate(&spec)
	if diff := cmp.Diff(want, keys(&spec)); diff != "" {
		t.Errorf("tolerations (-want +got):\n%s", diff)
	}
	once := spec.DeepCopy()
	tolerate(&spec)
	if diff := cmp.Diff(once, &spec); diff != "" {
		t.Errorf("tolerating twice differs:\n%s", diff)
	}
	want["node.kubernetes.io/network-unavailable"] = "NoSchedule"
	host := corev1.PodSpec{HostNetwork: true}
	tolerate(&host)
	if diff := cmp.Diff(want, keys(&host)); diff != "" {
		t.Errorf("with the host's network (-want +got):\n%s", diff)
	}
}

// dnsNames generates names that the API server lets a DaemonSet have.
func dnsNames() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		name := strings.Repeat("a", rapid.IntRange(0, 200).Draw(t, "length")) // by itself, rapid makes short ones
		name += rapid.StringMatching(`[a-z0-9]([-.a-z0-9]{0,49}[a-z0-9])?`).Draw(t, "name")
		for strings.Contains(name, "..") || strings.Contains(name, ".-") || strings.Contains(name, "-.") {
			name = strings.NewReplacer("..", ".", ".-", "-", "-.", "-").Replace(name)
		}
		return name
	}).Filter(func(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 })
}

func TestPodNameIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{
			Name: dnsNames().Draw(t, "ds"), UID: types.UID(rapid.String().Draw(t, "uid")),
		}}
		hash, c := rapid.String().Draw(t, "hash"), creation{node: dnsNames().Draw(t, "node"), after: types.UID(rapid.String().Draw(t, "after"))}
		name := podName(ds, hash, c)
		if len(name) > 63 || len(validation.IsDNS1123Subdomain(name)) > 0 {
			t.Fatalf("%q has %d bytes: %v", name, len(name), validation.IsDNS1123Subdomain(name))
		}
		if again := podName(ds, hash, c); again != name {
			t.Fatalf("%q, and then %q", name, again)
		}
		if cut := min(len(ds.Name), 50); !strings.HasPrefix(name, strings.TrimRight(ds.Name[:cut], ".-")) {
			t.Fatalf("%q does not begin with the name %q", name, ds.Name)
		}
	})
}

// Each part of the identity makes another name, also where two parts could be read as two others.
func TestPodNameDiffers(t *testing.T) {
	names := map[string]string{}
	for _, uid := range []types.UID{"u", "un"} {
		for _, node := range []string{"n", "nn", "n1"} {
			for _, hash := range []string{"h", "nh", "1h"} {
				for _, after := range []types.UID{"", "a", "b"} {
					ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "agent", UID: uid}}
					name := podName(ds, hash, creation{node: node, after: after})
					is := strings.Join([]string{string(uid), node, hash, string(after)}, " ")
					if was, taken := names[name]; taken {
						t.Errorf("%s is the name for %s and for %s", name, was, is)
					}
					names[name] = is
				}
			}
		}
	}
	// A constant, because two managers of different versions must agree on it.
	if got := podName(agent(), "59c5455d9b", creation{node: "worker-1"}); got != "agent-9cb57978b6" {
		t.Errorf("named %s", got)
	}
}

// TestConformsByTemplateGeneration: a pod with another hash comes from the update revision if its template generation
// is the DaemonSet's. A pod of an earlier DaemonSet does not.
func TestConformsByTemplateGeneration(t *testing.T) {
	ds := agent(func(ds *appsv1.DaemonSet) {
		ds.UID, ds.CreationTimestamp = "uid-of-agent", metav1.NewTime(now.Add(-time.Hour))
		ds.Annotations = map[string]string{appsv1.DeprecatedTemplateGeneration: "5"}
	})
	generation := func(value string) podOption {
		return func(p *corev1.Pod) { p.GenerateName, p.Labels["pod-template-generation"] = "agent-", value }
	}
	of := func(generateName string) podOption { return func(p *corev1.Pod) { p.GenerateName = generateName } }
	noHash := func(p *corev1.Pod) { delete(p.Labels, "controller-revision-hash") }
	first := named(podName(ds, hashNew, creation{node: "n1"}))
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		hold bool
		want bool
	}{
		"its revision was deleted":            {pod("n1", "gone", generation("5"), age(time.Minute)), false, true},
		"admission has taken the hash":        {pod("n1", "", noHash, generation("5"), age(time.Minute)), false, true},
		"of an earlier template":              {pod("n1", "gone", generation("4"), age(time.Minute)), false, false},
		"its hash is of another revision":     {pod("n1", hashOld, generation("5"), age(time.Minute)), false, true},
		"of an earlier DaemonSet":             {pod("n1", "gone", generation("5"), age(2*time.Hour)), false, false},
		"as old as the DaemonSet":             {pod("n1", "gone", generation("5"), age(time.Hour)), false, false},
		"as old, with the name of the first":  {pod("n1", "gone", generation("5"), age(time.Hour), first), false, true},
		"of another DaemonSet":                {pod("n1", "gone", generation("5"), age(time.Minute), of("others-")), false, false},
		"it has no generation":                {pod("n1", "gone", age(time.Minute)), false, false},
		"the update revision is not recorded": {pod("n1", "gone", generation("5"), age(time.Minute)), true, false},
	} {
		f := facts{ds: ds, hash: hashNew, hold: c.hold}
		if got := f.conforms(c.pod); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
