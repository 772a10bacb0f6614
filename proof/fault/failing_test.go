package fault_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/pass"
	"github.com/cairn-dev/cairn/proof/fault"
	"github.com/cairn-dev/cairn/proof/internal/catset"
)

// This file is about rollouts that do not get on, and parents that are brought back: whatever request fails, and
// whenever the manager is killed, once, and in time.

// asksForUndo are the annotations of such a parent. Where a manager begins anew, two seconds are long.
const asksForUndo = `{"metadata":{"annotations":{"` + pass.ProgressDeadlineAnnotation + `":"2s","` + history.OnDeadlineAnnotation + `":"undo"}}}`

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
		Name: "daemonset that is brought back",
		Drive: func(ctx context.Context, e *fault.Env) error {
			if err := create(ctx, e); err != nil {
				return err
			}
			if err := patch(ctx, e, []byte(asksForUndo)); err != nil {
				return err
			}
			return patch(ctx, e, imagePatch("app:broken"))
		},
		Ended: func(ctx context.Context, e *fault.Env) error {
			ds, err := e.Client.AppsV1().DaemonSets(e.Namespace).Get(ctx, dsName, metav1.GetOptions{})
			if err != nil {
				return err
			}
			return errors.Join(broughtBack(ds), ended(ctx, e, "app:1"))
		},
		AtRest: func(ctx context.Context, e *fault.Env) error { return revisionsAre(ctx, e, "2,3") },
	})
}

// brokenSet is a StatefulSet whose next image does not start.
func brokenSet() fault.Scenario {
	return failing(fault.Scenario{
		Name: "statefulset that is brought back",
		Drive: func(ctx context.Context, e *fault.Env) error {
			if err := createSet(ctx, e, func(*appsv1.StatefulSetSpec) {}); err != nil {
				return err
			}
			if err := patchSet(ctx, e, []byte(asksForUndo)); err != nil {
				return err
			}
			return patchSet(ctx, e, imagePatch("app:broken"))
		},
		Ended: func(ctx context.Context, e *fault.Env) error {
			set, err := e.Client.AppsV1().StatefulSets(e.Namespace).Get(ctx, setName, metav1.GetOptions{})
			if err != nil {
				return err
			}
			return errors.Join(broughtBack(set), setEnded(ctx, e, "app:1", "app:1"))
		},
	})
}

// brokenCats is a CatSet whose next image does not start.
func brokenCats() fault.Scenario {
	return failing(fault.Scenario{
		Name: "composite parent that is brought back",
		Drive: func(ctx context.Context, e *fault.Env) error {
			err := createCats(ctx, e, catset.OneByOne, "app:1", func(set *unstructured.Unstructured) {
				set.SetAnnotations(map[string]string{pass.ProgressDeadlineAnnotation: "2s", history.OnDeadlineAnnotation: "undo"})
			})
			if err != nil {
				return err
			}
			return editCats(ctx, e, catImage("app:broken"))
		},
		Ended: func(ctx context.Context, e *fault.Env) error {
			set, err := catSets(e).Get(ctx, catName, metav1.GetOptions{})
			if err != nil {
				return err
			}
			return errors.Join(broughtBack(set), catsEnded(ctx, e, "app:1"))
		},
	})
}

// broughtBack returns nil if a parent says that it was brought back, and why.
func broughtBack(parent client.Object) error {
	back := history.RolledBackOf(parent)
	if back == nil || !strings.HasPrefix(back.Reason, "no progress for 2s: ") {
		return fmt.Errorf("it says that it was rolled back: %+v", back)
	}
	return nil
}
