package e2e

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// This file has parents of one name and one selector in two namespaces, which a script has not: what else a history is,
// scenarios say.

func TestTwoNamespacesWithOneSelector(t *testing.T) {
	a, b := newLonelyEnv(t), newLonelyEnv(t)
	a.cairn()
	first, second := a.daemonSet("same", "app:1"), b.daemonSet("same", "app:1")
	a.create(first)
	b.create(second)
	a.rolledOut(first)
	b.rolledOut(second)
	a.image(first, "app:2")
	a.rolledOut(first)
	for _, e := range []struct {
		*env
		ds   *appsv1.DaemonSet
		want int
	}{{a, first, 2}, {b, second, 1}} {
		revisions := e.revisions(e.ds)
		if len(revisions) != e.want {
			t.Errorf("%d revisions in %s, want %d", len(revisions), e.namespace, e.want)
		}
		for _, r := range revisions {
			if !metav1.IsControlledBy(&r, e.ds) {
				t.Errorf("revision %s/%s belongs to %v", r.Namespace, r.Name, metav1.GetControllerOf(&r))
			}
		}
	}
	b.images(second, "app:1")
}
