package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/scenario"
	"github.com/cairn-dev/cairn/sandbox"
)

// This file knows when nothing is left to do.

const (
	// still is how long no manager may ask for anything when every rollout has ended.
	still = 400 * time.Millisecond
	// stuck is how long, when one has not: then it waits for something that does not come.
	stuck = 1500 * time.Millisecond
)

// Settle implements [scenario.Stage]. Quiet is counted in looks and not by the clock, so that it lasts longer where the
// machine has no time for the controllers.
func (s *Stage) Settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	asked, quiet := -1, time.Duration(0)
	var last error
	var before []string // the objects at the last look: a manager has not answered yet to what changed since
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		if failed := s.failed.Load(); failed != nil {
			return false, *failed
		}
		if n := s.asked(); n != asked {
			asked, quiet = n, 0
			return false, nil
		}
		if quiet += poll; quiet < still || quiet%(still/2) != 0 {
			return false, nil // looking costs time as well
		}
		wants, versions, why := s.unsettled(ctx)
		same := slices.Equal(versions, before)
		last, before = why, versions
		return same && (why == nil || wants > 0 && quiet >= wants), nil
	})
	if err != nil {
		return fmt.Errorf("it does not settle: %w\nthe last requests:\n%s", errors.Join(err, last), s.lastRequests())
	}
	return nil
}

// lastRequests are the last lines of each manager's log.
func (s *Stage) lastRequests() string {
	const enough = 6
	var b strings.Builder
	for i, m := range s.managers {
		all := m.Faults.Requests()
		for _, r := range all[max(0, len(all)-enough):] {
			fmt.Fprintf(&b, "manager %d: %s\n", i+1, r)
		}
	}
	return b.String()
}

// asked is how many requests the managers have made to change something. The user is who waits here.
func (s *Stage) asked() int {
	n := 0
	for _, m := range s.managers {
		n += m.Faults.Count()
	}
	return n
}

// unsettled returns an error about an object that still changes, the time for which it may stay so, and the versions of
// all objects. If the time is 0, it has to end.
func (s *Stage) unsettled(ctx context.Context) (wants time.Duration, versions []string, why error) {
	for _, k := range s.kinds {
		parents, err := s.list(ctx, k.Parents)
		if err != nil {
			return 0, nil, err
		}
		there := map[types.UID]bool{}
		for _, parent := range parents {
			there[parent.GetUID()] = true
			versions = append(versions, parent.GetResourceVersion())
			if k.ObservedGeneration(parent) < parent.GetGeneration() || !k.Complete(parent) {
				why = fmt.Errorf("%s %s is not complete", k.Parent.Kind, parent.GetName())
				wants = max(wants, stuck+minReady(parent))
			}
		}
		for _, resource := range []schema.GroupVersionResource{k.Children, k.Revisions} {
			objects, err := s.list(ctx, resource)
			if err == nil {
				err = leftover(k, there, objects)
			}
			if err != nil {
				return 0, nil, err
			}
			for _, o := range objects {
				versions = append(versions, o.GetResourceVersion())
			}
		}
	}
	return wants, versions, why
}

// leftover says which object the garbage collector or a kubelet has still to take away.
func leftover(k check.Kind, there map[types.UID]bool, objects []client.Object) error {
	for _, o := range objects {
		owner := metav1.GetControllerOfNoCopy(o)
		if owner != nil && owner.Kind == k.Parent.Kind && !there[owner.UID] {
			return fmt.Errorf("%s belongs to a %s that is gone", o.GetName(), owner.Kind)
		}
		if o.GetDeletionTimestamp() != nil && o.GetAnnotations()[sandbox.StuckAnnotation] == "" {
			return fmt.Errorf("%s is going", o.GetName())
		}
		if pod, ok := o.(*corev1.Pod); ok && !met(pod) {
			return fmt.Errorf("no scheduler and no kubelet has looked at pod %s", pod.Name)
		} else if ok && willBeReady(pod) {
			return fmt.Errorf("pod %s is not Ready yet", pod.Name)
		}
	}
	return nil
}

// met reports whether the scheduler has refused a pod, or the kubelet knows the images that it is to run.
func met(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return true
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		if !slices.ContainsFunc(pod.Spec.Containers, func(want corev1.Container) bool { return want.Name == c.Name && want.Image == c.Image }) {
			return false
		}
	}
	return len(pod.Status.ContainerStatuses) == len(pod.Spec.Containers)
}

// willBeReady reports whether the kubelet has a pod's containers running and will say that it is Ready. A status may
// call a rollout complete before that: that of a StatefulSet whose first ordinal moves counts the pods that are to go.
func willBeReady(pod *corev1.Pod) bool {
	running := !slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.State.Running == nil })
	return running && pod.Status.Phase == corev1.PodRunning && pod.Annotations[sandbox.ReadyAnnotation] != "false" &&
		!reached(pod, scenario.Ready)
}

// minReady is how long a pod of a parent has to be ready.
func minReady(parent client.Object) time.Duration {
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(parent)
	if err != nil {
		return 0
	}
	seconds, _, _ := unstructured.NestedInt64(tree, "spec", "minReadySeconds") // 0 where a kind has no such field
	return time.Duration(seconds) * time.Second
}

func (s *Stage) list(ctx context.Context, resource schema.GroupVersionResource) ([]client.Object, error) {
	if resource.Empty() {
		return nil, nil
	}
	gvk, err := s.client.RESTMapper().KindFor(resource)
	if err != nil {
		return nil, err
	}
	gvk.Kind += "List"
	made, err := s.client.Scheme().New(gvk)
	if err != nil {
		return nil, err
	}
	into, ok := made.(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("%T is no list", made)
	}
	if err := s.client.List(ctx, into, client.InNamespace(s.namespace)); err != nil {
		return nil, err
	}
	items, err := meta.ExtractList(into)
	var out []client.Object
	for _, item := range items {
		if o, ok := item.(client.Object); ok {
			out = append(out, o)
		}
	}
	return out, err
}
