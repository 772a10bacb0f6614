package calibrate_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/proof/check/lab"
	"github.com/cairn-dev/cairn/proof/check/parents"
	"github.com/cairn-dev/cairn/sandbox"
)

// This file is what the upstream DaemonSet controller gets wrong.

// daemonRolledOut waits until the controller says that the rollout is over.
func (r *room) daemonRolledOut() {
	r.Helper()
	r.Eventually("wait for the rollout", func(ctx context.Context) error {
		ds, err := r.User.AppsV1().DaemonSets(r.Namespace).Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if s := ds.Status; s.ObservedGeneration != ds.Generation || s.UpdatedNumberScheduled != nodes || s.NumberAvailable != nodes {
			return fmt.Errorf("generation %d, status %v", ds.Generation, s.String())
		}
		return nil
	})
}

// Number 19, kubernetes#111280. Two revisions that are the same are merged, and all pods get the label of what is left.
func TestDaemonSetRelabelsPodsOfOtherRevisions(t *testing.T) {
	r := newRoom(t, sandbox.DaemonSet, parents.DaemonSet())
	r.manager()
	sets := r.User.AppsV1().DaemonSets(r.Namespace)
	image := func(image string) {
		if _, err := sets.Patch(t.Context(), "web", types.StrategicMergePatchType, []byte(imagePatch(image)), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		r.daemonRolledOut()
	}
	ds := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DaemonSetSpec{Selector: selector(), Template: template("app:1")},
	}
	if _, err := sets.Create(t.Context(), ds, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r.daemonRolledOut()
	first := r.revisions()[0]
	image("app:2")
	twin := first.DeepCopy()
	twin.ObjectMeta = metav1.ObjectMeta{
		Name: "web-twin", Labels: map[string]string{"app": "web", appsv1.DefaultDaemonSetUniqueLabelKey: "twin"}, OwnerReferences: first.OwnerReferences,
	}
	twin.Revision = 3
	if _, err := r.User.AppsV1().ControllerRevisions(r.Namespace).Create(t.Context(), twin, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	image("app:1")

	// Whether it takes the twin's number as well depends on whether it has seen the twin before the edit.
	if got := lab.Invariants(r.ever()); strings.TrimPrefix(got, "H2 ") != "P4 R4" {
		t.Errorf("found %q, want P4 and R4", got)
	}
	if got := lab.Invariants(r.atRest()); !strings.Contains(got, "R4") {
		t.Errorf("at rest, found %q, want R4 among them", got)
	}
}
