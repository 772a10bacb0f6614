package fault_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/cairn-dev/cairn/proof/fault"
	"github.com/cairn-dev/cairn/proof/internal/catset"
	"github.com/cairn-dev/cairn/sandbox"
)

// This file is what a user does to CatSets, and what one looks at.

func catSets(e *fault.Env) dynamic.ResourceInterface {
	return dynamic.NewForConfigOrDie(e.User).Resource(catset.Resource).Namespace(e.Namespace)
}

// createCats makes a CatSet of three pods and waits until it is rolled out.
func createCats(limits catset.Limits, image string, changes ...func(*unstructured.Unstructured)) step {
	return func(ctx context.Context, e *fault.Env) error {
		set := catset.New(e.Namespace, catName, limits, catReplicas, image)
		for _, change := range changes {
			change(set)
		}
		if _, err := catSets(e).Create(ctx, set, metav1.CreateOptions{}); err != nil {
			return err
		}
		return until("the first pods", catsEnded(image))(ctx, e)
	}
}

// slowly makes pods serve only some time after they have started, so that there is one to be seen.
func slowly(set *unstructured.Unstructured) {
	_ = unstructured.SetNestedField(set.Object, "700ms", "spec", "template", "metadata", "annotations", sandbox.ReadyAfterAnnotation)
}

func editCats(patch []byte) step {
	return func(ctx context.Context, e *fault.Env) error {
		_, err := catSets(e).Patch(ctx, catName, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}
}

func catImage(image string) []byte {
	return fmt.Appendf(nil, `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":%q}]}}}}`, image)
}

// orphanCats deletes the CatSet and leaves what it has.
func orphanCats(ctx context.Context, e *fault.Env) error {
	orphan := metav1.DeletePropagationOrphan
	if err := catSets(e).Delete(ctx, catName, metav1.DeleteOptions{PropagationPolicy: &orphan}); err != nil {
		return err
	}
	return e.Until(ctx, "the end of the CatSet", func(ctx context.Context) error {
		_, err := catSets(e).Get(ctx, catName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it is still there"))
	})
}

// catsEnded returns nil if the CatSet says that it is rolled out, and there are as many pods as it asks for, all
// counted, of that image and ready.
func catsEnded(image string) step {
	return func(ctx context.Context, e *fault.Env) error {
		set, err := catSets(e).Get(ctx, catName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		replicas, _, _ := unstructured.NestedInt64(set.Object, "spec", "replicas")
		if err := errors.Join(updatedSays(set, "True", ""), countedReady(set, replicas), claimedOnce(ctx, e)); err != nil {
			return err
		}
		return podsHave(numbered(slices.Repeat([]string{image}, int(replicas))...)...)(ctx, e)
	}
}

// catsCounted returns nil if the status is about the newest spec and counts so many pods, all ready, in mid-rollout.
func catsCounted(n int64) step {
	return func(ctx context.Context, e *fault.Env) error {
		set, err := catSets(e).Get(ctx, catName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		err = countedReady(set, n)
		if full { // a rollout that stands still for a minute comes before: the short cut does not wait for it
			err = errors.Join(err, claimedOnce(ctx, e))
		}
		if err != nil {
			return err
		}
		return updatedSays(set, "False", fmt.Sprintf("%d available", n+1)) // the ConfigMap as well
	}
}

// countedReady returns nil if the status counts so many pods, all ready. Counts alone may be written a second late.
func countedReady(set *unstructured.Unstructured, n int64) error {
	replicas, _, _ := unstructured.NestedInt64(set.Object, "status", "replicas")
	ready, _, _ := unstructured.NestedInt64(set.Object, "status", "readyReplicas")
	if replicas != n || ready != n {
		return fmt.Errorf("the status is %v, want %d pods", set.Object["status"], n)
	}
	return nil
}

// updatedSays returns nil if the condition Updated has that status and a message with those words, as of the newest
// spec.
func updatedSays(set *unstructured.Unstructured, status, words string) error {
	observed, _, _ := unstructured.NestedInt64(set.Object, "status", "observedGeneration")
	conditions, _, _ := unstructured.NestedSlice(set.Object, "status", "conditions")
	for _, c := range conditions {
		c, _ := c.(map[string]any)
		if message := fmt.Sprint(c["message"]); c["type"] == "Updated" && c["status"] == status && strings.Contains(message, words) &&
			observed == set.GetGeneration() {
			return nil
		}
	}
	return fmt.Errorf("generation %d, status %v, want Updated=%s %q", set.GetGeneration(), set.Object["status"], status, words)
}

// catWaits returns nil if the CatSet says that it waits for a child.
func catWaits(name string) step {
	return func(ctx context.Context, e *fault.Env) error {
		set, err := catSets(e).Get(ctx, catName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return updatedSays(set, "False", name)
	}
}

// catFails returns nil if the condition Updated of the CatSet reports that its hook failed, with that reason if it is
// not empty.
func catFails(want string) step {
	return func(ctx context.Context, e *fault.Env) error {
		set, err := catSets(e).Get(ctx, catName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(set.Object, "status", "conditions")
		for _, c := range conditions {
			c, _ := c.(map[string]any)
			reason := fmt.Sprint(c["reason"])
			if c["type"] == "Updated" && c["status"] == "False" && !strings.HasPrefix(reason, "Rollout") && c["message"] != "" &&
				(want == "" || reason == want) {
				return nil
			}
		}
		return fmt.Errorf("no condition reports that the hook failed with reason %q: %v", want, set.Object["status"])
	}
}

// somePod returns nil if there is a pod for which the test holds.
func somePod(what string, test func(*corev1.Pod) bool) step {
	return func(ctx context.Context, e *fault.Env) error {
		list, err := e.Client.CoreV1().Pods(e.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp == nil && test(&p) }) {
			return fmt.Errorf("there is no pod with %s", what)
		}
		return nil
	}
}

func podOf(image string) step {
	return somePod(image, func(p *corev1.Pod) bool { return p.Spec.Containers[0].Image == image })
}

func podNoted(note string) step {
	return somePod("the note "+note, func(p *corev1.Pod) bool { return p.Annotations["check.cairn.dev/note"] == note })
}

// podUIDs are those of all pods.
func podUIDs(ctx context.Context, e *fault.Env) ([]types.UID, error) {
	list, err := e.Client.CoreV1().Pods(e.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var out []types.UID
	for i := range list.Items {
		out = append(out, list.Items[i].UID)
	}
	return out, nil
}

// podsAreLeft returns an error if there are fewer pods that stay.
func podsAreLeft(want int) step {
	return func(ctx context.Context, e *fault.Env) error {
		list, err := e.Client.CoreV1().Pods(e.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		left := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
		if len(left) < want {
			return fmt.Errorf("W1: %d pods are left, want %d at least", len(left), want)
		}
		return nil
	}
}

// orphaned marks a pod that nobody may replace.
const orphaned = "check.cairn.dev/orphaned"

// asApplied is a pod as a controller made it that let go of it.
func asApplied(wanted *unstructured.Unstructured) (*corev1.Pod, error) {
	applied, err := json.Marshal(wanted.Object)
	if err != nil {
		return nil, err
	}
	pod := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(wanted.Object, pod); err != nil {
		return nil, err
	}
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, "metacontroller.k8s.io/last-applied-configuration", string(applied))
	return pod, nil
}

// onlyOneHas returns nil if one of two CatSets has the only pod, which was never replaced, and the other one says that
// it cannot have it.
func onlyOneHas(name string, sets ...string) step {
	return func(ctx context.Context, e *fault.Env) error {
		pod, err := e.Client.CoreV1().Pods(e.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		owner := metav1.GetControllerOf(pod)
		if owner == nil || pod.Annotations[orphaned] == "" || pod.DeletionTimestamp != nil || !podutil.IsPodReady(pod) {
			return fmt.Errorf("the pod is %v", pod.ObjectMeta)
		}
		for _, set := range sets {
			o, err := catSets(e).Get(ctx, set, metav1.GetOptions{})
			if err != nil {
				return err
			}
			status, words := "False", name
			if set == owner.Name {
				status, words = "True", ""
			}
			if err := updatedSays(o, status, words); err != nil {
				return fmt.Errorf("%s: %w", set, err)
			}
		}
		return nil
	}
}
