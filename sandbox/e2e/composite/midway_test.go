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

// This file interrupts rollouts: by edits, scaling, losses and a killed manager. The image "broken" is one whose pods never
// get ready, which stops a rollout at its first child.

const broken = "broken:1"

// stopped starts a rollout that stops at its first child.
func (l *lab) stopped(set *unstructured.Unstructured) {
	l.Helper()
	l.image(set, broken)
	l.eventually("see the first broken pod", func() error {
		for _, pod := range l.podsOf(set) {
			if imageOf(pod) == broken {
				return nil
			}
		}
		return fmt.Errorf("none of %v is broken", l.uids(set))
	})
	l.reports(set, "RolloutWaiting", "Pod web-")
}

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

func TestARolloutThatCannotGoOnSaysWhy(t *testing.T) {
	l := newLab(t)
	set, _ := l.running(3)
	l.stopped(set)
	l.reports(set, "RolloutWaiting", `child Pod web-2 failed status check: "Ready" condition status is "False" (want "True")`)
	if got := l.byImage(set); !maps.Equal(got, map[string]int{broken: 1, "app:1": 2}) {
		t.Errorf("%v", got)
	}
	l.event(set, "RolloutWaiting", "web-2")
	l.image(set, "app:2") // fix forward
	l.rolledOut(set)
	l.images(set, 3, "app:2")
}

func TestTakenBackInMidRollout(t *testing.T) {
	l := newLab(t)
	set, _ := l.running(3)
	before := l.uids(set)
	l.stopped(set)
	l.image(set, "app:1")
	l.rolledOut(set)
	l.images(set, 3, "app:1")
	after := l.uids(set)
	for _, kept := range []string{"web-0", "web-1"} {
		if before[kept] != after[kept] {
			t.Errorf("%s was replaced although it was what was asked for", kept)
		}
	}
}

func TestScaledInMidRollout(t *testing.T) {
	l := newLab(t)
	set, _ := l.running(4)
	l.stopped(set)
	l.scale(set, 2) // the broken one is gone
	l.eventually("scale down", func() error {
		if n := len(l.podsOf(set)); n != 2 {
			return fmt.Errorf("%d pods", n)
		}
		return nil
	})
	l.image(set, "app:3")
	l.scale(set, 5)
	l.rolledOut(set)
	l.images(set, 5, "app:3")
}

func TestAPodLostInMidRolloutComesBackAsItWas(t *testing.T) {
	l := newLab(t)
	set, _ := l.running(3)
	l.stopped(set)
	lost := l.podsOf(set)["web-0"]
	if err := l.Delete(t.Context(), lost, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	l.eventually("see web-0 again", func() error {
		pod := l.podsOf(set)["web-0"]
		if pod == nil || pod.GetUID() == lost.GetUID() {
			return fmt.Errorf("it is not there")
		}
		if got := imageOf(pod); got != "app:1" {
			t.Fatalf("it came back as %s", got)
		}
		return nil
	})
	l.image(set, "app:2")
	l.rolledOut(set)
	l.images(set, 3, "app:2")
}

func TestKilledInMidRollout(t *testing.T) {
	l := newLab(t)
	cc := l.install(l.controller())
	stop := l.cairn(cc)
	set := l.set(setKind, "web", 6, "app:1")
	l.create(set)
	l.rolledOut(set)
	l.image(set, "app:2")
	l.eventually("two are updated", func() error {
		if n := l.byImage(set)["app:2"]; n < 2 {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
	stop()
	done := map[string]string{}
	for name, pod := range l.podsOf(set) {
		if imageOf(pod) == "app:2" {
			done[name] = string(pod.GetUID())
		}
	}
	l.cairn(cc)
	l.rolledOut(set)
	l.images(set, 6, "app:2")
	after := l.uids(set)
	for name, uid := range done {
		if after[name] != uid {
			t.Errorf("%s was updated before the kill, and replaced again", name)
		}
	}
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

func TestWhatNoRevisionCoversIsRolledToo(t *testing.T) {
	l := newLab(t)
	l.answer(func(in request) any {
		out := l.pods(in).(m)
		zone, _, _ := unstructured.NestedString(in.Parent.Object, "spec", "zone")
		for _, c := range out["children"].([]any) {
			_ = unstructured.SetNestedField(c.(m), zone, "metadata", "annotations", "zone")
		}
		return out
	})
	set, _ := l.running(4)
	least := l.least(set)
	l.edit(set, func(spec m) { spec["zone"] = "b" })
	l.rolledOut(set)
	for name, pod := range l.podsOf(set) {
		if pod.GetAnnotations()["zone"] != "b" {
			t.Errorf("%s has %v", name, pod.GetAnnotations())
		}
	}
	if n := len(l.revisions(set)); n != 1 {
		t.Errorf("%d revisions", n)
	}
	if n := least(); n < 3 {
		t.Errorf("only %d of 4 were ready at a time", n)
	}
}

func TestOrphanedAndRecreated(t *testing.T) {
	l := newLab(t)
	set, _ := l.running(3)
	l.image(set, "app:2")
	l.rolledOut(set)
	before, names := l.uids(set), revisionNames(l.revisions(set))
	if err := l.Delete(t.Context(), set, client.PropagationPolicy("Orphan")); err != nil {
		t.Fatal(err)
	}
	l.eventually("see it gone", func() error {
		if l.Get(t.Context(), client.ObjectKeyFromObject(set), set) == nil {
			return fmt.Errorf("it is there")
		}
		return nil
	})
	again := l.set(setKind, "web", 3, "app:2")
	l.create(again)
	l.rolledOut(again)
	if after := l.uids(again); !maps.Equal(before, after) {
		t.Errorf("pods were replaced: %v, %v", before, after)
	}
	if got := revisionNames(l.revisions(again)); got != names {
		t.Errorf("revisions are %s, were %s", got, names)
	}
}

func revisionNames(revisions []v1alpha1.ControllerRevision) string {
	out := make([]string, 0, len(revisions))
	for _, r := range revisions {
		out = append(out, r.Name)
	}
	return strings.Join(out, " ")
}
