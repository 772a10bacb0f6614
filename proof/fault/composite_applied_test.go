package fault_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/internal/manager"
	"github.com/cairn-dev/cairn/proof/fault"
	"github.com/cairn-dev/cairn/proof/internal/catset"
)

// This file is the sweep's subject composite once more, by a manager that applies children by server-side apply: what
// it creates it hands over to its name as an applier by another request, and what it compares it asks the API server,
// so there is more that can fail.

// applier is the name that children are applied under.
const applier = "metacontroller"

func appliedComposites(h *hooks) subject {
	s := composites(h)
	s.name = "composite-applied"
	s.manager = func(_ context.Context, o *manager.Options) { o.FieldManager = applier }
	s.scenarios = []fault.Scenario{
		appliedBesideSomebody(), rolledWith("changed in place", catset.InPlace),
		sparsely(rolledAndBack()), sparsely(changedBesideRevisions()), sparsely(orphanedAndMadeAgain()),
	}
	return s
}

// sparsely has every third request fail: what replaces children has every one fail elsewhere.
func sparsely(s fault.Scenario) fault.Scenario {
	s.Points = fault.Every(3)
	return s
}

// appliedBesideSomebody changes pods in place from a template with an annotation to one without. Somebody else has
// annotated the pods as well.
func appliedBesideSomebody() fault.Scenario {
	return fault.Scenario{
		Name:  "catset of which an annotation goes",
		Share: 13,
		Drive: func(ctx context.Context, e *fault.Env) error {
			if err := createCats(catset.InPlace, "app:1")(ctx, e); err != nil {
				return err
			}
			if err := editCats([]byte(`{"spec":{"template":{"metadata":{"annotations":{"ours":"for a while"}}}}}`))(ctx, e); err != nil {
				return err
			}
			if err := until("the annotation", catsAnnotated("ours"))(ctx, e); err != nil {
				return err
			}
			list, err := e.Client.CoreV1().Pods(e.Namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			for i := range list.Items {
				patch := []byte(`{"metadata":{"annotations":{"theirs":"to stay"}}}`)
				if _, err := e.Client.CoreV1().Pods(e.Namespace).Patch(ctx, list.Items[i].Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
					return err
				}
			}
			return editCats([]byte(`{"spec":{"template":{"metadata":{"annotations":{"ours":null}}}}}`))(ctx, e)
		},
		Ended: func(ctx context.Context, e *fault.Env) error {
			return errors.Join(catsEnded("app:1")(ctx, e), catsAnnotated("theirs")(ctx, e))
		},
		AtRest: handedOver,
	}
}

// catsAnnotated returns nil if each pod has this annotation, and none of the other ones that the scenario sets.
func catsAnnotated(want string) step {
	return func(ctx context.Context, e *fault.Env) error {
		list, err := e.Client.CoreV1().Pods(e.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var errs []error
		for i := range list.Items {
			var got []string
			for _, name := range []string{"ours", "theirs"} {
				if _, ok := list.Items[i].Annotations[name]; ok {
					got = append(got, name)
				}
			}
			if strings.Join(got, " ") != want {
				errs = append(errs, fmt.Errorf("%s is annotated with %q, want %s", list.Items[i].Name, got, want))
			}
		}
		return errors.Join(errs...)
	}
}

// handedOver returns nil if nothing of a pod belongs to the applier's name but what it applied: what it set by a create
// would stay for ever.
func handedOver(ctx context.Context, e *fault.Env) error {
	list, err := e.Client.CoreV1().Pods(e.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		for _, entry := range list.Items[i].ManagedFields {
			if entry.Manager == applier && entry.Operation != metav1.ManagedFieldsOperationApply {
				return fmt.Errorf("%s: set by the way of %s: %s", list.Items[i].Name, entry.Operation, entry.FieldsV1)
			}
		}
	}
	return nil
}
