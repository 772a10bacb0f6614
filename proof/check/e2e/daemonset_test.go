package e2e

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/check/lab"
	"github.com/cairn-dev/cairn/proof/check/parents"
)

// This file judges a client that poses as cairn's DaemonSet controller. The sweep of proof/fault judges the controller
// itself.

func TestSomebodyWhoPosesAsTheManagerIsReported(t *testing.T) {
	l := newLab(t)
	stop := l.manage()
	l.create("web", "app:1")
	l.rolledOut("web")
	stop()
	before := l.Sync()
	wrong, err := kubernetes.NewForConfig(l.cfg)
	if err != nil {
		t.Fatal(err)
	}

	// Two pods that serve and are as they should be, at once and by name.
	pods, err := wrong.CoreV1().Pods(l.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items[:2] {
		if err := wrong.CoreV1().Pods(l.Namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	// A second revision with the number and the content of the first.
	revisions := wrong.AppsV1().ControllerRevisions(l.Namespace)
	list, err := revisions.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	twin := list.Items[0].DeepCopy()
	twin.ObjectMeta = metav1.ObjectMeta{Name: "web-twin", Labels: twin.Labels, OwnerReferences: twin.OwnerReferences}
	if _, err := revisions.Create(t.Context(), twin, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	// As long as the two are going, the counters of the status are still right.
	l.Eventually("the two are gone", func(ctx context.Context) error {
		left, err := wrong.CoreV1().Pods(l.Namespace).List(ctx, metav1.ListOptions{})
		if err == nil && len(left.Items) > len(pods.Items)-2 {
			err = fmt.Errorf("%d pods are left", len(left.Items))
		}
		return err
	})

	at := l.Sync()
	h := l.History()
	found := check.Check(h, parents.DaemonSet())
	for _, v := range found {
		t.Log(v)
		if v.RV <= before {
			t.Errorf("this was the manager itself: %s", v)
		}
	}
	if got, want := lab.Invariants(found), "P3 P6 R1 H2"; got != want {
		t.Errorf("found %q, want %q", got, want)
	}
	if got := lab.Invariants(check.Rest(h, at, parents.DaemonSet())); got != "H2 H1 S1 C1" {
		t.Errorf("at rest, found %q", got)
	}
	if got := check.Quiet(h, before, at, parents.DaemonSet()); len(got) < 3 {
		t.Errorf("%d writes were found in a time that should have been quiet", len(got))
	}
}
