package sandbox

// This file provides volumes, so that claims bind and their pods are scheduled. A volume is an object and nothing
// behind it, like everything on a simulated node. The upstream volume controller does the binding.

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

// StorageClass is the name of the default storage class. A claim of it is bound some milliseconds after it was created,
// and its volume goes with it.
const StorageClass = "sandbox"

// provisioner is the name of this file's work, as claims and volumes carry it.
const provisioner = "sandbox.cairn.dev/volumes"

// createStorageClass makes the default storage class. Claims that come before it would stay without a class.
func createStorageClass(ctx context.Context, client kubernetes.Interface) error {
	_, err := client.StorageV1().StorageClasses().Create(ctx, &storagev1.StorageClass{
		ObjectMeta:  metav1.ObjectMeta{Name: StorageClass, Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}},
		Provisioner: provisioner,
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create storage class %s: %w", StorageClass, err)
	}
	return nil
}

// runVolumes makes a volume for every claim of the class, and deletes those whose claim is gone, until ctx is done.
func (s *Sandbox) runVolumes(ctx context.Context) error {
	cfg, err := s.ConfigFor("sandbox:volumes", mastersName)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(dropManagedFields))
	defer factory.Shutdown()
	claims := factory.Core().V1().PersistentVolumeClaims().Informer()
	volumes := factory.Core().V1().PersistentVolumes().Informer()
	for _, watch := range []struct {
		informer cache.SharedIndexInformer
		do       func(any) error
	}{
		{claims, func(o any) error { return provide(ctx, client, o) }},
		{volumes, func(o any) error { return reclaim(ctx, client, o) }},
	} {
		do := func(o any) {
			if err := watch.do(o); err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).Error(err, "Volumes")
			}
		}
		_, err := watch.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: do, UpdateFunc: func(_, o any) { do(o) }})
		if err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	<-ctx.Done()
	return nil
}

// provide creates the volume of a claim that has none.
func provide(ctx context.Context, client kubernetes.Interface, o any) error {
	claim, ok := o.(*corev1.PersistentVolumeClaim)
	if !ok || claim.Spec.VolumeName != "" || claim.DeletionTimestamp != nil || ptr.Deref(claim.Spec.StorageClassName, "") != StorageClass {
		return nil
	}
	_, err := client.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "pvc-" + string(claim.UID),
			Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": provisioner},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      claim.Spec.Resources.Requests,
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    claim.Spec.VolumeMode,
			StorageClassName:              StorageClass,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/nowhere"}},
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
		},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("provide a volume for claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return nil
}

// reclaim deletes a volume whose claim is gone.
func reclaim(ctx context.Context, client kubernetes.Interface, o any) error {
	volume, ok := o.(*corev1.PersistentVolume)
	if !ok || volume.Annotations["pv.kubernetes.io/provisioned-by"] != provisioner || volume.DeletionTimestamp != nil ||
		volume.Status.Phase != corev1.VolumeReleased && volume.Status.Phase != corev1.VolumeFailed {
		return nil
	}
	err := client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &volume.UID},
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete volume %s: %w", volume.Name, err)
	}
	return nil
}
