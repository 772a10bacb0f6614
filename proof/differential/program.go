package differential

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file is the program of one workload: its manifest, and random steps that change the manifest or disturb pods.

// poolLabel is a label of nodes. Steps take it from nodes and give it back.
const poolLabel = "pool"

// pools are the values of the label at the beginning, by node.
var pools = []string{"a", "", "b", "b", "b"}

// workload is the manifest of one workload, as its program has edited it so far.
type workload struct {
	kind, name string
	// image is the image of the template, and good is the last image that starts.
	image, good string
	version     int
	// pool is the value of poolLabel that the pods need on their node, empty for any node.
	pool     string
	replicas int32
	minReady int32

	onDelete                         bool
	maxUnavailable, maxSurge         intstr.IntOrString // of a DaemonSet
	ordered, claims, deletesClaims   bool               // of a StatefulSet
	partition                        int32
	deletesScaled, unavailableIsMany bool
	// port means that the pods need a host port. slow pods take seconds to get ready and to terminate.
	port, slow bool
	// script are the first steps of the program. Random steps follow.
	script [][]step
}

// step is one step of a program: an edit of the manifest if victims is 0, or something that happens to pods.
type step struct {
	what string
	// edit edits the manifest. after is the time since the step before, which the world waits before it takes this one.
	edit  func(*workload)
	after time.Duration
	// node is the name of a node that loses its label, empty for none.
	node string
	// victims are the number of pods, from the pod at an index on. how is "delete", or the value of an annotation that
	// makes the simulated kubelet end the pod.
	victims, at int
	how         string
}

const (
	daemonSet   = "DaemonSet"
	statefulSet = "StatefulSet"
	replicaSet  = "ReplicaSet"
)

// kinds are the kinds of workloads, by how many of them a world has.
var kinds = []string{daemonSet, daemonSet, statefulSet, statefulSet, statefulSet, replicaSet}

func newWorkload(name string, r *rand.Rand) *workload {
	w := &workload{kind: kinds[r.IntN(len(kinds))], name: name, image: "app:0", good: "app:0", replicas: 1 + r.Int32N(4)}
	w.maxUnavailable = intstr.FromInt32(1)
	w.ordered, w.claims = r.IntN(2) == 0, r.IntN(2) == 0
	w.deletesClaims, w.deletesScaled, w.unavailableIsMany = r.IntN(4) == 0, r.IntN(2) == 0, r.IntN(3) == 0
	if r.IntN(3) == 0 && w.revised() {
		w.pool = "a"
	}
	if w.slow = r.IntN(2) == 0; w.kind == daemonSet && r.IntN(3) == 0 {
		w.port = true
	}
	w.strategy(r)
	return w
}

// known are workloads whose scripts once ended worse than under upstream. A StatefulSet moves to another pool while the
// old pool is drained. A surge that cannot start is turned off. A scale down is corrected immediately.
func known() []*workload {
	drained := step{what: "node-0 leaves its pool, and a pod is deleted", after: 2 * time.Second, node: "node-0", victims: 1, how: "delete"}
	surgeOff := func(w *workload) { w.maxUnavailable, w.maxSurge = intstr.FromInt32(1), intstr.FromInt32(0) }
	back := step{what: "and back", after: 1500 * time.Millisecond, edit: scale(3).edit}
	return []*workload{
		{
			kind: statefulSet, name: "moves", image: "app:0", good: "app:0", replicas: 3, ordered: true, pool: "a", slow: true,
			script: [][]step{{pool("b"), drained}},
		},
		{
			kind: daemonSet, name: "port", image: "app:0", good: "app:0", maxSurge: intstr.FromInt32(1), port: true,
			script: [][]step{{image("app:1")}, {{what: "surge off", edit: surgeOff}}},
		},
		{
			kind: statefulSet, name: "flaps", image: "app:0", good: "app:0", replicas: 3, claims: true, deletesScaled: true, slow: true,
			script: [][]step{{scale(1), back}},
		},
	}
}

// revised reports whether the controller rolls edits of the template out. The program of a ReplicaSet does not edit the
// template: it depends on chance which pods get it.
func (w *workload) revised() bool { return w.kind != replicaSet }

// next returns the next steps, which belong together.
func (w *workload) next(r *rand.Rand) []step {
	if len(w.script) > 0 {
		next := w.script[0]
		w.script = w.script[1:]
		return next
	}
	choice := r.IntN(16)
	if !w.revised() && choice < 12 {
		choice = 5
	}
	w.version++
	version, replicas := w.version, r.Int32N(5)
	switch choice {
	case 0, 1:
		return []step{image(fmt.Sprintf("app:%d", version))}
	case 2, 3:
		return []step{image(fmt.Sprintf("broken:%d", version))}
	case 4:
		return []step{image(w.good)}
	case 5:
		return []step{scale(replicas)}
	case 6, 7:
		next := *w
		next.strategy(r)
		return []step{{what: "strategy " + next.strategyText(), edit: func(w *workload) { *w = next }}}
	case 8:
		return []step{pool([]string{"", "a", "b", "none"}[r.IntN(4)])}
	case 9:
		seconds := r.Int32N(3)
		return []step{{what: fmt.Sprintf("minReadySeconds %d", seconds), edit: func(w *workload) { w.minReady = seconds }}}
	case 10, 11, 12: // scaled down by mistake
		return []step{scale(replicas / 2), {what: "and back", after: 1500 * time.Millisecond, edit: scale(w.replicas).edit}}
	case 13:
		return []step{{what: "a pod fails", victims: 1, at: r.IntN(5), how: "Failed"}}
	default:
		n := 1 + r.IntN(2)*r.IntN(4)
		return []step{{what: fmt.Sprintf("%d pods deleted", n), victims: n, at: r.IntN(5), how: "delete"}}
	}
}

func image(image string) step {
	return step{what: "image " + image, edit: func(w *workload) {
		if w.image = image; strings.HasPrefix(image, "app") {
			w.good = image
		}
	}}
}

func scale(replicas int32) step {
	return step{what: fmt.Sprintf("replicas %d", replicas), edit: func(w *workload) { w.replicas = replicas }}
}

func pool(name string) step {
	return step{what: fmt.Sprintf("pool %q", name), edit: func(w *workload) { w.pool = name }}
}

func (w *workload) strategy(r *rand.Rand) {
	w.onDelete = r.IntN(6) == 0
	w.maxUnavailable, w.maxSurge = intstr.FromInt32(1+r.Int32N(2)), intstr.FromInt32(0)
	if r.IntN(2) == 0 {
		w.maxUnavailable, w.maxSurge = intstr.FromInt32(0), intstr.FromInt32(1+r.Int32N(2))
	}
	if w.partition = 0; r.IntN(4) == 0 {
		w.partition = r.Int32N(4)
	}
}

func (w *workload) strategyText() string {
	switch {
	case w.onDelete:
		return "OnDelete"
	case w.kind == daemonSet:
		return fmt.Sprintf("maxUnavailable %s, maxSurge %s", w.maxUnavailable.String(), w.maxSurge.String())
	default:
		return fmt.Sprintf("partition %d", w.partition)
	}
}

// String describes the workload as it was created.
func (w *workload) String() string {
	switch w.kind {
	case daemonSet:
		return fmt.Sprintf("DaemonSet %s, %s, pool %q, host port %t, slow %t", w.name, w.strategyText(), w.pool, w.port, w.slow)
	case statefulSet:
		return fmt.Sprintf("StatefulSet %s, %d replicas, %s, pool %q, ordered %t, "+
			"claims %t (deleted %t, scaled %t), two unavailable %t, slow %t", w.name,
			w.replicas, w.strategyText(), w.pool, w.ordered, w.claims, w.deletesClaims, w.deletesScaled, w.unavailableIsMany, w.slow)
	default:
		return fmt.Sprintf("%s %s, %d replicas, pool %q", w.kind, w.name, w.replicas, w.pool)
	}
}

// object returns the manifest. port is the host port of its pods, if they need one: the namespaces share the nodes.
func (w *workload) object(namespace string, port int32) client.Object {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: w.name}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": w.name}}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: selector.MatchLabels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: w.image}}, TerminationGracePeriodSeconds: new(int64(1))},
	}
	if w.slow {
		template.Annotations = map[string]string{"sandbox.cairn.dev/ready-after": "3s", "sandbox.cairn.dev/delete-after": "4s"}
	}
	if w.port {
		template.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: port}}
	}
	if w.pool != "" {
		template.Spec.NodeSelector = map[string]string{poolLabel: w.pool}
	}
	switch w.kind {
	case daemonSet:
		update := appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}
		if !w.onDelete {
			update = appsv1.DaemonSetUpdateStrategy{
				Type:          appsv1.RollingUpdateDaemonSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &w.maxUnavailable, MaxSurge: &w.maxSurge},
			}
		}
		return &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{
			Selector: selector, Template: template, UpdateStrategy: update, MinReadySeconds: w.minReady,
		}}
	case statefulSet:
		return &appsv1.StatefulSet{ObjectMeta: meta, Spec: w.statefulSetSpec(selector, template)}
	default:
		return &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{
			Selector: selector, Template: template, Replicas: &w.replicas, MinReadySeconds: w.minReady,
		}}
	}
}

func (w *workload) statefulSetSpec(selector *metav1.LabelSelector, template corev1.PodTemplateSpec) appsv1.StatefulSetSpec {
	spec := appsv1.StatefulSetSpec{
		Selector: selector, Template: template, Replicas: &w.replicas, MinReadySeconds: w.minReady, ServiceName: w.name,
		PodManagementPolicy: appsv1.ParallelPodManagement,
		UpdateStrategy:      appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType},
	}
	if w.ordered {
		spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement
	}
	if !w.onDelete {
		rolling := &appsv1.RollingUpdateStatefulSetStrategy{Partition: &w.partition}
		if w.unavailableIsMany {
			rolling.MaxUnavailable = new(intstr.FromInt32(2))
		}
		spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: rolling}
	}
	if w.claims {
		size := corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}}
		spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
			ObjectMeta: metav1.ObjectMeta{Name: "data"},
			Spec:       corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Resources: size},
		}}
		policy := func(deletes bool) appsv1.PersistentVolumeClaimRetentionPolicyType {
			if deletes {
				return appsv1.DeletePersistentVolumeClaimRetentionPolicyType
			}
			return appsv1.RetainPersistentVolumeClaimRetentionPolicyType
		}
		spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
			WhenDeleted: policy(w.deletesClaims), WhenScaled: policy(w.deletesScaled),
		}
	}
	return spec
}
