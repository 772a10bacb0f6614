package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/sandbox/check/parents"
)

// This file is what users do to every parent that has a pod template.

// workload is what they find in one.
type workload struct {
	template        *corev1.PodTemplateSpec
	minReadySeconds *int32
	// replicas and historyLimit are nil if it has none.
	replicas, historyLimit **int32
	selects                func(labels map[string]string)
}

func workloadOf(parent client.Object) workload {
	by := func(selector **metav1.LabelSelector) func(map[string]string) {
		return func(labels map[string]string) { *selector = &metav1.LabelSelector{MatchLabels: labels} }
	}
	switch o := parent.(type) {
	case *appsv1.DaemonSet:
		s := &o.Spec
		return workload{&s.Template, &s.MinReadySeconds, nil, &s.RevisionHistoryLimit, by(&s.Selector)}
	case *appsv1.StatefulSet:
		s := &o.Spec
		return workload{&s.Template, &s.MinReadySeconds, &s.Replicas, &s.RevisionHistoryLimit, by(&s.Selector)}
	case *appsv1.ReplicaSet:
		s := &o.Spec
		return workload{&s.Template, &s.MinReadySeconds, &s.Replicas, nil, by(&s.Selector)}
	case *corev1.ReplicationController:
		s := &o.Spec
		return workload{s.Template, &s.MinReadySeconds, &s.Replicas, nil, func(labels map[string]string) { s.Selector = labels }}
	}
	panic(fmt.Sprintf("sim: a %T is no workload", parent)) // an entry of Worlds is wrong
}

// selectApp lets a parent select what has this value of the label app, and gives that to its children.
func (w workload) selectApp(app string) {
	w.selects(map[string]string{"app": app})
	metav1.SetMetaDataLabel(&w.template.ObjectMeta, "app", app)
}

// begin makes a parent of an empty one.
func begin(parent client.Object, namespace, name, app, image string) workload {
	parent.SetNamespace(namespace)
	parent.SetName(name)
	w := workloadOf(parent)
	w.selectApp(app)
	w.template.Spec.Containers = []corev1.Container{{Name: "main", Image: image}}
	return w
}

// anyImage is one of a few, so that people come back to what they had.
func anyImage(chance *rand.Rand) string {
	if chance.IntN(8) == 0 {
		return brokenImage
	}
	return fmt.Sprintf("app:v%d", chance.IntN(5))
}

func editWorkload(name string, weight int, do func(*rand.Rand, workload)) Edit {
	return Edit{name, weight, func(chance *rand.Rand, parent client.Object) { do(chance, workloadOf(parent)) }}
}

func editImage(weight int) Edit {
	return editWorkload("the image", weight, func(chance *rand.Rand, w workload) {
		w.template.Spec.Containers[0].Image = anyImage(chance)
	})
}

func editVariable(weight int) Edit {
	return editWorkload("a variable", weight, func(chance *rand.Rand, w workload) {
		w.template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "MODE", Value: strconv.Itoa(chance.IntN(3))}}
	})
}

func editLabel(weight int) Edit {
	return editWorkload("a label of the template", weight, func(chance *rand.Rand, w workload) {
		w.template.Labels["tier"] = strconv.Itoa(chance.IntN(2))
	})
}

func editScale(weight, below int) Edit {
	return editWorkload(scaleEdit, weight, func(chance *rand.Rand, w workload) { *w.replicas = new(int32(chance.IntN(below))) })
}

func editLimit(weight int) Edit {
	return editWorkload("the history limit", weight, func(chance *rand.Rand, w workload) { *w.historyLimit = new(int32(chance.IntN(4))) })
}

func editMinReady(weight int) Edit {
	return editWorkload(minReady, weight, func(chance *rand.Rand, w workload) {
		*w.minReadySeconds = int32([]int{0, 0, 5, 30}[chance.IntN(4)])
	})
}

func editAnnotation(weight int) Edit {
	return Edit{"an annotation", weight, func(chance *rand.Rand, parent client.Object) {
		all := map[string]string{}
		maps.Copy(all, parent.GetAnnotations())
		all["note"] = strconv.Itoa(chance.IntN(100))
		parent.SetAnnotations(all)
	}}
}

// restoreTemplate puts the pod template that a revision of a workload holds into a parent.
func restoreTemplate(parent, revision client.Object) error {
	stored, ok := revision.(*appsv1.ControllerRevision)
	if !ok {
		return fmt.Errorf("a %T is no revision of a workload", revision)
	}
	template, err := parents.TemplateIn(stored)
	if err == nil {
		*workloadOf(parent).template = template
	}
	return err
}

// planted is a pod with the labels of a parent's pods, sometimes with its template, sometimes with another one.
func planted(chance *rand.Rand, parent client.Object, name string) *corev1.Pod {
	template := workloadOf(parent).template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.Name = parent.GetNamespace(), name
	if chance.IntN(3) == 0 {
		pod.Spec.Containers[0].Image = anyImage(chance)
	}
	return pod
}

// plantedNamed is how pods that somebody planted are called.
func plantedNamed(chance *rand.Rand, parent client.Object) string {
	return fmt.Sprintf("%s-planted-%d", parent.GetName(), chance.IntN(3))
}
