package fault_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/cairn-dev/cairn/proof/fault"
	"github.com/cairn-dev/cairn/sandbox"
)

// This file lets the manager's caches lag in the middle of rollouts, one resource at a time.

// behindCaches are scenarios of a DaemonSet.
func behindCaches() []fault.Scenario {
	edit := func(image string) step { return patch(imagePatch(image)) }
	scenario := fault.Scenario{Name: "daemonset", Ended: ended("app:1"), AtRest: collisionsAre(0)}
	ways := lags()
	ways["held, cut, old"] = cutToThePast
	return behind(scenario, ways, create, edit, revisionResource, podResource, daemonSetResource)
}

// behind returns scenarios with an edit and another edit on top. The manager does not see one of the resources for a
// while after the first edit.
func behind(
	s fault.Scenario, lags map[string]lag, create step, edit func(image string) step, resources ...schema.GroupResource,
) (out []fault.Scenario) {
	kind := s.Name
	for _, resource := range resources {
		for how, lag := range lags {
			s.Name, s.Once = fmt.Sprintf("%s with %s %s", kind, resource.Resource, how), true
			s.Drive = steps(create, lagging(resource, lag, edit))
			out = append(out, s)
		}
	}
	return out
}

// lag does something about a resource whose events are held.
type lag = func(context.Context, *fault.Env, schema.GroupResource) error

func lags() map[string]lag {
	return map[string]lag{
		"held":               func(context.Context, *fault.Env, schema.GroupResource) error { return nil },
		"held and cut":       cutWatches,
		"held and restarted": restartInThePast,
	}
}

// lagging edits while the events of one resource are held, does something about it, lets go, and edits back. How often
// revisions are renumbered depends on how many of these edits the controller gets to see.
func lagging(resource schema.GroupResource, lag lag, edit func(image string) step) step {
	return func(ctx context.Context, e *fault.Env) error {
		release := e.Faults.Hold(resource)
		defer release()
		held := until("an event that is held", func(context.Context, *fault.Env) error {
			if e.Faults.Held(resource) == 0 {
				return fmt.Errorf("no event of %s", resource)
			}
			return nil
		})
		if err := steps(edit("app:2"), held)(ctx, e); err != nil {
			return err
		}
		if err := lag(ctx, e, resource); err != nil {
			return err
		}
		release()
		return edit("app:1")(ctx, e)
	}
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

// oldPods are scenarios of their own: a pod stops serving while no manager runs, and the next one begins with caches
// that show it ready. Deletes are due at once, and two are allowed when all three pods serve. Which pod it has to be so
// that a manager that believes its caches takes one too many depends on whom it takes first, so each node has its turn.
func oldPods() (out []fault.Scenario) {
	for node := range nodes {
		out = append(out, fault.Scenario{
			Name: fmt.Sprintf("daemonset restarted with old pods, that of node %d unready", node),
			Once: true,
			Drive: func(ctx context.Context, e *fault.Env) error {
				return restartWithOldPods(ctx, e, fmt.Sprint("node-", node))
			},
			Ended: ended("app:2"),
		})
	}
	return out
}

// believed is how long the manager has for what it must not do.
const believed = 300 * time.Millisecond

func restartWithOldPods(ctx context.Context, e *fault.Env, node string) error {
	if err := create(ctx, e); err != nil {
		return err
	}
	version, err := beforeTheEdit(ctx, e)
	if err != nil {
		return err
	}
	e.Stop()
	if err := unready(ctx, e, node); err != nil {
		return err
	}
	if err := patch(imagePatch("app:2"))(ctx, e); err != nil {
		return err
	}
	e.Faults.Rewind(podResource, version)
	release := e.Faults.Hold(podResource)
	defer release()
	e.Start(ctx)
	err = e.Until(ctx, "the revision of app:2", func(ctx context.Context) error {
		revisions, err := revisionsOf(ctx, e)
		if err == nil && len(revisions) < 2 {
			err = errors.New("there is only the first revision")
		}
		return err
	})
	if err != nil {
		return err
	}
	select { // nothing marks the end of a time in which nothing may happen
	case <-time.After(believed):
	case <-ctx.Done():
	}
	release()
	return nil
}

// unready makes the pod on a node stop serving.
func unready(ctx context.Context, e *fault.Env, node string) error {
	pods := e.Client.CoreV1().Pods(e.Namespace)
	list, err := pods.List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String()})
	if err != nil {
		return err
	}
	if len(list.Items) != 1 {
		return fmt.Errorf("%s has %d pods", node, len(list.Items))
	}
	name := list.Items[0].Name
	data := []byte(`{"metadata":{"annotations":{"` + sandbox.ReadyAnnotation + `":"false"}}}`)
	if _, err := pods.Patch(ctx, name, types.MergePatchType, data, metav1.PatchOptions{}); err != nil {
		return err
	}
	return e.Until(ctx, "an unready pod", func(ctx context.Context) error {
		pod, err := pods.Get(ctx, name, metav1.GetOptions{})
		if err == nil && podutil.IsPodReady(pod) {
			err = fmt.Errorf("pod %s is still ready", name)
		}
		return err
	})
}
