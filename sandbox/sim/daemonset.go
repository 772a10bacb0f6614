package sim

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/sandbox/check/parents"
)

// This file is what users do to DaemonSets.

// DaemonSet is apps/v1 DaemonSets.
func DaemonSet() Kind {
	return Kind{
		Check: parents.DaemonSet(),
		New:   newDaemonSet,
		Select: func(parent client.Object, app string) {
			selectFromDaemonSet(parent.(*appsv1.DaemonSet), app) //nolint:forcetypeassert // the kind's own
		},
		Edits: []Edit{
			{"the image", 10, editDaemonSet(func(chance *rand.Rand, ds *appsv1.DaemonSet) {
				ds.Spec.Template.Spec.Containers[0].Image = anyImage(chance)
			})},
			{"a variable", 3, editDaemonSet(func(chance *rand.Rand, ds *appsv1.DaemonSet) {
				ds.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "MODE", Value: strconv.Itoa(chance.IntN(3))}}
			})},
			{"a label of the template", 2, editDaemonSet(func(chance *rand.Rand, ds *appsv1.DaemonSet) {
				ds.Spec.Template.Labels["tier"] = strconv.Itoa(chance.IntN(2))
			})},
			{"the strategy", 3, editDaemonSet(func(chance *rand.Rand, ds *appsv1.DaemonSet) {
				ds.Spec.UpdateStrategy = anyDaemonSetStrategy(chance)
			})},
			{"the history limit", 2, editDaemonSet(func(chance *rand.Rand, ds *appsv1.DaemonSet) {
				ds.Spec.RevisionHistoryLimit = new(int32(chance.IntN(4)))
			})},
			{minReady, 1, editDaemonSet(func(chance *rand.Rand, ds *appsv1.DaemonSet) {
				ds.Spec.MinReadySeconds = int32([]int{0, 0, 5, 30}[chance.IntN(4)])
			})},
			{"where it runs", 2, editDaemonSet(func(chance *rand.Rand, ds *appsv1.DaemonSet) {
				ds.Spec.Template.Spec.NodeSelector = nil
				ds.Spec.Template.Spec.Tolerations = nil
				switch chance.IntN(4) {
				case 0:
					ds.Spec.Template.Spec.NodeSelector = map[string]string{"zone": "a"}
				case 1:
					ds.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "sim", Operator: corev1.TolerationOpExists}}
				default:
				}
			})},
			{"an annotation", 1, editDaemonSet(func(chance *rand.Rand, ds *appsv1.DaemonSet) {
				metav1.SetMetaDataAnnotation(&ds.ObjectMeta, "note", strconv.Itoa(chance.IntN(100)))
			})},
		},
		Restore: restoreDaemonSet,
		Child:   plantedPod,
	}
}

func editDaemonSet(do func(*rand.Rand, *appsv1.DaemonSet)) func(*rand.Rand, client.Object) {
	return func(chance *rand.Rand, parent client.Object) {
		do(chance, parent.(*appsv1.DaemonSet)) //nolint:forcetypeassert // an edit of DaemonSets
	}
}

// anyImage is one of a few, so that people come back to what they had.
func anyImage(chance *rand.Rand) string {
	if chance.IntN(8) == 0 {
		return brokenImage
	}
	return fmt.Sprintf("app:v%d", chance.IntN(5))
}

func anyDaemonSetStrategy(chance *rand.Rand) appsv1.DaemonSetUpdateStrategy {
	rolling := func(unavailable, surge intstr.IntOrString) appsv1.DaemonSetUpdateStrategy {
		return appsv1.DaemonSetUpdateStrategy{
			Type:          appsv1.RollingUpdateDaemonSetStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &unavailable, MaxSurge: &surge},
		}
	}
	switch chance.IntN(8) {
	case 0:
		return appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}
	case 1:
		return rolling(intstr.FromInt32(2), intstr.FromInt32(0))
	case 2:
		return rolling(intstr.FromString("50%"), intstr.FromInt32(0))
	case 3, 4:
		return rolling(intstr.FromInt32(0), intstr.FromInt32(1))
	case 5:
		return rolling(intstr.FromInt32(0), intstr.FromString("50%"))
	default:
		return rolling(intstr.FromInt32(1), intstr.FromInt32(0))
	}
}

func newDaemonSet(chance *rand.Rand, namespace, name string) client.Object {
	ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	selectFromDaemonSet(ds, name)
	ds.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: anyImage(chance)}}
	ds.Spec.UpdateStrategy = anyDaemonSetStrategy(chance)
	if chance.IntN(2) == 0 {
		ds.Spec.RevisionHistoryLimit = new(int32(chance.IntN(3)))
	}
	return ds
}

func selectFromDaemonSet(ds *appsv1.DaemonSet, app string) {
	ds.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	metav1.SetMetaDataLabel(&ds.Spec.Template.ObjectMeta, "app", app)
}

func restoreDaemonSet(parent, revision client.Object) error {
	template, err := templateIn(revision)
	if err == nil {
		parent.(*appsv1.DaemonSet).Spec.Template = *template //nolint:forcetypeassert // the kind's own
	}
	return err
}

// templateIn is the pod template that a revision of a workload holds.
func templateIn(revision client.Object) (*corev1.PodTemplateSpec, error) {
	var data struct {
		Spec struct {
			Template corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	stored, ok := revision.(*appsv1.ControllerRevision)
	if !ok {
		return nil, fmt.Errorf("a %T is no revision of a workload", revision)
	}
	if err := json.Unmarshal(stored.Data.Raw, &data); err != nil {
		return nil, err
	}
	return &data.Spec.Template, nil
}

// plantedPod is a pod with the labels of a DaemonSet's pods, sometimes with its template, sometimes with another one.
func plantedPod(chance *rand.Rand, parent client.Object, nodes []string) client.Object {
	ds := parent.(*appsv1.DaemonSet) //nolint:forcetypeassert // the kind's own
	template := ds.Spec.Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.Name = ds.Namespace, fmt.Sprintf("%s-planted-%d", ds.Name, chance.IntN(3))
	if chance.IntN(3) == 0 {
		pod.Spec.Containers[0].Image = anyImage(chance)
	}
	if len(nodes) > 0 && chance.IntN(4) > 0 {
		pod.Spec.NodeName = nodes[chance.IntN(len(nodes))]
	}
	return pod
}
