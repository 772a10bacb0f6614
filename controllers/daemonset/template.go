package daemonset

import (
	"hash/fnv"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/pass"
)

// This file builds the pod of a revision for a node.

// tolerate adds what every daemon pod tolerates: problems of the node that it serves.
func tolerate(spec *corev1.PodSpec) {
	add := func(key string, effect corev1.TaintEffect) {
		spec.Tolerations = withToleration(spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect})
	}
	add(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute)
	add(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute)
	add(corev1.TaintNodeDiskPressure, corev1.TaintEffectNoSchedule)
	add(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule)
	add(corev1.TaintNodePIDPressure, corev1.TaintEffectNoSchedule)
	add(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule)
	if spec.HostNetwork {
		add(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule)
	}
}

// withToleration adds t, in place of one for the same taint if there is one: two for one taint would make the pod
// differ from what the API server stores.
func withToleration(tolerations []corev1.Toleration, t corev1.Toleration) []corev1.Toleration {
	for i := range tolerations {
		if tolerations[i].MatchToleration(&t) {
			tolerations[i] = t
			return tolerations
		}
	}
	return append(tolerations, t)
}

// podFor builds the pod of ds for c. ds has the template of the revision with that hash. If that is not the update
// revision, ds has no template generation.
func podFor(ds *appsv1.DaemonSet, hash string, c creation) *corev1.Pod {
	pod := pass.PodFrom(&ds.Spec.Template, ds, kind)
	pod.Name = podName(ds, hash, c)
	pod.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] = hash
	if generation := history.TemplateGeneration(ds); generation != "" {
		pod.Labels[history.TemplateGenerationLabel] = generation
	}
	tolerate(&pod.Spec)
	bind(&pod.Spec, c.node)
	return pod
}

// bind makes the scheduler put the pod on node and nowhere else. It replaces the required node affinity, which was
// applied when the node was chosen.
func bind(spec *corev1.PodSpec, node string) {
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{
				Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
			}},
		}},
	}
}

// podName is deterministic, so that a pod that is created twice, by a lost response or by two managers, exists once. It
// differs from node to node, from revision to revision, because a surge holds two on a node, and from that of the pod
// that it replaces: clients that wait until that one is not found, as kubectl and the conformance tests do, would wait
// for ever.
func podName(ds client.Object, hash string, c creation) string {
	const (
		maxHostname = 63             // longer pod names give truncated host names
		tenDigits   = 10_000_000_000 // as long as a revision's hash; a clash costs one more probe
	)
	// The 0 was once a count of taken names. It stays, so that an upgrade does not change the names of pods.
	parts := []string{string(ds.GetUID()), c.node, hash, "0"}
	if c.after != "" {
		parts = append(parts, string(c.after))
	}
	h := fnv.New64a()
	for _, part := range parts {
		_, _ = h.Write([]byte(part)) // a hash never fails to write
		_, _ = h.Write([]byte{0})
	}
	suffix := rand.SafeEncodeString(strconv.FormatUint(h.Sum64()%tenDigits, 10))
	prefix := ds.GetName()
	if limit := maxHostname - len(suffix) - 1; len(prefix) > limit {
		prefix = strings.TrimRight(prefix[:limit], ".-")
	}
	return prefix + "-" + suffix
}
