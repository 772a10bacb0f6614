package composite

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
)

// This file holds a rollout back, and what tests share that begin with a parent at rest. What else can happen to a
// rollout on the way, the sweeps of proof/fault say, whose subject is composite.

// broken is an image whose pods never get ready.
const broken = "broken:1"

// running returns a parent with so many pods of app:1 that is at rest.
func (l *lab) running(replicas int64, change ...func(*v1alpha1.CompositeController)) (*unstructured.Unstructured, *v1alpha1.CompositeController) {
	l.Helper()
	cc := l.install(l.controller(change...))
	l.cairn(cc)
	set := l.set(setKind, "web", replicas, "app:1")
	l.create(set)
	l.rolledOut(set)
	return set, cc
}

// byImage counts pods by image.
func (l *lab) byImage(set *unstructured.Unstructured) map[string]int {
	l.Helper()
	out := map[string]int{}
	for _, pod := range l.podsOf(set) {
		out[imageOf(pod)]++
	}
	return out
}

func TestPartitionAndPause(t *testing.T) {
	l := newLab(t)
	set, cc := l.running(4, func(cc *v1alpha1.CompositeController) {
		s := cc.Spec.ChildResources[0].UpdateStrategy
		s.Partition, s.MaxUnavailable = new(int32(2)), new(intstr.FromInt32(2))
	})
	l.image(set, "app:2")
	want := func(counts map[string]int) {
		t.Helper()
		l.eventually("reach the partition", func() error {
			l.reload(set)
			if got := l.byImage(set); !maps.Equal(got, counts) {
				return fmt.Errorf("pods: %v, want %v", got, counts)
			}
			return nil
		})
	}
	want(map[string]int{"app:1": 2, "app:2": 2})
	lost := l.podsOf(set)["web-0"] // below the partition: the last in the hook's order
	if err := l.Delete(t.Context(), lost, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	want(map[string]int{"app:1": 2, "app:2": 2})
	l.reload(cc)
	cc.Spec.ChildResources[0].UpdateStrategy.Partition = nil
	if err := l.Update(t.Context(), cc); err != nil {
		t.Fatal(err)
	}
	l.rolledOut(set)
	l.images(set, 4, "app:2")
}

func revisionNames(revisions []v1alpha1.ControllerRevision) string {
	out := make([]string, 0, len(revisions))
	for _, r := range revisions {
		out = append(out, r.Name)
	}
	return strings.Join(out, " ")
}
