package fault_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/sandbox/fault"
)

// This file lets the manager's caches lag in the middle of rollouts, one resource at a time.

// behindCaches are scenarios of their own: an edit, of whose rollout the manager does not see one resource for a while,
// and another edit on top.
func behindCaches() (out []fault.Scenario) {
	lags := map[string]func(context.Context, *fault.Env, schema.GroupResource) error{
		"held":               func(context.Context, *fault.Env, schema.GroupResource) error { return nil },
		"held and cut":       cutWatches,
		"held, cut, old":     cutToThePast,
		"held and restarted": restartInThePast,
	}
	for _, resource := range []schema.GroupResource{revisionResource, podResource, daemonSetResource} {
		for how, lag := range lags {
			out = append(out, fault.Scenario{
				Name: fmt.Sprintf("daemonset with %s %s", resource.Resource, how),
				Once: true,
				Drive: func(ctx context.Context, e *fault.Env) error {
					if err := create(ctx, e); err != nil {
						return err
					}
					return lagging(ctx, e, resource, lag)
				},
				Ended:  func(ctx context.Context, e *fault.Env) error { return ended(ctx, e, "app:1") },
				AtRest: func(ctx context.Context, e *fault.Env) error { return collisionsAre(ctx, e, 0) },
			})
		}
	}
	return out
}

// lagging edits while the events of one resource are held, does something about it, lets go, and edits back. How often
// revisions are renumbered depends on how many of these edits the controller gets to see.
func lagging(
	ctx context.Context, e *fault.Env, resource schema.GroupResource, lag func(context.Context, *fault.Env, schema.GroupResource) error,
) error {
	release := e.Faults.Hold(resource)
	defer release()
	if err := patch(ctx, e, imagePatch("app:2")); err != nil {
		return err
	}
	err := e.Until(ctx, "an event that is held", func(context.Context) error {
		if e.Faults.Held(resource) == 0 {
			return fmt.Errorf("no event of %s", resource)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := lag(ctx, e, resource); err != nil {
		return err
	}
	release()
	return patch(ctx, e, imagePatch("app:1"))
}

func cutWatches(_ context.Context, e *fault.Env, resource schema.GroupResource) error {
	if n, err := e.Faults.Cut(resource); n == 0 || err != nil {
		return fmt.Errorf("cut %d watches: %w", n, err)
	}
	return nil
}

// cutToThePast cuts the watch, and the list that follows knows nothing newer than the DaemonSet's first rollout.
func cutToThePast(ctx context.Context, e *fault.Env, resource schema.GroupResource) error {
	version, err := beforeTheEdit(ctx, e)
	if err != nil {
		return err
	}
	e.Faults.Rewind(resource, version)
	return cutWatches(ctx, e, resource)
}

// restartInThePast kills the manager, whose next caches begin with that.
func restartInThePast(ctx context.Context, e *fault.Env, resource schema.GroupResource) error {
	version, err := beforeTheEdit(ctx, e)
	if err != nil {
		return err
	}
	e.Faults.Rewind(resource, version)
	e.Faults.Kill()
	return nil
}

// beforeTheEdit is a resource version from before the last edit.
func beforeTheEdit(ctx context.Context, e *fault.Env) (string, error) {
	// Nobody writes this one after it was made: the namespace's own, older than the DaemonSet, would show no pods at all.
	marks, err := e.Client.CoreV1().ConfigMaps(e.Namespace).Get(ctx, markName, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	return marks.ResourceVersion, nil
}
