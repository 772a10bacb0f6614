package fault_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/cairn-dev/cairn/proof/fault"
)

// This file composes scenarios of steps.

// step does a part of a scenario, or checks a state.
type step = func(context.Context, *fault.Env) error

// steps returns a step that runs all of these in order, and stops at the first error.
func steps(all ...step) step {
	return func(ctx context.Context, e *fault.Env) error {
		for _, s := range all {
			if err := s(ctx, e); err != nil {
				return err
			}
		}
		return nil
	}
}

// until returns a step that waits until a check succeeds.
func until(what string, check step) step {
	return func(ctx context.Context, e *fault.Env) error {
		return e.Until(ctx, what, func(ctx context.Context) error { return check(ctx, e) })
	}
}

// undo returns a step that applies the data of the oldest revision with a patch, as kubectl rollout undo does.
func undo(patch func(data []byte) step) step {
	return func(ctx context.Context, e *fault.Env) error {
		revisions, err := revisionsOf(ctx, e)
		if err != nil {
			return err
		}
		first := revisions[0].Data.Raw
		return patch(first)(ctx, e)
	}
}

// numbered are the pods swept-0 to swept-n with these images, all of them ready, as podsHave writes them.
func numbered(images ...string) (out []string) {
	for i, image := range images {
		out = append(out, fmt.Sprintf("swept-%d=%s", i, image))
	}
	return out
}

// podsHave checks that there are exactly these pods, sorted by name: "swept-0=app:1", with a minus for a pod that is
// not ready, and an x for a pod that is terminating.
func podsHave(want ...string) step {
	return func(ctx context.Context, e *fault.Env) error {
		list, err := e.Client.CoreV1().Pods(e.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var got []string
		for i := range list.Items {
			pod := &list.Items[i]
			text := pod.Name + "=" + pod.Spec.Containers[0].Image
			if !podutil.IsPodReady(pod) {
				text += "-"
			}
			if pod.DeletionTimestamp != nil {
				text += "x"
			}
			got = append(got, text)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			return fmt.Errorf("there are the pods %v, want %v", got, want)
		}
		return nil
	}
}

// historyIs checks the numbers and images of all revisions.
func historyIs(want string) step {
	return func(ctx context.Context, e *fault.Env) error {
		revisions, err := revisionsOf(ctx, e)
		if err != nil {
			return err
		}
		var got []string
		for _, r := range revisions {
			_, image, _ := strings.Cut(string(r.Data.Raw), `"image":"`)
			image, _, _ = strings.Cut(image, `"`)
			got = append(got, fmt.Sprintf("%d=%s", r.Revision, image))
		}
		if got := strings.Join(got, " "); got != want {
			return fmt.Errorf("the history is %s, want %s", got, want)
		}
		return nil
	}
}
