package sim

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/kinds"
	"github.com/cairn-dev/cairn/proof/sim/model"
)

// This file is the rest of the cluster: machines that come and go, the scheduler of pods, the kubelets and the
// collector of pods whose node is gone. They make no mistakes; what they do and when is enough.

// Users of the requests that no manager makes.
const (
	userPerson  = "user"
	userKubelet = "kubelet"
	userMachine = "machine"
	userGC      = "gc"
)

// The resources that are everywhere.
var pods, nodes, configMaps = kinds.Pod.GVR, kinds.Node.GVR, kinds.ConfigMap.GVR

// brokenImage is an image with which no pod ever becomes ready: its container crashes.
const brokenImage = "broken"

func broken(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return strings.HasPrefix(c.Image, brokenImage) })
}

func (w *world) pods() []*corev1.Pod {
	objects := w.all(pods)
	out := make([]*corev1.Pod, 0, len(objects))
	for _, o := range objects {
		out = append(out, o.(*corev1.Pod))
	}
	return out
}

// kubeletMoves are what schedulers and kubelets can do now. What must happen some day comes several times, what may
// never happen once.
func (w *world) kubeletMoves() []func() {
	var out []func()
	for _, pod := range w.pods() {
		if due := w.due(pod); due != nil {
			out = append(out, due, due, due)
			continue
		}
		if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil || w.chance.IntN(8) > 0 {
			continue
		}
		switch w.chance.IntN(4) {
		case 0:
			out = append(out, func() { w.setPhase(pod, corev1.PodFailed, false) })
		case 1:
			out = append(out, func() { w.setPhase(pod, corev1.PodSucceeded, false) })
		default:
			out = append(out, func() { w.setPhase(pod, corev1.PodRunning, !ready(pod)) })
		}
	}
	return out
}

// due returns what is left to do for a pod, nil if nothing is.
func (w *world) due(pod *corev1.Pod) func() {
	if w.staged.stuck(pod) {
		return nil
	}
	ended := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
	switch {
	case pod.DeletionTimestamp != nil && len(pod.Finalizers) == 0, pod.Spec.NodeName != "" && w.get(nodes, "", pod.Spec.NodeName) == nil:
		return func() { w.end(pod) }
	case pod.DeletionTimestamp != nil || ended:
		return nil
	case pod.Spec.NodeName == "":
		if node := w.nodeFor(pod); node != "" && w.get(nodes, "", node) != nil {
			return func() { w.bind(pod, node) }
		}
		return nil
	default:
		return w.tend(pod)
	}
}

// tend returns what a kubelet has left to do for a pod on its node, nil if nothing. If the pod was changed, its
// containers are started again.
func (w *world) tend(pod *corev1.Pod) func() {
	if w.rejected(pod) {
		return func() { w.setPhase(pod, corev1.PodFailed, false) }
	}
	running := pod.Status.Phase == corev1.PodRunning
	again := running && pod.Status.ObservedGeneration < pod.Generation
	healthy := w.healthy(pod) && !again
	if running && !again && ready(pod) == healthy {
		return nil
	}
	return func() { w.setPhase(pod, corev1.PodRunning, healthy) }
}

// healthy reports whether a pod is to become ready.
func (w *world) healthy(pod *corev1.Pod) bool { return !broken(pod) && !w.staged.unready(pod) }

// nodeFor is the node that the scheduler picks for a pod, empty if it picks none.
func (w *world) nodeFor(pod *corev1.Pod) string {
	if node := target(pod); node != "" {
		return node
	}
	there := w.shelves[nodes].keys // the keys of what has no namespace are names
	scheduled := slices.ContainsFunc(w.kinds, func(k Kind) bool { return k.Scheduled })
	if !scheduled || len(there) == 0 {
		return ""
	}
	return there[int(pod.UID[len(pod.UID)-1])%len(there)]
}

// target is the node that a pod which is not scheduled asks for by name.
func target(pod *corev1.Pod) string {
	a := pod.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			if field.Key == metav1.ObjectNameField && len(field.Values) == 1 {
				return field.Values[0]
			}
		}
	}
	return ""
}

func ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// end removes a pod that has stopped running.
func (w *world) end(pod *corev1.Pod) {
	w.ask(model.Request{
		Verb: model.VerbDelete, Resource: pods, Namespace: pod.Namespace, Name: pod.Name, User: userKubelet,
		Preconditions: &metav1.Preconditions{UID: &pod.UID}, GracePeriodSeconds: new(int64),
	})
}

func (w *world) bind(pod *corev1.Pod, node string) {
	w.ask(model.Request{
		Verb: model.VerbCreate, Resource: pods, Subresource: "binding", Namespace: pod.Namespace, Name: pod.Name, User: userKubelet,
		Object: &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
			Target:     corev1.ObjectReference{Kind: "Node", Name: node},
		},
	})
}

// setPhase writes what a kubelet says of a pod.
func (w *world) setPhase(pod *corev1.Pod, phase corev1.PodPhase, isReady bool) {
	now := metav1.NewTime(w.kubeletClock(pod.Spec.NodeName))
	out := pod.DeepCopy()
	out.Status.Phase = phase
	out.Status.ObservedGeneration = pod.Generation
	if out.Status.StartTime == nil {
		out.Status.StartTime = &now
	}
	status := corev1.ConditionFalse
	if isReady {
		status = corev1.ConditionTrue
	}
	at := slices.IndexFunc(out.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady })
	if at < 0 {
		out.Status.Conditions = append(out.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady})
		at = len(out.Status.Conditions) - 1
	}
	if broken(pod) && phase == corev1.PodRunning {
		out.Status.ContainerStatuses = crashing(pod)
	}
	if c := &out.Status.Conditions[at]; c.Status != status {
		c.Status, c.LastTransitionTime = status, now
	}
	w.ask(model.Request{
		Verb: model.VerbUpdate, Resource: pods, Subresource: "status", Namespace: pod.Namespace, Name: pod.Name, Object: out, User: userKubelet,
	})
}

// crashing is what a kubelet says of containers that do not start.
func crashing(pod *corev1.Pod) []corev1.ContainerStatus {
	out := make([]corev1.ContainerStatus, 0, len(pod.Spec.Containers))
	for _, c := range pod.Spec.Containers {
		out = append(out, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image,
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		})
	}
	return out
}

// maxMachines bounds the worlds: what goes wrong with four nodes goes wrong with four hundred.
const maxMachines = 4

func (w *world) addMachine(n int) {
	w.ask(model.Request{Verb: model.VerbCreate, Resource: nodes, User: userMachine, Object: &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("node-%d", n), Labels: map[string]string{corev1.LabelHostname: fmt.Sprintf("node-%d", n)},
		},
	}})
}

// moveMachine lets a node come or go, or changes what it accepts.
func (w *world) moveMachine() {
	name := fmt.Sprintf("node-%d", w.chance.IntN(maxMachines))
	node, _ := w.get(nodes, "", name).(*corev1.Node)
	switch {
	case node == nil:
		w.stats.count("nodes come")
		w.addMachine(int(name[len(name)-1] - '0'))
	case w.chance.IntN(3) == 0:
		w.stats.count("nodes go")
		w.ask(model.Request{Verb: model.VerbDelete, Resource: nodes, Name: name, User: userMachine})
	default:
		w.stats.count("nodes change")
		out := node.DeepCopy()
		switch w.chance.IntN(4) {
		case 0:
			out.Spec.Taints = []corev1.Taint{{Key: "sim", Effect: corev1.TaintEffectNoSchedule}}
		case 1:
			out.Spec.Taints = []corev1.Taint{{Key: "sim", Effect: corev1.TaintEffectNoExecute}}
		case 2:
			metav1.SetMetaDataLabel(&out.ObjectMeta, "zone", []string{"a", "b"}[w.chance.IntN(2)])
		default:
			out.Spec.Taints = nil
		}
		w.ask(model.Request{Verb: model.VerbUpdate, Resource: nodes, Name: name, Object: out, User: userMachine})
	}
}

func ownerOf(o client.Object) types.UID {
	if ref := metav1.GetControllerOfNoCopy(o); ref != nil {
		return ref.UID
	}
	return ""
}
