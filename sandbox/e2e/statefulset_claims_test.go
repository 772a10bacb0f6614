package e2e

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file watches the claims of a StatefulSet's pods, which the sandbox binds to volumes with nothing behind them.

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

// claims returns the claims of the namespace by name, with the kinds of their owners.
func (e *env) claims() map[string]string {
	e.Helper()
	var list corev1.PersistentVolumeClaimList
	if err := e.List(e.Context(), &list, client.InNamespace(e.namespace)); err != nil {
		e.Fatal(err)
	}
	out := map[string]string{}
	for _, claim := range list.Items {
		out[claim.Name] = ""
		for _, ref := range claim.OwnerReferences {
			out[claim.Name] += ref.Kind
		}
	}
	return out
}

func (e *env) waitForClaims(want map[string]string) {
	e.Helper()
	e.eventually("wait for claims", func() error {
		if got := e.claims(); fmt.Sprint(got) != fmt.Sprint(want) {
			return errorf("%v, want %v", got, want)
		}
		return nil
	})
}

// TestStatefulSetClaims: claims are bound, and go and stay as the retention policies say, also when those change.
func TestStatefulSetClaims(t *testing.T) {
	const keep, remove = appsv1.RetainPersistentVolumeClaimRetentionPolicyType, appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	for name, controller := range map[string]func(*env) func(){"cairn": (*env).statefulCairn, "upstream": (*env).statefulUpstream} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			controller(e)
			set := e.statefulSet("db", setClaims(keep, keep), setReplicas(2))
			e.create(set)
			e.setRolledOut(set)
			e.waitForClaims(map[string]string{"data-db-0": "", "data-db-1": ""})
			e.editSet(set, setReplicas(1))
			e.setRolledOut(set)
			e.waitForClaims(map[string]string{"data-db-0": "", "data-db-1": ""})

			e.editSet(set, setPolicy(remove, remove), setReplicas(2))
			e.setRolledOut(set)
			e.waitForClaims(map[string]string{"data-db-0": "StatefulSet", "data-db-1": "StatefulSet"})
			e.editSet(set, setReplicas(1))
			e.setRolledOut(set)
			e.waitForClaims(map[string]string{"data-db-0": "StatefulSet"})
			e.editSet(set, setReplicas(2)) // while the claim of the last time may still be there
			e.setRolledOut(set)
			e.waitForClaims(map[string]string{"data-db-0": "StatefulSet", "data-db-1": "StatefulSet"})

			e.editSet(set, setPolicy(keep, keep))
			e.waitForClaims(map[string]string{"data-db-0": "", "data-db-1": ""})
			e.editSet(set, setPolicy(remove, keep))
			e.waitForClaims(map[string]string{"data-db-0": "StatefulSet", "data-db-1": "StatefulSet"})
			if err := e.Delete(t.Context(), set, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
				t.Fatal(err)
			}
			e.waitForClaims(map[string]string{})
		})
	}
}

func setPolicy(deleted, scaled appsv1.PersistentVolumeClaimRetentionPolicyType) setOption {
	return func(set *appsv1.StatefulSet) {
		set.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenDeleted: deleted, WhenScaled: scaled}
	}
}

// A claim that is being deleted delays its pod, and a new one is made.
func TestStatefulSetClaimThatGoes(t *testing.T) {
	const keep = appsv1.RetainPersistentVolumeClaimRetentionPolicyType
	e := newEnv(t)
	e.statefulCairn()
	set := e.statefulSet("db", setClaims(keep, keep), setReplicas(1), func(set *appsv1.StatefulSet) {
		set.Spec.Template.Annotations = map[string]string{"sandbox.cairn.dev/delete-after": "300ms"}
	})
	e.create(set)
	e.setRolledOut(set)
	claim := &corev1.PersistentVolumeClaim{}
	key := types.NamespacedName{Namespace: e.namespace, Name: "data-db-0"}
	if err := e.Get(t.Context(), key, claim); err != nil {
		t.Fatal(err)
	}
	if err := e.Delete(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	e.deletePod(set, 0)
	e.eventually("wait for the new claim and its pod", func() error {
		fresh := &corev1.PersistentVolumeClaim{}
		if err := e.Get(t.Context(), key, fresh); err != nil {
			return err
		}
		if pod := e.podsOf(set.Namespace, set.Spec.Selector)["db-0"]; fresh.UID == claim.UID || !serving(&pod) {
			return errorf("claim %s, pod %s", fresh.UID, pod.Status.Phase)
		}
		return nil
	})
}
