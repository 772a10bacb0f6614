package sandbox_test

// A claim of the default storage class gets a volume, its pod is scheduled, and the volume goes with the claim.

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cairn-dev/cairn/sandbox"
)

func TestClaimsGetVolumes(t *testing.T) {
	c := newCluster(t)
	claims := c.client.CoreV1().PersistentVolumeClaims(c.namespace)
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	_, err := claims.Create(t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: size},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.client.CoreV1().Pods(c.namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Image: "nginx"}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
			}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.podEventually(t, "p", "ready", isReady)
	var claim *corev1.PersistentVolumeClaim
	eventually(t, func(ctx context.Context) string { // the pod can be ready before the status of the claim says so
		if claim, err = claims.Get(ctx, "data", metav1.GetOptions{}); err == nil && claim.Status.Phase == corev1.ClaimBound {
			return ""
		}
		return fmt.Sprintf("claim %+v, %v", claim.Status, err)
	})
	if *claim.Spec.StorageClassName != sandbox.StorageClass {
		t.Errorf("storage class %s", *claim.Spec.StorageClassName)
	}
	if err := c.client.CoreV1().Pods(c.namespace).Delete(t.Context(), "p", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := claims.Delete(t.Context(), "data", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) string {
		v, err := c.client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprintf("the volume is there: %v, %v", v.Status, err)
	})
}
