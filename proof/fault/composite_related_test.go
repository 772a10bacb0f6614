package fault_test

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cairn-dev/cairn/proof/fault"
	"github.com/cairn-dev/cairn/proof/internal/catset"
)

// This file is a CatSet whose hook wants to be told of a ConfigMap beside it, which changes.

// approvedCats makes a CatSet before there is a permit for it, edits it before the new image is allowed, and goes back
// to what still is. Nothing but the permit's events tells the controller that it may go on.
func approvedCats(h *hooks) fault.Scenario {
	waits := func(ctx context.Context, e *fault.Env, after int) error {
		return e.Until(ctx, "a condition that says that the hook failed", func(ctx context.Context) error {
			if n := h.failed(e.Namespace); n <= after {
				return fmt.Errorf("the hook failed %d times", n)
			}
			return catFails("")(ctx, e)
		})
	}
	return fault.Scenario{
		Name:  "catset rolled and back with permits",
		Share: 13,
		Drive: func(ctx context.Context, e *fault.Env) error {
			if _, err := catSets(e).Create(ctx, catset.New(e.Namespace, catName, catset.Approved, catReplicas, "app:1"), metav1.CreateOptions{}); err != nil {
				return err
			}
			if err := errors.Join(waits(ctx, e, 0), permit("app:1")(ctx, e)); err != nil {
				return err
			}
			if err := until("the first pods", catsEnded("app:1"))(ctx, e); err != nil {
				return err
			}
			failed := h.failed(e.Namespace)
			if err := editCats(catImage("app:2"))(ctx, e); err != nil {
				return err
			}
			if err := errors.Join(waits(ctx, e, failed), podsAreLeft(catReplicas)(ctx, e), permit("app:1", "app:2")(ctx, e)); err != nil {
				return err
			}
			return steps(until("the first pod of app:2", podOf("app:2")), editCats(catImage("app:1")))(ctx, e)
		},
		Ended:  catsEnded("app:1"),
		AtRest: catHistoryIs("2=app:2 3=app:1"),
	}
}

// permit allows images to the CatSet, whatever was allowed before.
func permit(images ...string) step {
	return func(ctx context.Context, e *fault.Env) error {
		user := metav1.ApplyOptions{FieldManager: "user", Force: true}
		_, err := e.Client.CoreV1().ConfigMaps(e.Namespace).Apply(ctx, catset.Permit(e.Namespace, catName, images...), user)
		return err
	}
}
