package fault_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/cairn-dev/cairn/proof/fault"
	"github.com/cairn-dev/cairn/proof/internal/catset"
)

// This file looks at the revisions of CatSets, and goes back to one.

func catRevisions(e *fault.Env) dynamic.ResourceInterface {
	return dynamic.NewForConfigOrDie(e.User).Resource(catset.Revisions).Namespace(e.Namespace)
}

// undoCats puts back what the revision with that image holds.
func undoCats(image string) step {
	return func(ctx context.Context, e *fault.Env) error {
		list, err := catRevisions(e).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, r := range list.Items {
			patch, _, _ := unstructured.NestedMap(r.Object, "parentPatch")
			if catset.Image(&unstructured.Unstructured{Object: patch}) != image {
				continue
			}
			data, err := json.Marshal(patch)
			if err != nil {
				return err
			}
			return editCats(data)(ctx, e)
		}
		return fmt.Errorf("no revision holds %s", image)
	}
}

// claimedOnce returns nil if no child is in two revisions any more. Older ones are tidied up last.
func claimedOnce(ctx context.Context, e *fault.Env) error {
	list, err := catRevisions(e).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	in := map[any]string{}
	for _, r := range list.Items {
		children, _, _ := unstructured.NestedSlice(r.Object, "children")
		for _, entry := range children {
			entry, _ := entry.(map[string]any)
			names, _ := entry["names"].([]any)
			for _, name := range names {
				if other := in[name]; other != "" {
					return fmt.Errorf("%v is in %s and in %s", name, other, r.GetName())
				}
				in[name] = r.GetName()
			}
		}
	}
	return nil
}

// catHistoryIs compares the numbers and images of all revisions.
func catHistoryIs(want string) step {
	return func(ctx context.Context, e *fault.Env) error {
		list, err := catRevisions(e).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var got []string
		for _, r := range list.Items {
			number, _, _ := unstructured.NestedInt64(r.Object, "revision")
			patch, _, _ := unstructured.NestedMap(r.Object, "parentPatch")
			got = append(got, fmt.Sprintf("%d=%s", number, catset.Image(&unstructured.Unstructured{Object: patch})))
		}
		if slices.Sort(got); strings.Join(got, " ") != want {
			return fmt.Errorf("the history is %v, want %s", got, want)
		}
		return nil
	}
}
