package calibrate_test

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/check/parents"
	"github.com/cairn-dev/cairn/sandbox"
)

// This file shows that what is right is not reported.

// silent fails the test unless nothing is reported: of all that happened, of the state, and of a while at rest. The
// writes that were seen are counted, for a checker that has seen nothing is silent as well.
func (r *room) silent(atLeast map[string]int) {
	r.Helper()
	r.Sync()
	rest := r.Sync()
	later := r.Sync()
	h := r.History()
	for _, v := range check.Check(h, r.kind) {
		if !byName(v) {
			r.Error(v)
		}
	}
	r.Silent(check.Rest(h, later, r.kind))
	r.Silent(check.Quiet(h, rest, later, r.kind))

	count := map[string]int{}
	for _, e := range h.Events {
		if e.By != nil {
			count[e.By.Verb+" "+e.Key.Resource.Resource]++
		}
	}
	r.Logf("%d writes, of the controller %v", len(h.Events), count)
	for what, n := range atLeast {
		if count[what] < n {
			r.Errorf("%q was seen %d times, want at least %d, of %v", what, count[what], n, count)
		}
	}
}

func TestStatefulSetIsSilent(t *testing.T) {
	for _, policy := range []appsv1.PodManagementPolicyType{appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement} {
		t.Run(string(policy), func(t *testing.T) {
			r := statefulSets(t)
			r.manager()
			r.statefulSet(2, func(spec *appsv1.StatefulSetSpec) {
				spec.PodManagementPolicy = policy
				spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(1))}
			})
			r.updated(2, 2)
			r.image("app:2")
			r.updated(2, 1)
			r.killPod("web-0") // comes back as it was
			r.podRuns("web-0", "app:1")
			r.updated(2, 1)
			r.patch(`{"spec":{"replicas":3}}`)
			r.updated(3, 2)
			r.patch(`{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}`)
			r.updated(3, 3)
			r.image("app:1") // and back
			r.updated(3, 3)
			r.patch(`{"spec":{"replicas":1}}`)
			r.updated(1, 1)
			r.silent(map[string]int{
				"create pods": 9, "delete pods": 7, "create controllerrevisions": 2, "update controllerrevisions": 1, "update statefulsets": 5,
			})
		})
	}
}

// Claims have no owner and outlive their pods.
func TestStatefulSetWithClaimsIsSilent(t *testing.T) {
	r := statefulSets(t)
	r.volumes(2)
	r.manager()
	r.statefulSet(2, func(spec *appsv1.StatefulSetSpec) {
		spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
			ObjectMeta: metav1.ObjectMeta{Name: "data"},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: &r.Namespace,
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			},
		}}
		spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
			WhenDeleted: appsv1.RetainPersistentVolumeClaimRetentionPolicyType, WhenScaled: appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
		}
	})
	r.updated(2, 2)
	r.patch(`{"spec":{"replicas":1}}`)
	r.updated(1, 1)
	r.silent(map[string]int{"create pods": 2, "create persistentvolumeclaims": 2, "update persistentvolumeclaims": 1, "delete pods": 1})
}

// volumes makes volumes that claims of this namespace can be bound to.
func (r *room) volumes(n int) {
	r.Helper()
	volumes := r.User.CoreV1().PersistentVolumes()
	for i := range n {
		name := fmt.Sprintf("%s-%d", r.Namespace, i)
		_, err := volumes.Create(r.Context(), &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PersistentVolumeSpec{
				StorageClassName:       r.Namespace,
				AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
				PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/nowhere"}},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			r.Fatal(err)
		}
		r.Cleanup(func() {
			if err := volumes.Delete(context.WithoutCancel(r.Context()), name, metav1.DeleteOptions{}); err != nil {
				r.Error(err)
			}
		})
	}
}

func TestReplicaSetIsSilent(t *testing.T) {
	r := replicaSets(t)
	r.manager()
	r.replicaSet(3)
	r.replicas(3)
	scale := func(n int32) {
		patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n)
		if _, err := r.User.AppsV1().ReplicaSets(r.Namespace).Patch(t.Context(), "web", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		r.replicas(n)
	}
	scale(6)
	r.killPod(r.anyPod())
	r.replicas(6)
	scale(2)
	r.silent(map[string]int{"create pods": 7, "delete pods": 4, "update replicasets": 4})
}

func TestReplicationControllerIsSilent(t *testing.T) {
	r := newRoom(t, sandbox.ReplicationController, parents.ReplicationController())
	r.manager()
	controllers := r.User.CoreV1().ReplicationControllers(r.Namespace)
	rc := &corev1.ReplicationController{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.ReplicationControllerSpec{Replicas: new(int32(2)), Selector: selector().MatchLabels, Template: new(template("app:1"))},
	}
	if _, err := controllers.Create(t.Context(), rc, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int32{4, 1} {
		patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n)
		if _, err := controllers.Patch(t.Context(), "web", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		r.Eventually("wait for the replicas", func(ctx context.Context) error {
			rc, err := controllers.Get(ctx, "web", metav1.GetOptions{})
			if err == nil && (rc.Status.ObservedGeneration < rc.Generation || rc.Status.Replicas != n || rc.Status.AvailableReplicas != n) {
				err = fmt.Errorf("generation %d, status %v", rc.Generation, rc.Status.String())
			}
			return err
		})
	}
	r.silent(map[string]int{"create pods": 4, "delete pods": 3, "update replicationcontrollers": 3})
}

// anyPod returns the name of a pod.
func (r *room) anyPod() string {
	r.Helper()
	list, err := r.User.CoreV1().Pods(r.Namespace).List(r.Context(), metav1.ListOptions{Limit: 1})
	if err != nil || len(list.Items) == 0 {
		r.Fatalf("there is no pod: %v", err)
	}
	return list.Items[0].Name
}
