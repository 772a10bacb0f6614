package fault_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/utils/ptr"

	"github.com/cairn-dev/cairn/proof/check/parents"
	"github.com/cairn-dev/cairn/proof/fault"
)

// This file is the sweep's subject DaemonSet: a way from edit to undo.

const dsName = "swept"

var (
	revisionResource  = schema.GroupResource{Group: "apps", Resource: "controllerrevisions"}
	daemonSetResource = schema.GroupResource{Group: "apps", Resource: "daemonsets"}
	podResource       = schema.GroupResource{Resource: "pods"}
)

func daemonSets() subject {
	return builtIn(parents.DaemonSet(), subject{
		scenarios: slices.Concat([]fault.Scenario{editAndUndo(), twoManagers(), brokenDaemons()}, behindCaches(), oldPods(), takenNames(), refusedPods()),
		aimed: []fault.Fault{
			{Mode: fault.Unseen, At: 2, Resource: revisionResource, Verb: "create", Times: 2},
			{Mode: fault.Unseen, At: 1, Resource: podResource, Verb: "create", Times: nodes},
			{Mode: fault.Unseen, At: nodes + 1, Resource: podResource, Verb: "create", Times: nodes},
			{Mode: fault.Rejected, At: 2, Resource: podResource, Verb: "delete", Times: 2},
			{Mode: fault.KillStale, At: 1, Resource: revisionResource, Verb: "create", Times: 3},
		},
		refusals: []fault.Refusal{
			{Resource: revisionResource, Verb: "create", Status: http.StatusForbidden, Times: 3},
			{Resource: revisionResource, Verb: "create", Status: http.StatusUnprocessableEntity, After: 1, Times: 3},
			{Resource: revisionResource, Verb: "patch", Status: http.StatusInternalServerError, Times: 3},
			{Resource: podResource, Verb: "create", Status: http.StatusForbidden, Times: 4},
			{Resource: podResource, Verb: "create", Status: http.StatusTooManyRequests, After: nodes + 1, Times: 4},
			{Resource: podResource, Verb: "delete", Status: http.StatusForbidden, After: 1, Times: 3},
			{Resource: daemonSetResource, Subresource: "status", Status: http.StatusInternalServerError, Times: 3},
		},
	})
}

// editAndUndo creates a DaemonSet, changes its image, and goes back the way kubectl rollout undo does.
func editAndUndo() fault.Scenario {
	return fault.Scenario{
		Name:  "daemonset edit and undo",
		Drive: steps(create, patch(imagePatch("app:2")), rolledOut("app:2"), undo(patch)),
		Ended: ended("app:1"),
		// The first revision goes from number 1 to 3.
		AtRest: revisionsAre("2,3"),
	}
}

// twoManagers is the same with two managers that both believe to be the leader. The sweep's faults are for one of them,
// and for each twelfth of its requests: who of the two writes what is another matter in every run, so that a request
// has no fixed number anyway.
func twoManagers() fault.Scenario {
	s := editAndUndo()
	s.Name, s.Managers = "daemonset edit and undo by two managers", 2
	s.Points = fault.Every(12)
	if !full {
		s.Once = true
	}
	return s
}

// markName is the ConfigMap whose resource version marks the end of the first rollout.
const markName = "rolled-out"

// create makes the DaemonSet, waits until it is rolled out, and marks the moment.
func create(ctx context.Context, e *fault.Env) error {
	labels := map[string]string{"app": dsName}
	_, err := e.Client.AppsV1().DaemonSets(e.Namespace).Create(ctx, &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: dsName},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "app:1"}}},
			},
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{RollingUpdate: &appsv1.RollingUpdateDaemonSet{
				MaxUnavailable: new(intstr.FromInt32(2)),
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return steps(rolledOut("app:1"), setMark)(ctx, e)
}

func setMark(ctx context.Context, e *fault.Env) error {
	mark := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: markName}}
	_, err := e.Client.CoreV1().ConfigMaps(e.Namespace).Create(ctx, mark, metav1.CreateOptions{})
	return err
}

func imagePatch(image string) []byte {
	return []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"` + image + `"}]}}}}`)
}

func patch(data []byte) step {
	return func(ctx context.Context, e *fault.Env) error {
		_, err := e.Client.AppsV1().DaemonSets(e.Namespace).Patch(ctx, dsName, types.StrategicMergePatchType, data, metav1.PatchOptions{})
		return err
	}
}

func rolledOut(image string) step {
	return until("the rollout of "+image, ended(image))
}

// ended returns nil if the DaemonSet says that its rollout is over, and its pods are what was asked for.
func ended(image string) step {
	return func(ctx context.Context, e *fault.Env) error {
		ds, err := e.Client.AppsV1().DaemonSets(e.Namespace).Get(ctx, dsName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		s := ds.Status
		if s.ObservedGeneration != ds.Generation || s.DesiredNumberScheduled != nodes || s.UpdatedNumberScheduled != nodes || s.NumberAvailable != nodes {
			return fmt.Errorf("generation %d, status %+v", ds.Generation, s)
		}
		return podsAre(image)(ctx, e)
	}
}

// podsAre checks that each node has exactly one pod that is not going, which is ready and has this image.
func podsAre(image string) step {
	return func(ctx context.Context, e *fault.Env) error {
		pods, err := e.Client.CoreV1().Pods(e.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		on := map[string]int{}
		for _, pod := range pods.Items {
			if pod.DeletionTimestamp != nil {
				continue
			}
			on[pod.Spec.NodeName]++
			if !podutil.IsPodReady(&pod) {
				return fmt.Errorf("pod %s is not ready", pod.Name)
			}
			if got := pod.Spec.Containers[0].Image; got != image {
				return fmt.Errorf("pod %s runs %s, want %s", pod.Name, got, image)
			}
		}
		for node, n := range on {
			if n != 1 {
				return fmt.Errorf("node %q has %d pods", node, n)
			}
		}
		if len(on) != nodes {
			return fmt.Errorf("%d nodes have a pod, want %d", len(on), nodes)
		}
		return nil
	}
}

func revisionsOf(ctx context.Context, e *fault.Env) ([]appsv1.ControllerRevision, error) {
	list, err := e.Client.AppsV1().ControllerRevisions(e.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b appsv1.ControllerRevision) int { return int(a.Revision - b.Revision) })
	return list.Items, nil
}

// revisionsAre checks that the revisions have the given numbers, the newest of them holds app:1, and that no collision
// was counted (H5).
func revisionsAre(want string) step {
	return func(ctx context.Context, e *fault.Env) error {
		revisions, err := revisionsOf(ctx, e)
		if err != nil {
			return err
		}
		var numbers []string
		for _, r := range revisions {
			numbers = append(numbers, fmt.Sprint(r.Revision))
		}
		if got := strings.Join(numbers, ","); got != want {
			return fmt.Errorf("the revisions have the numbers %s, want %s", got, want)
		}
		if newest := revisions[len(revisions)-1]; !strings.Contains(string(newest.Data.Raw), "app:1") {
			return fmt.Errorf("the newest revision is not the one that was gone back to: %s", newest.Data.Raw)
		}
		return collisionsAre(0)(ctx, e)
	}
}

// collisionsAre is H5: what was lost is no collision.
func collisionsAre(want int32) step {
	return func(ctx context.Context, e *fault.Env) error {
		ds, err := e.Client.AppsV1().DaemonSets(e.Namespace).Get(ctx, dsName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if n := ptr.Deref(ds.Status.CollisionCount, 0); n != want {
			return fmt.Errorf("H5: status.collisionCount is %d, want %d", n, want)
		}
		return nil
	}
}
