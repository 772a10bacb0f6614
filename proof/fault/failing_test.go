package fault_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/cairn-dev/cairn/proof/fault"
	"github.com/cairn-dev/cairn/proof/internal/catset"
	"github.com/cairn-dev/cairn/proof/kinds"
	"github.com/cairn-dev/cairn/rollback"
)

// This file is about rollouts that do not get on, and parents that are brought back: whatever request fails, and
// whenever the manager is killed, once, and in time.

// asksForUndo are the annotations of such a parent. Where a manager begins anew, two seconds are long.
const asksForUndo = `{"metadata":{"annotations":{"` + rollback.ProgressDeadlineAnnotation + `":"2s","` + rollback.OnDeadlineAnnotation + `":"undo"}}}`

// failing is a scenario with a rollout that does not start.
func failing(s fault.Scenario) fault.Scenario {
	s.Share = 8
	s.Unaimed = true
	if !full {
		s.Once = true
	}
	return s
}

// brokenDaemons is a DaemonSet whose next image does not start.
func brokenDaemons() fault.Scenario {
	return failing(fault.Scenario{
		Name:   "daemonset that is brought back",
		Drive:  steps(create, patch([]byte(asksForUndo)), watched(kinds.DaemonSet.Parents), patch(imagePatch("app:broken"))),
		Ended:  steps(broughtBack(kinds.DaemonSet.Parents), ended("app:1")),
		AtRest: revisionsAre("2,3"),
	})
}

// brokenSet is a StatefulSet whose next image does not start.
func brokenSet() fault.Scenario {
	return failing(fault.Scenario{
		Name: "statefulset that is brought back",
		Drive: steps(
			createSet(func(*appsv1.StatefulSetSpec) {}),
			patchSet([]byte(asksForUndo)),
			watched(kinds.StatefulSet.Parents),
			patchSet(imagePatch("app:broken")),
		),
		Ended: steps(broughtBack(kinds.StatefulSet.Parents), setEnded("app:1", "app:1")),
	})
}

// brokenCats is a CatSet whose next image does not start.
func brokenCats() fault.Scenario {
	return failing(fault.Scenario{
		Name: "composite parent that is brought back",
		Drive: steps(createCats(catset.OneByOne, "app:1", func(set *unstructured.Unstructured) {
			set.SetAnnotations(map[string]string{rollback.ProgressDeadlineAnnotation: "2s", rollback.OnDeadlineAnnotation: "undo"})
		}), editCats(catImage("app:broken"))),
		Ended: steps(broughtBack(catset.Resource), catsEnded("app:1")),
	})
}

// watched waits until the status of a parent has a rollout with a deadline. A rollback goes to the revision that was
// complete there.
func watched(resource schema.GroupVersionResource) step {
	return until("the condition Stalled", func(ctx context.Context, e *fault.Env) error {
		parent, err := dynamic.NewForConfigOrDie(e.User).Resource(resource).Namespace(e.Namespace).Get(ctx, "swept", metav1.GetOptions{})
		if err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(parent.Object, "status", "conditions")
		if !slices.ContainsFunc(conditions, func(c any) bool { return c.(map[string]any)["type"] == rollback.Stalled }) {
			return fmt.Errorf("conditions %v", conditions)
		}
		return nil
	})
}

// broughtBack checks that a parent reports that it was brought back, and why.
func broughtBack(resource schema.GroupVersionResource) step {
	return func(ctx context.Context, e *fault.Env) error {
		parent, err := dynamic.NewForConfigOrDie(e.User).Resource(resource).Namespace(e.Namespace).Get(ctx, "swept", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if back := rollback.NoteOf(parent); back == nil || !strings.HasPrefix(back.Reason, "no progress for 2s: ") {
			return fmt.Errorf("it says that it was rolled back: %+v", back)
		}
		return nil
	}
}
