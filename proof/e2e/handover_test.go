package e2e

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	"github.com/cairn-dev/cairn/history"
)

// This file hands DaemonSets over between the upstream controller and cairn, idle and in the middle of a rollout.

// threeRevisions makes a DaemonSet with three revisions under the controller in charge.
func (e *env) threeRevisions(name string) *appsv1.DaemonSet {
	e.Helper()
	ds := e.daemonSet(name, "app:1", func(ds *appsv1.DaemonSet) { ds.Spec.RevisionHistoryLimit = ptr.To[int32](10) })
	e.create(ds)
	e.rolledOut(ds)
	for _, image := range []string{"app:2", "app:3"} {
		e.image(ds, image)
		e.rolledOut(ds)
	}
	if got := len(e.revisions(ds)); got != 3 {
		e.Fatalf("%d revisions, want 3", got)
	}
	return ds
}

// stamped waits until cairn has looked at the log of ds.
func (e *env) stamped(ds *appsv1.DaemonSet) {
	e.Helper()
	e.eventually("wait for cairn's stamp", func() error {
		for _, r := range e.revisions(ds) {
			if r.Annotations[history.ParentUIDAnnotation] == string(ds.UID) {
				return nil
			}
		}
		return fmt.Errorf("no revision carries it")
	})
}

func TestHandoverFromUpstreamAndBackTouchesNothing(t *testing.T) {
	e := newEnv(t)
	stop := e.upstream()
	ds := e.threeRevisions("idle")
	stop()
	pods, revisions := e.pods(ds), e.revisions(ds)

	stop = e.cairn()
	e.stamped(ds)
	e.settled(ds)
	stop()
	e.sameVersions("upstream to cairn", pods, e.pods(ds))
	e.onlyStamped("upstream to cairn", revisions, e.revisions(ds))

	stop = e.upstream()
	e.settled(ds)
	stop()
	e.sameVersions("cairn to upstream", pods, e.pods(ds))
	e.onlyStamped("cairn to upstream", revisions, e.revisions(ds))
}

func TestHandoverToUpstreamOfAHistoryThatCairnWrote(t *testing.T) {
	e := newEnv(t)
	stop := e.cairn()
	ds := e.threeRevisions("native")
	e.image(ds, "app:1") // a rollback, so that an old revision was renumbered
	e.rolledOut(ds)
	stop()
	pods, revisions := e.pods(ds), e.revisions(ds)

	stop = e.upstream()
	e.settled(ds)
	stop()
	e.sameVersions("cairn to upstream", pods, e.pods(ds))
	e.onlyStamped("cairn to upstream", revisions, e.revisions(ds))

	stop = e.cairn()
	e.settled(ds)
	stop()
	e.sameVersions("upstream to cairn", pods, e.pods(ds))
	e.onlyStamped("upstream to cairn", revisions, e.revisions(ds))
}

func TestHandoverInTheMiddleOfARollout(t *testing.T) {
	for _, test := range []struct {
		name          string
		first, second func(*env) func()
	}{
		{"upstream to cairn", (*env).upstream, (*env).cairn},
		{"cairn to upstream", (*env).cairn, (*env).upstream},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := newEnv(t)
			stop := test.first(e)
			ds := e.daemonSet("midway", "app:1", func(ds *appsv1.DaemonSet) {
				ds.Spec.Template.Annotations = map[string]string{"sandbox.cairn.dev/ready-after": "300ms"}
			})
			e.create(ds)
			e.rolledOut(ds)
			e.budget(ds, nodes-1, nodes)
			before := e.pods(ds)

			e.image(ds, "app:2")
			e.eventually("wait until two pods are updated", func() error {
				if n := e.running(ds, "app:2"); n < 2 {
					return fmt.Errorf("%d are", n)
				}
				return nil
			})
			stop()
			half := e.pods(ds)
			if n := e.running(ds, "app:1"); n == 0 {
				t.Fatal("the rollout was over before the handover")
			}

			test.second(e)
			e.rolledOut(ds)
			e.images(ds, "app:2")
			after := e.pods(ds)
			for name, pod := range half {
				if pod.Spec.Containers[0].Image == "app:2" && after[name].UID != pod.UID {
					t.Errorf("pod %s conformed already and was replaced", name)
				}
			}
			for name := range before {
				if after[name].UID == before[name].UID {
					t.Errorf("pod %s was not replaced", name)
				}
			}
			if got := len(e.revisions(ds)); got != 2 {
				t.Errorf("%d revisions, want 2", got)
			}
		})
	}
}

// running counts the pods of ds with that image.
func (e *env) running(ds *appsv1.DaemonSet, image string) (n int) {
	e.Helper()
	for _, pod := range e.pods(ds) {
		if pod.Spec.Containers[0].Image == image {
			n++
		}
	}
	return n
}
