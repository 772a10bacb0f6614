package e2e

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

// This file rolls StatefulSets forward and back, and scales them.

func TestStatefulSetRollout(t *testing.T) {
	for name, options := range map[string][]setOption{"OrderedReady": {setSlow}, "Parallel": {setSlow, setParallel}} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.statefulCairn()
			set := e.statefulSet("db", append(options, setReplicas(4))...)
			e.create(set)
			e.setRolledOut(set)
			e.budgetOf(set.Name, set.Namespace, set.Spec.Selector, 4, 3, 4)
			e.editSet(set, setImage("app:2"))
			e.setRolledOut(set)
			e.waitForImages(set, "app:2,app:2,app:2,app:2")
			e.editSet(set, setImage("app:1"))
			e.setRolledOut(set)
			e.waitForImages(set, "app:1,app:1,app:1,app:1")
			if got := e.revisionsOf(set.Namespace, set.Spec.Selector); len(got) != 2 || got[1].Revision != 3 {
				t.Errorf("%d revisions, the newest has number %d", len(got), got[len(got)-1].Revision)
			}
		})
	}
}

func TestStatefulSetCanary(t *testing.T) {
	e := newEnv(t)
	e.statefulCairn()
	set := e.statefulSet("db", setPartition(2))
	e.create(set)
	e.setRolledOut(set)
	e.editSet(set, setImage("app:2"))
	e.waitForImages(set, "app:1,app:1,app:2")
	// A pod below the partition comes back as it was.
	e.deletePod(set, 0)
	e.waitForImages(set, "app:1,app:1,app:2")
	// The way back.
	e.editSet(set, setImage("app:1"))
	e.setRolledOut(set)
	e.waitForImages(set, "app:1,app:1,app:1")
	// And on, all of it.
	e.editSet(set, setImage("app:2"), setPartition(0))
	e.setRolledOut(set)
	e.waitForImages(set, "app:2,app:2,app:2")
}

// A pod that the rollout has not reached and that is lost comes back from the current revision.
func TestStatefulSetLostPod(t *testing.T) {
	e := newEnv(t)
	e.statefulCairn()
	set := e.statefulSet("db")
	e.create(set)
	e.setRolledOut(set)
	e.editSet(set, setImage("broken:1"))
	e.waitForImages(set, "app:1,app:1,broken:1")
	e.deletePod(set, 0)
	e.waitForImages(set, "app:1,app:1,broken:1")
	e.editSet(set, setImage("app:2"))
	e.setRolledOut(set)
	e.waitForImages(set, "app:2,app:2,app:2")
}

// TestStatefulSetRepair: under OrderedReady, neither a fix nor an undo is held up by pods that were never ready (36).
func TestStatefulSetRepair(t *testing.T) {
	for name, c := range map[string]struct{ first, broken, then string }{
		"fixed":           {"app:1", "app:1,app:1,broken:1", "app:2"},
		"undone":          {"app:1", "app:1,app:1,broken:1", "app:1"},
		"never worked":    {"broken:1", "broken:1", "app:2"},
		"all at once":     {"broken:1", "broken:1,broken:1,broken:1", "app:2"},
		"fixed, Parallel": {"app:1", "app:1,app:1,broken:1", "app:2"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.statefulCairn()
			set := e.statefulSet("db", setImage(c.first))
			if strings.Contains(name, "Parallel") || name == "all at once" {
				setParallel(set)
			}
			e.create(set)
			if c.first != "broken:1" {
				e.setRolledOut(set)
				e.editSet(set, setImage("broken:1"))
			}
			e.waitForImages(set, c.broken)
			e.editSet(set, setImage(c.then))
			e.setRolledOut(set)
			e.waitForImages(set, strings.Join([]string{c.then, c.then, c.then}, ","))
		})
	}
}

// Under OrderedReady pods come and go one at a time, each after all before it.
func TestStatefulSetScaling(t *testing.T) {
	e := newEnv(t)
	e.statefulCairn()
	set := e.statefulSet("db", setSlow)
	e.create(set)
	e.setRolledOut(set)
	first := e.revisionsOf(set.Namespace, set.Spec.Selector)
	for _, n := range []int32{5, 1, 3, 0, 2} {
		e.editSet(set, setReplicas(n))
		e.setRolledOut(set)
	}
	e.editSet(set, func(set *appsv1.StatefulSet) { set.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: 3} })
	// Status counts pods wherever they are, so it is no help here.
	e.eventually("wait until the pods have moved", func() error {
		pods := e.podsOf(set.Namespace, set.Spec.Selector)
		three, four := pods["db-3"], pods["db-4"]
		if len(pods) != 2 || !serving(&three) || !serving(&four) {
			return errorf("%d pods, db-3 %s, db-4 %s", len(pods), three.Status.Phase, four.Status.Phase)
		}
		return nil
	})
	if after := e.revisionsOf(set.Namespace, set.Spec.Selector); len(after) != 1 || after[0].ResourceVersion != first[0].ResourceVersion {
		t.Error("scaling wrote a revision")
	}
}

func TestStatefulSetOnDelete(t *testing.T) {
	e := newEnv(t)
	e.statefulCairn()
	set := e.statefulSet("db", setOnDelete)
	e.create(set)
	e.setRolledOut(set)
	e.editSet(set, setImage("app:2"))
	e.setSettled(set)
	if got := e.setImages(set); got != "app:1,app:1,app:1" {
		t.Error(got)
	}
	for i := range 3 {
		e.deletePod(set, i)
		e.waitForImages(set, strings.TrimSuffix(strings.Repeat("app:2,", i+1)+strings.Repeat("app:1,", 2-i), ","))
	}
	e.setRolledOut(set) // which includes that the current revision is promoted (42)
}
