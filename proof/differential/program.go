package differential

import (
	"fmt"
	"math/rand/v2"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file is the program of one workload: its manifest, and random steps that change the manifest or disturb pods.

// poolLabel is a label of nodes. Steps of the world take it from nodes and give it back.
const poolLabel = "pool"

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
}

// step is one step of a program: an edit of the manifest if victims is 0, or something that happens to pods.
type step struct {
	what string
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
	w.deletesClaims, w.deletesScaled, w.unavailableIsMany = r.IntN(4) == 0, r.IntN(3) == 0, r.IntN(3) == 0
	if r.IntN(3) == 0 && w.revised() {
		w.pool = "a"
	}
	w.strategy(r)
	return w
}

// revised reports whether the controller rolls edits of the template out. The program of a ReplicaSet does not edit the
// template: it depends on chance which pods get it.
func (w *workload) revised() bool { return w.kind != replicaSet }

// next changes the manifest or chooses pods.
func (w *workload) next(r *rand.Rand) step {
	choice := r.IntN(12)
	if !w.revised() && choice < 8 {
		choice = 5
	}
	switch choice {
	case 0, 1:
		w.version++
		w.image = fmt.Sprintf("app:%d", w.version)
		w.good = w.image
		return step{what: "image " + w.image}
	case 2, 3:
		w.version++
		w.image = fmt.Sprintf("broken:%d", w.version)
		return step{what: "image " + w.image}
	case 4:
		w.image = w.good
		return step{what: "image back to " + w.image}
	case 5:
		w.replicas = r.Int32N(5)
		return step{what: fmt.Sprintf("replicas %d", w.replicas)}
	case 6:
		w.strategy(r)
		return step{what: "strategy " + w.strategyText()}
	case 7:
		w.pool = []string{"", "a", "a", "none"}[r.IntN(4)]
		return step{what: fmt.Sprintf("pool %q", w.pool)}
	case 8:
		w.minReady = r.Int32N(3)
		return step{what: fmt.Sprintf("minReadySeconds %d", w.minReady)}
	case 9:
		return step{what: "pod fails", victims: 1, at: r.IntN(5), how: "Failed"}
	default:
		n := 1 + r.IntN(2)*r.IntN(4)
		return step{what: fmt.Sprintf("%d pods deleted", n), victims: n, at: r.IntN(5), how: "delete"}
	}
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
		return fmt.Sprintf("DaemonSet %s, %s, pool %q", w.name, w.strategyText(), w.pool)
	case statefulSet:
		return fmt.Sprintf("StatefulSet %s, %d replicas, %s, pool %q, ordered %t, claims %t (deleted %t, scaled %t), two unavailable %t", w.name,
			w.replicas, w.strategyText(), w.pool, w.ordered, w.claims, w.deletesClaims, w.deletesScaled, w.unavailableIsMany)
	default:
		return fmt.Sprintf("%s %s, %d replicas, pool %q", w.kind, w.name, w.replicas, w.pool)
	}
}

// object returns the manifest.
func (w *workload) object(namespace string) client.Object {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: w.name}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": w.name}}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: selector.MatchLabels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: w.image}}, TerminationGracePeriodSeconds: new(int64(1))},
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
