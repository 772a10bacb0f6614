package fault_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/cairn-dev/cairn/proof/check/parents"
	"github.com/cairn-dev/cairn/proof/fault"
)

// This file is the sweep's subject StatefulSet: what can go wrong with ordinals, a partition, claims and a full
// history.

const setName = "swept"

var (
	statefulSetResource = schema.GroupResource{Group: "apps", Resource: "statefulsets"}
	claimResource       = schema.GroupResource{Resource: "persistentvolumeclaims"}
)

func statefulSets() subject {
	return builtIn(parents.StatefulSet(), subject{
		scenarios: []fault.Scenario{canaryAndUndo(), parallelWithClaims(), editedWhileAway(), twoManagersOfSets(), brokenSet()},
		aimed: []fault.Fault{
			{Mode: fault.Unseen, At: 2, Resource: revisionResource, Verb: "create", Times: 2},
			{Mode: fault.Unseen, At: 1, Resource: podResource, Verb: "create", Times: 3},
			{Mode: fault.Rejected, At: 2, Resource: podResource, Verb: "delete", Times: 2},
			{Mode: fault.KillStale, At: 1, Resource: revisionResource, Verb: "create", Times: 3},
			{Mode: fault.KillStale, At: 1, Resource: podResource, Verb: "delete", Times: 3},
		},
		refusals: []fault.Refusal{
			{Resource: revisionResource, Verb: "create", Status: http.StatusForbidden, Times: 3},
			{Resource: revisionResource, Verb: "create", Status: http.StatusUnprocessableEntity, After: 1, Times: 3},
			{Resource: podResource, Verb: "create", Status: http.StatusForbidden, Times: 4},
			{Resource: podResource, Verb: "create", Status: http.StatusTooManyRequests, After: 2, Times: 4},
			{Resource: podResource, Verb: "delete", Status: http.StatusForbidden, Times: 3},
			{Resource: claimResource, Verb: "create", Status: http.StatusForbidden, Times: 3},
			{Resource: claimResource, Verb: "patch", Status: http.StatusForbidden, Times: 3},
			{Resource: statefulSetResource, Subresource: "status", Status: http.StatusInternalServerError, Times: 3},
		},
	})
}

// canaryAndUndo shows app:2 to the upper one of two pods, loses the lower one, which comes back from app:1, and goes
// back the way kubectl rollout undo does.
func canaryAndUndo() fault.Scenario {
	return fault.Scenario{
		Name:  "statefulset canary and undo",
		Share: 5,
		Drive: steps(
			createSet(func(spec *appsv1.StatefulSetSpec) { partitioned(spec, 1) }),
			editSet(imagePatch("app:2"), "app:1", "app:2"),
			losePod(setName+"-0"),
			until("the pod that was lost", setEnded("app:1", "app:2")),
			undo(patchSet),
		),
		Ended:  setEnded("app:1", "app:1"),
		AtRest: setHistoryIs("2=app:2 3=app:1"),
	}
}

// parallelWithClaims edits, adds and takes away pods without order. Their claims go with them.
func parallelWithClaims() fault.Scenario {
	return fault.Scenario{
		Name:  "statefulset scaled with its claims",
		Share: 4,
		Drive: func(ctx context.Context, e *fault.Env) error {
			if err := createSet(func(spec *appsv1.StatefulSetSpec) {
				spec.PodManagementPolicy = appsv1.ParallelPodManagement
				withClaims(spec)
			})(ctx, e); err != nil {
				return err
			}
			more := []byte(`{"spec":{"replicas":3,"template":{"spec":{"containers":[{"name":"main","image":"app:2"}]}}}}`)
			return steps(editSet(more, "app:2", "app:2", "app:2"), patchSet([]byte(`{"spec":{"replicas":1}}`)))(ctx, e)
		},
		Ended:  steps(setEnded("app:2"), claimsAre("data-"+setName+"-0")),
		AtRest: setHistoryIs("1=app:1 2=app:2"),
	}
}

// editedWhileAway: the history is full, and the first write after a restart fails. What the pod below the
// partition is made from must survive that.
func editedWhileAway() fault.Scenario {
	return fault.Scenario{
		Name:  "statefulset edited while the manager is away",
		Share: 4,
		Drive: func(ctx context.Context, e *fault.Env) error {
			if err := createSet(func(spec *appsv1.StatefulSetSpec) {
				spec.RevisionHistoryLimit = new(int32(1))
				partitioned(spec, 1)
			})(ctx, e); err != nil {
				return err
			}
			for _, image := range []string{"app:2", "app:3"} {
				if err := editSet(imagePatch(image), "app:1", image)(ctx, e); err != nil {
					return err
				}
			}
			e.Stop()
			if err := steps(patchSet(imagePatch("app:4")), losePod(setName+"-0"))(ctx, e); err != nil {
				return err
			}
			e.Start(ctx)
			return nil
		},
		Ended:  setEnded("app:1", "app:4"),
		AtRest: setHistoryIs("1=app:1 3=app:3 4=app:4"),
	}
}

// twoManagersOfSets is the canary with two managers that both believe to be the leader.
func twoManagersOfSets() fault.Scenario {
	s := canaryAndUndo()
	s.Name, s.Managers = "statefulset canary and undo by two managers", 2
	s.Points, s.Share = fault.Every(5), 4
	if !full {
		s.Once = true
	}
	return s
}

// partitioned holds all ordinals below from back.
func partitioned(spec *appsv1.StatefulSetSpec, from int32) {
	spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: &from}
}

// withClaims gives every pod a claim that goes when it is not asked for any more.
func withClaims(spec *appsv1.StatefulSetSpec) {
	spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}}
	spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
		WhenScaled: appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
	}
}

// newSet is a StatefulSet of two pods.
func newSet(change func(*appsv1.StatefulSetSpec)) *appsv1.StatefulSet {
	labels := map[string]string{"app": setName}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: setName},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(2)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "app:1"}}},
			},
		},
	}
	change(&set.Spec)
	return set
}

// createSet makes a StatefulSet of two pods, and waits until they are there.
func createSet(change func(*appsv1.StatefulSetSpec)) step {
	return func(ctx context.Context, e *fault.Env) error {
		if _, err := e.Client.AppsV1().StatefulSets(e.Namespace).Create(ctx, newSet(change), metav1.CreateOptions{}); err != nil {
			return err
		}
		return until("the first pods", setEnded("app:1", "app:1"))(ctx, e)
	}
}

func patchSet(data []byte) step {
	return func(ctx context.Context, e *fault.Env) error {
		sets := e.Client.AppsV1().StatefulSets(e.Namespace)
		_, err := sets.Patch(ctx, setName, types.StrategicMergePatchType, data, metav1.PatchOptions{})
		return err
	}
}

// editSet patches the StatefulSet and waits until its pods have these images.
func editSet(data []byte, images ...string) step {
	return steps(patchSet(data), until("the rollout of "+images[len(images)-1], setEnded(images...)))
}

// losePod deletes a pod and waits until it is gone, or another one has its name.
func losePod(name string) step {
	return func(ctx context.Context, e *fault.Env) error {
		pods := e.Client.CoreV1().Pods(e.Namespace)
		lost, err := pods.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := pods.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &lost.UID}}); err != nil {
			return err
		}
		return e.Until(ctx, "the end of "+name, func(ctx context.Context) error {
			list, err := pods.List(ctx, metav1.ListOptions{})
			if err == nil && slices.ContainsFunc(list.Items, func(p corev1.Pod) bool { return p.UID == lost.UID }) {
				err = fmt.Errorf("%s is still there", name)
			}
			return err
		})
	}
}

// setEnded returns nil if there is one pod for each of the images, in the order of their ordinals, and the StatefulSet
// says so. The last pod is one that is updated.
func setEnded(images ...string) step {
	return steps(setSays(images...), podsHave(numbered(images...)...))
}

// setSays returns nil if the StatefulSet says that there is one pod for each of the images, and all are available.
func setSays(images ...string) step {
	return func(ctx context.Context, e *fault.Env) error {
		set, err := e.Client.AppsV1().StatefulSets(e.Namespace).Get(ctx, setName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		asked := set.Spec.Template.Spec.Containers[0].Image
		var updated int32
		for _, image := range images {
			if image == asked {
				updated++
			}
		}
		n, s := int32(len(images)), set.Status
		if s.ObservedGeneration != set.Generation || s.Replicas != n || s.AvailableReplicas != n || s.UpdatedReplicas != updated {
			return fmt.Errorf("generation %d, status %+v", set.Generation, s)
		}
		return nil
	}
}

// claimsAre checks which claims there are, those that are going included.
func claimsAre(want ...string) step {
	return func(ctx context.Context, e *fault.Env) error {
		list, err := e.Client.CoreV1().PersistentVolumeClaims(e.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var got []string
		for _, claim := range list.Items {
			got = append(got, claim.Name)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			return fmt.Errorf("there are the claims %v, want %v", got, want)
		}
		return nil
	}
}

// setHistoryIs checks the numbers and images of all revisions, and that no collision was counted (H5).
func setHistoryIs(want string) step {
	return steps(historyIs(want), func(ctx context.Context, e *fault.Env) error {
		set, err := e.Client.AppsV1().StatefulSets(e.Namespace).Get(ctx, setName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if n := ptr.Deref(set.Status.CollisionCount, 0); n != 0 {
			return fmt.Errorf("H5: status.collisionCount is %d, and nothing collided", n)
		}
		return nil
	})
}
