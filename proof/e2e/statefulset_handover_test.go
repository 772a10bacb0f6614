package e2e

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

// This file hands StatefulSets over between the upstream controller and cairn, idle and in the middle of a rollout, and
// from one set to another of its name.

// TestStatefulSetHandover: neither the way to cairn nor the way back touches a pod or writes a revision.
func TestStatefulSetHandover(t *testing.T) {
	const keep = appsv1.RetainPersistentVolumeClaimRetentionPolicyType
	for name, c := range map[string]struct{ first, second func(*env) func() }{
		"upstream to cairn": {(*env).statefulUpstream, (*env).statefulCairn},
		"cairn to upstream": {(*env).statefulCairn, (*env).statefulUpstream},
	} {
		for state, change := range map[string][]setOption{
			"idle":   {setImage("app:3")},
			"canary": {setImage("app:3"), setPartition(2)},
			"undone": {setImage("app:1")},
		} {
			t.Run(name+", "+state, func(t *testing.T) {
				e := newEnv(t)
				stop := c.first(e)
				set := e.statefulSet("db", setClaims(keep, keep))
				e.create(set)
				e.setRolledOut(set)
				e.editSet(set, setImage("app:2"))
				e.setRolledOut(set)
				e.editSet(set, change...)
				if state == "canary" {
					e.waitForImages(set, "app:2,app:2,app:3")
				} else {
					e.setRolledOut(set)
				}
				e.setSettled(set)
				stop()
				pods, revisions := e.podsOf(set.Namespace, set.Spec.Selector), e.revisionsOf(set.Namespace, set.Spec.Selector)
				status := set.Status
				for _, controller := range []func(*env) func(){c.second, c.first} {
					stop := controller(e)
					e.setSettled(set)
					stop()
					e.sameVersions(name, pods, e.podsOf(set.Namespace, set.Spec.Selector))
					e.onlyStamped(name, revisions, e.revisionsOf(set.Namespace, set.Spec.Selector))
					e.reloadSet(set)
					if s := set.Status; s.CurrentRevision != status.CurrentRevision || s.UpdateRevision != status.UpdateRevision || s.CurrentReplicas != status.CurrentReplicas {
						t.Errorf("status was %+v, is %+v", status, s)
					}
				}
			})
		}
	}
}

func TestStatefulSetHandoverInTheMiddle(t *testing.T) {
	for name, c := range map[string]struct{ first, second func(*env) func() }{
		"upstream to cairn": {(*env).statefulUpstream, (*env).statefulCairn},
		"cairn to upstream": {(*env).statefulCairn, (*env).statefulUpstream},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			stop := c.first(e)
			set := e.statefulSet("db", setReplicas(5), setSlow)
			e.create(set)
			e.setRolledOut(set)
			e.budgetOf(set.Name, set.Namespace, set.Spec.Selector, 5, 4, 5)
			before := e.podsOf(set.Namespace, set.Spec.Selector)
			e.editSet(set, setImage("app:2"))
			e.eventually("wait until two pods are updated", func() error {
				if got := e.setImages(set); !strings.HasSuffix(got, "app:2,app:2") {
					return errorf("%s", got)
				}
				return nil
			})
			stop()
			half := e.podsOf(set.Namespace, set.Spec.Selector)
			if !strings.Contains(e.setImages(set), "app:1") {
				t.Fatal("the rollout was over before the handover")
			}
			c.second(e)
			e.setRolledOut(set)
			e.waitForImages(set, "app:2,app:2,app:2,app:2,app:2")
			for name, pod := range e.podsOf(set.Namespace, set.Spec.Selector) {
				if half[name].UID != pod.UID && len(half[name].Spec.Containers) > 0 && half[name].Spec.Containers[0].Image == "app:2" {
					t.Errorf("pod %s conformed already and was replaced", name)
				}
				if before[name].UID == pod.UID {
					t.Errorf("pod %s was not replaced", name)
				}
			}
			if got := len(e.revisionsOf(set.Namespace, set.Spec.Selector)); got != 2 {
				t.Errorf("%d revisions, want 2", got)
			}
		})
	}
}
