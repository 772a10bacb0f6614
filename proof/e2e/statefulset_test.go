package e2e

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/manager"
	"github.com/cairn-dev/cairn/sandbox"
)

// This file holds what the tests of StatefulSets share: sets, who runs them, and how to wait.

// statefulCairn runs cairn for StatefulSets, under the shipped roles.
func (e *env) statefulCairn() (stop func()) {
	e.Helper()
	return e.cairnWith(func(*rest.Config) {}, manager.Options{Controllers: []string{"statefulset"}, AskServer: true})
}

// statefulUpstream runs the upstream StatefulSet controller.
func (e *env) statefulUpstream() (stop func()) {
	e.Helper()
	return e.upstreamOf(sandbox.StatefulSet)
}

type setOption func(*appsv1.StatefulSet)

// statefulSet returns a StatefulSet of three that is not created yet.
func (e *env) statefulSet(name string, change ...setOption) *appsv1.StatefulSet {
	template := appTemplate(name, "app:1")
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: name},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(3)), ServiceName: name, Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template,
		},
	}
	for _, f := range change {
		f(set)
	}
	return set
}

func setImage(image string) setOption {
	return func(set *appsv1.StatefulSet) { set.Spec.Template.Spec.Containers[0].Image = image }
}

func setReplicas(n int32) setOption {
	return func(set *appsv1.StatefulSet) { set.Spec.Replicas = &n }
}

func setPartition(n int32) setOption {
	return func(set *appsv1.StatefulSet) {
		set.Spec.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
		set.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: &n}
	}
}

func setSlow(set *appsv1.StatefulSet) {
	set.Spec.Template.Annotations = map[string]string{"sandbox.cairn.dev/ready-after": "200ms"}
}

// reloadSet and editSet are reload and edit for StatefulSets.
func (e *env) reloadSet(set *appsv1.StatefulSet) {
	e.Helper()
	fresh := &appsv1.StatefulSet{}
	must(e, e.Get(e.Context(), client.ObjectKeyFromObject(set), fresh))
	*set = *fresh
}

func (e *env) editSet(set *appsv1.StatefulSet, change ...setOption) {
	e.Helper()
	e.eventually("edit the StatefulSet", func() error {
		e.reloadSet(set)
		for _, f := range change {
			f(set)
		}
		return e.Update(e.Context(), set)
	})
}

// setRolledOut waits until the controller in charge says that the rollout is over: what kubectl rollout status asks.
func (e *env) setRolledOut(set *appsv1.StatefulSet) {
	e.Helper()
	e.eventually("wait for the rollout of "+set.Name, func() error {
		e.reloadSet(set)
		s, n := set.Status, *set.Spec.Replicas
		if s.ObservedGeneration < set.Generation || s.Replicas != n || s.ReadyReplicas != n || s.AvailableReplicas != n || s.UpdatedReplicas != n ||
			n > 0 && (s.CurrentRevision != s.UpdateRevision || s.CurrentReplicas != n) {
			return errorf("generation %d, status %+v", set.Generation, s)
		}
		return nil
	})
}

// setSettled makes the controller in charge look once more, and waits until it did.
func (e *env) setSettled(set *appsv1.StatefulSet) {
	e.Helper()
	e.editSet(set, func(set *appsv1.StatefulSet) { *set.Spec.RevisionHistoryLimit++ })
	e.eventually("wait until the edit is observed", func() error {
		if e.reloadSet(set); set.Status.ObservedGeneration != set.Generation {
			return errorf("observed %d of %d", set.Status.ObservedGeneration, set.Generation)
		}
		return nil
	})
}

// setImages returns the images of the pods that are not going, lowest ordinal first.
func (e *env) setImages(set *appsv1.StatefulSet) string {
	e.Helper()
	var out []string
	pods := e.podsOf(set.Namespace, set.Spec.Selector)
	for i := range 20 {
		if pod, ok := pods[fmt.Sprintf("%s-%d", set.Name, i)]; ok {
			out = append(out, pod.Spec.Containers[0].Image)
		}
	}
	return strings.Join(out, ",")
}

// waitForImages waits until just these pods are there and, those that are not broken, ready.
func (e *env) waitForImages(set *appsv1.StatefulSet, want string) {
	e.Helper()
	e.eventually("wait for "+want, func() error {
		if got := e.setImages(set); got != want {
			return errorf("%s", got)
		}
		for name, pod := range e.podsOf(set.Namespace, set.Spec.Selector) {
			if !serving(&pod) && !strings.Contains(pod.Spec.Containers[0].Image, "broken") {
				return errorf("%s is not ready", name)
			}
		}
		return nil
	})
}

// setClaims gives every pod a claim, under retention policies.
func setClaims(deleted, scaled appsv1.PersistentVolumeClaimRetentionPolicyType) setOption {
	return func(set *appsv1.StatefulSet) {
		set.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenDeleted: deleted, WhenScaled: scaled}
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
			ObjectMeta: metav1.ObjectMeta{Name: "data"},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			},
		}}
	}
}
