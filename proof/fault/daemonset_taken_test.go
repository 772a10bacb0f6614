package fault_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/proof/fault"
)

// This file puts objects in the way: the names that the manager is about to use are taken when it comes to use them.

const keeper = "fault.cairn.dev/stays"

// taken is one way in which the name of the next revision can be taken.
type taken struct {
	by string
	// change makes the obstacle from the revision that had the name before; nil means that it stays as it was.
	change func(ctx context.Context, e *fault.Env, r *appsv1.ControllerRevision) error
	// dying deletes it again at once, and a finalizer keeps it.
	dying bool
	// collisions is what status.collisionCount must say in the end.
	collisions int32
}

// takenNames are scenarios of their own: a DaemonSet goes from app:1 to app:2, whose revision has a name already.
func takenNames() (out []fault.Scenario) {
	for _, way := range []taken{
		{by: "itself"},
		{by: "itself under an older number", change: func(_ context.Context, _ *fault.Env, r *appsv1.ControllerRevision) error {
			r.Revision = 1
			return nil
		}},
		{by: "other data", collisions: 1, change: func(_ context.Context, _ *fault.Env, r *appsv1.ControllerRevision) error {
			r.Data.Raw = []byte(strings.ReplaceAll(string(r.Data.Raw), "app:2", "app:9"))
			r.OwnerReferences = nil
			r.Labels = nil
			return nil
		}},
		{by: "another parent's", collisions: 1, change: otherOwner},
		{by: "a parent that is gone", collisions: 1, change: func(ctx context.Context, e *fault.Env, r *appsv1.ControllerRevision) error {
			r.Finalizers = []string{keeper} // or the garbage collector takes it away
			if err := otherOwner(ctx, e, r); err != nil {
				return err
			}
			return e.Client.AppsV1().DaemonSets(e.Namespace).Delete(ctx, r.OwnerReferences[0].Name, metav1.DeleteOptions{})
		}},
		{by: "itself, which is terminating", dying: true, change: func(_ context.Context, _ *fault.Env, r *appsv1.ControllerRevision) error {
			r.Finalizers = []string{keeper}
			return nil
		}},
	} {
		out = append(out, fault.Scenario{
			Name:   "daemonset whose next revision's name is taken by " + way.by,
			Once:   true,
			Drive:  steps(create, way.drive),
			Ended:  ended("app:2"),
			AtRest: collisionsAre(way.collisions),
		})
	}
	return out
}

// drive learns the name by a rollout to app:2 and back, takes the revision away, puts the obstacle there, all while no
// manager runs, and asks for app:2 again.
func (w taken) drive(ctx context.Context, e *fault.Env) error {
	for _, image := range []string{"app:2", "app:1"} {
		if err := steps(patch(imagePatch(image)), rolledOut(image))(ctx, e); err != nil {
			return err
		}
	}
	e.Stop()
	revisions := e.Client.AppsV1().ControllerRevisions(e.Namespace)
	all, err := revisionsOf(ctx, e)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(r appsv1.ControllerRevision) bool { return strings.Contains(string(r.Data.Raw), "app:2") })
	old := all[i]
	if err := revisions.Delete(ctx, old.Name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	without, err := revisions.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	obstacle := old.DeepCopy()
	obstacle.ObjectMeta = metav1.ObjectMeta{Name: old.Name, Labels: old.Labels, Annotations: old.Annotations, OwnerReferences: old.OwnerReferences}
	if w.change != nil {
		if err := w.change(ctx, e, obstacle); err != nil {
			return err
		}
	}
	if _, err := revisions.Create(ctx, obstacle, metav1.CreateOptions{}); err != nil {
		return err
	}
	if w.dying {
		if err := revisions.Delete(ctx, obstacle.Name, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	if err := patch(imagePatch("app:2"))(ctx, e); err != nil {
		return err
	}
	if w.dying { // it is used as long as it is there; its successor gets its name
		e.Start(ctx)
		return errors.Join(rolledOut("app:2")(ctx, e), letGo(ctx, e, obstacle.Name))
	}
	// The caches do not show the obstacle, or the manager would go around it.
	e.Faults.Rewind(revisionResource, without.ResourceVersion)
	release := e.Faults.Hold(revisionResource)
	defer release()
	e.Start(ctx)
	err = e.Until(ctx, "a create under the name that is taken", func(context.Context) error {
		if slices.ContainsFunc(e.Faults.Requests(), func(r fault.Request) bool {
			return r.Name == obstacle.Name && r.Verb == "create" && strings.HasPrefix(r.Answer, "409")
		}) {
			return nil
		}
		return fmt.Errorf("nobody has asked for %s yet", obstacle.Name)
	})
	if err != nil || len(obstacle.Finalizers) == 0 {
		return err
	}
	return letGo(ctx, e, obstacle.Name)
}

// letGo takes away the finalizer that keeps the obstacle.
func letGo(ctx context.Context, e *fault.Env, name string) error {
	body := []byte(`{"metadata":{"finalizers":null}}`)
	_, err := e.Client.AppsV1().ControllerRevisions(e.Namespace).Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{})
	return err
}

// otherOwner gives the revision to a DaemonSet that exists, runs nowhere, and selects something else.
func otherOwner(ctx context.Context, e *fault.Env, r *appsv1.ControllerRevision) error {
	labels := map[string]string{"app": "other"}
	other, err := e.Client.AppsV1().DaemonSets(e.Namespace).Create(ctx, &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "other"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					NodeSelector: map[string]string{"nowhere": "true"},
					Containers:   []corev1.Container{{Name: "main", Image: "app:2"}},
				},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(other, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))}
	r.Labels = labels
	return nil
}
