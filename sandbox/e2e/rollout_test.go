package e2e

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file watches rollouts event by event.

func slowly(ds *appsv1.DaemonSet) {
	ds.Spec.Template.Annotations = map[string]string{"sandbox.cairn.dev/ready-after": "150ms"}
}

func rolling(maxUnavailable, maxSurge int) func(*appsv1.DaemonSet) {
	return func(ds *appsv1.DaemonSet) {
		ds.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{
			Type: appsv1.RollingUpdateDaemonSetStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDaemonSet{
				MaxUnavailable: new(intstr.FromInt(maxUnavailable)), MaxSurge: new(intstr.FromInt(maxSurge)),
			},
		}
	}
}

func TestARolloutKeepsItsBudget(t *testing.T) {
	for _, test := range []struct {
		name               string
		unavailable, surge int
	}{{"one unavailable", 1, 0}, {"two unavailable", 2, 0}, {"one surge", 0, 1}, {"three surge", 0, 3}} {
		t.Run(test.name, func(t *testing.T) {
			e := newEnv(t)
			e.cairn()
			ds := e.daemonSet("steady", "app:1", slowly, rolling(test.unavailable, test.surge))
			e.create(ds)
			e.rolledOut(ds)
			e.budget(ds, nodes-test.unavailable, nodes+test.surge)
			e.image(ds, "app:2")
			e.rolledOut(ds)
			e.images(ds, "app:2")
			e.image(ds, "app:1")
			e.rolledOut(ds)
			e.images(ds, "app:1")
		})
	}
}

func TestABrokenRolloutStopsAndCanBeRepaired(t *testing.T) {
	e := newEnv(t)
	e.cairn()
	ds := e.daemonSet("mended", "app:1")
	e.create(ds)
	e.rolledOut(ds)
	e.budget(ds, nodes-1, nodes)
	e.image(ds, "broken:1")
	e.eventually("wait until the rollout waits for the first broken pod", func() error {
		e.reload(ds)
		if n := e.running(ds, "broken:1"); n != 1 {
			return errorf("%d pods of the broken revision", n)
		}
		for _, c := range ds.Status.Conditions {
			if c.Type == "Updated" && c.Reason == "RolloutWaiting" && ds.Status.ObservedGeneration == ds.Generation &&
				ds.Status.UpdatedNumberScheduled == 1 {
				return nil
			}
		}
		return errorf("status %+v", ds.Status)
	})
	e.image(ds, "app:2")
	e.rolledOut(ds)
	e.images(ds, "app:2")
}

func TestGoingBackInTheMiddleTouchesOnlyWhatMoved(t *testing.T) {
	e := newEnv(t)
	e.cairn()
	ds := e.daemonSet("undecided", "app:1", slowly)
	e.create(ds)
	e.rolledOut(ds)
	e.budget(ds, nodes-1, nodes)
	first := e.revisions(ds)[0]

	e.image(ds, "app:2")
	e.eventually("wait until two pods are updated", func() error {
		if n := e.running(ds, "app:2"); n < 2 {
			return errorf("%d are", n)
		}
		return nil
	})
	e.image(ds, "app:1")
	untouched := map[string]corev1.Pod{}
	for name, pod := range e.pods(ds) {
		if pod.Spec.Containers[0].Image == "app:1" {
			untouched[name] = pod
		}
	}
	e.rolledOut(ds)
	e.images(ds, "app:1")
	after := e.pods(ds)
	kept := 0
	for name, pod := range untouched {
		if after[name].UID == pod.UID {
			kept++
		}
	}
	// One that was in the middle of being replaced when the edit came is gone with right.
	if kept < len(untouched)-1 || kept == 0 {
		t.Errorf("%d of %d pods that still conformed were kept", kept, len(untouched))
	}
	revisions := e.revisions(ds)
	if last := revisions[len(revisions)-1]; last.UID != first.UID || last.Revision != 3 {
		t.Errorf("the newest revision is %s with number %d, want %s with 3", last.Name, last.Revision, first.Name)
	}
}

func TestOnDeleteReplacesOnlyWhatIsDeleted(t *testing.T) {
	e := newEnv(t)
	e.cairn()
	ds := e.daemonSet("manual", "app:1", func(ds *appsv1.DaemonSet) {
		ds.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}
	})
	e.create(ds)
	e.rolledOut(ds)
	e.image(ds, "app:2")
	e.eventually("wait until the edit is observed", func() error {
		if e.reload(ds); ds.Status.ObservedGeneration != ds.Generation {
			return errorf("observed %d of %d", ds.Status.ObservedGeneration, ds.Generation)
		}
		return nil
	})
	if n := e.running(ds, "app:1"); n != nodes {
		t.Errorf("%d pods of the old revision, want %d", n, nodes)
	}
	for _, pod := range e.pods(ds) {
		if err := e.Delete(t.Context(), &pod); err != nil {
			t.Fatal(err)
		}
		break
	}
	e.eventually("wait for the one that was deleted", func() error {
		if n := e.running(ds, "app:2"); n != 1 {
			return errorf("%d pods of the new revision", n)
		}
		if len(e.pods(ds)) != nodes {
			return errorf("%d pods", len(e.pods(ds)))
		}
		return nil
	})
}

func TestScalingNodesMakesNoRevision(t *testing.T) {
	e := newEnv(t)
	e.cairn()
	ds := e.daemonSet("wide", "app:1")
	e.create(ds)
	e.rolledOut(ds)
	before := e.revisions(ds)
	t.Cleanup(func() {
		// The test's own context is over by now.
		if err := e.sandbox.ScaleNodes(context.Background(), nodes); err != nil {
			t.Error(err)
		}
	})
	for _, n := range []int{nodes + 3, nodes - 2, nodes} {
		if err := e.sandbox.ScaleNodes(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		e.eventually("wait for a pod on every node", func() error {
			e.reload(ds)
			if ready := e.ready(ds); ready != n || ds.Status.DesiredNumberScheduled != int32(n) {
				return errorf("%d of %d ready, status %+v", ready, n, ds.Status)
			}
			return nil
		})
	}
	e.onlyStamped("scaling", before, e.revisions(ds))
	if after := e.revisions(ds); after[0].ResourceVersion != before[0].ResourceVersion {
		t.Error("scaling wrote a revision")
	}
}

func (e *env) ready(ds *appsv1.DaemonSet) (n int) {
	for _, pod := range e.pods(ds) {
		if serving(&pod) {
			n++
		}
	}
	return n
}

func TestAFailedPodIsReplacedWithAPause(t *testing.T) {
	e := newEnv(t)
	e.cairn()
	ds := e.daemonSet("fragile", "app:1")
	e.create(ds)
	e.rolledOut(ds)
	var victim corev1.Pod
	for _, victim = range e.pods(ds) {
		break
	}
	before := victim.DeepCopy()
	victim.Annotations = map[string]string{"sandbox.cairn.dev/phase": "Failed"}
	if err := e.Patch(t.Context(), &victim, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	e.eventually("wait for its successor", func() error {
		for _, pod := range e.pods(ds) {
			if pod.Spec.NodeName == before.Spec.NodeName && pod.UID != before.UID && serving(&pod) {
				return nil
			}
		}
		return errorf("node %s has none", before.Spec.NodeName)
	})
	e.rolledOut(ds)
}
