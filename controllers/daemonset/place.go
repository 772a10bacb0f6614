package daemonset

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// This file says on which nodes a DaemonSet's pods belong. It is pure; node selection itself is component-helpers'.

// placement is where the pods of one template belong. It is made once a pass, because compiling a selector costs more
// than matching it.
type placement struct {
	nodeName    string
	required    nodeaffinity.RequiredNodeAffinity
	tolerations []corev1.Toleration
}

func placementFor(ds *appsv1.DaemonSet) placement {
	template := &ds.Spec.Template
	pod := &corev1.Pod{Spec: *template.Spec.DeepCopy()}
	tolerate(&pod.Spec)
	return placement{
		nodeName:    template.Spec.NodeName,
		required:    nodeaffinity.GetRequiredNodeAffinity(pod),
		tolerations: pod.Spec.Tolerations,
	}
}

// on reports whether a pod should be started on node, and whether one that runs there may stay. A node with a
// NoSchedule taint keeps its pod; one with a NoExecute taint, or one that is not selected, does not.
func (p placement) on(node *corev1.Node) (start, stay bool) {
	if p.nodeName != "" && p.nodeName != node.Name {
		return false, false
	}
	// A selector that does not parse selects nothing; the API server refuses new ones.
	if fits, err := p.required.Match(node); err != nil || !fits {
		return false, false
	}
	if p.tolerates(node, corev1.TaintEffectNoExecute, corev1.TaintEffectNoSchedule) {
		return true, true
	}
	return false, p.tolerates(node, corev1.TaintEffectNoExecute)
}

func (p placement) tolerates(node *corev1.Node, effects ...corev1.TaintEffect) bool {
	_, untolerated := corev1helpers.FindMatchingUntoleratedTaint(logr.Discard(), node.Spec.Taints, p.tolerations, func(t *corev1.Taint) bool {
		return slices.Contains(effects, t.Effect)
	}, true)
	return !untolerated
}

// nodeOf returns the node that a pod is on, or is to run on: a pod that is not scheduled yet names it in its affinity.
// It returns an error for a pod that names none, which a DaemonSet cannot have created.
func nodeOf(pod *corev1.Pod) (string, error) {
	if pod.Spec.NodeName != "" {
		return pod.Spec.NodeName, nil
	}
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			for _, field := range term.MatchFields {
				if field.Key == metav1.ObjectNameField && field.Operator == corev1.NodeSelectorOpIn && len(field.Values) == 1 {
					return field.Values[0], nil
				}
			}
		}
	}
	return "", fmt.Errorf("pod %s/%s is bound for no node", pod.Namespace, pod.Name)
}

// byNode groups the pods that count by the node that they are, or will be, on. A terminating pod that has ended only
// waits for a finalizer of another controller; it takes no place.
func byNode(pods []*corev1.Pod) map[string][]*corev1.Pod {
	out := make(map[string][]*corev1.Pod, len(pods))
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil && (pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded) {
			continue
		}
		if node, err := nodeOf(pod); err == nil {
			out[node] = append(out[node], pod)
		}
	}
	return out
}

// elder orders pods of one node as kubectl users count them: scheduled ones first, then the oldest, then by name.
func elder(a, b *corev1.Pod) int {
	if (a.Spec.NodeName == "") != (b.Spec.NodeName == "") {
		if a.Spec.NodeName != "" {
			return -1
		}
		return 1
	}
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		if a.CreationTimestamp.Before(&b.CreationTimestamp) {
			return -1
		}
		return 1
	}
	return cmp.Compare(a.Name, b.Name)
}
