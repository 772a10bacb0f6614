package fault_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// This file has one pod of a parent refused for good, and looks whether the others come to their end in their own time.
// A timer that is lost beside an error waits for the back-off, which grows to minutes.

// soon is how long the other pods may take: a few seconds that are needed, and some for a busy machine.
const soon = 25 * time.Second

// wearOut wakes a parent that fails so often that its next try is minutes away.
func (l *lab) wearOut(p parent) {
	l.Helper()
	for i := range 25 {
		l.patch(p, fmt.Sprintf(`{"metadata":{"annotations":{"woken":"%d"}}}`, i))
		time.Sleep(poll) //nolint:forbidigo // two that are seen at once are one
	}
	// What was queued before it failed so often comes yet.
	time.Sleep(6 * time.Second) //nolint:forbidigo // nothing tells when
}

func (a *labs) testBeside(t *testing.T) {
	for _, who := range []string{"cairn", "upstream"} {
		if who == "upstream" && !full {
			continue
		}
		if full {
			t.Run(who+", a replicaset under a quota", func(t *testing.T) { t.Parallel(); a.lab(t, who == "upstream").besideQuota() })
		}
		if who == "cairn" && full { // upstream's rollout stands until the node takes its pod
			t.Run(who+", a daemonset that a node refuses", func(t *testing.T) { t.Parallel(); a.lab(t, false).besideNode() })
		}
		t.Run(who+", a statefulset with one ordinal refused", func(t *testing.T) { t.Parallel(); a.lab(t, who == "upstream").besideOrdinal() })
	}
}

// available returns nil if the parent's status has that number there.
func (l *lab) available(p parent, field string, n int64) error { return l.counts(p, field, n, n) }

// atLeast returns nil if the parent's status has that number there, or a larger one.
func (l *lab) atLeast(p parent, field string, n int64) error {
	return l.counts(p, field, n, math.MaxInt64)
}

// counts returns nil if a number of the parent's status is in a range.
func (l *lab) counts(p parent, field string, least, most int64) error {
	status, _, _ := unstructured.NestedMap(l.get(p).Object, "status")
	if got, _, _ := unstructured.NestedInt64(status, field); got < least || got > most {
		return fmt.Errorf("the status of %s is %v, want %s: %d to %d", p.name, status, field, least, most)
	}
	return nil
}

// besideQuota loses pods of a ReplicaSet that may have three of its five. Each time there are three available again
// when the new one has been ready for two seconds.
func (l *lab) besideQuota() {
	p := oneOfEach(5)[1]
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "three"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("3")}},
	}
	quotas := l.client.CoreV1().ResourceQuotas(l.namespace)
	if _, err := quotas.Create(l.Context(), quota, metav1.CreateOptions{}); err != nil {
		l.Fatal(err)
	}
	counted := []byte(`{"status":{"hard":{"pods":"3"},"used":{"pods":"0"}}}`) // the controller may be slower than the pods
	if _, err := quotas.Patch(l.Context(), quota.Name, types.MergePatchType, counted, metav1.PatchOptions{}, "status"); err != nil {
		l.Fatal(err)
	}
	l.create(p, map[string]any{"minReadySeconds": int64(2)})
	three := func() error { return l.atLeast(p, "availableReplicas", 3) }
	l.until("three pods", three)
	l.wearOut(p)
	for range 2 {
		pods := l.pods(p)
		for _, pod := range pods[2:] { // the quota controller may count late, and let a fourth in
			l.lose(pod.Name)
		}
		l.until("they are missed", func() error {
			if three() == nil {
				return fmt.Errorf("there are three")
			}
			return nil
		})
		l.Logf("available again after %s", l.within(soon, "three pods again", three))
	}
}

// besideNode rolls out a DaemonSet while one node takes no pod of its.
func (l *lab) besideNode() {
	p := oneOfEach(1)[0]
	to := "object.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].values[0]"
	l.deny(registrationv1.Create, "pods", "object.metadata.name == 'probe' || has(object.spec.affinity) && "+to+" == 'node-2'",
		func() error { return l.probe(registrationv1.Create, "pods") })
	l.create(p, map[string]any{
		"minReadySeconds": int64(2),
		"updateStrategy":  map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxUnavailable": int64(2)}},
	})
	l.until("the pods of the other nodes", func() error { return l.available(p, "numberAvailable", nodes-1) })
	l.wearOut(p)
	l.image(p, "app:2")
	l.Logf("rolled out in %s", l.within(soon, "the rollout over the other nodes", func() error { return l.ready(p, nodes-1, "app:2") }))
}

// besideOrdinal loses a pod of a StatefulSet of three, of which one is always refused.
func (l *lab) besideOrdinal() {
	p := oneOfEach(3)[2]
	l.deny(registrationv1.Create, "pods", "object.metadata.name == 'probe' || object.metadata.name == 'statefulset-1'",
		func() error { return l.probe(registrationv1.Create, "pods") })
	l.create(p, map[string]any{"minReadySeconds": int64(2), "podManagementPolicy": "Parallel"})
	l.until("the other pods", func() error { return l.available(p, "availableReplicas", 2) })
	l.wearOut(p)
	l.lose("statefulset-2")
	l.until("it is missed", func() error {
		if l.available(p, "availableReplicas", 2) == nil {
			return fmt.Errorf("there are two")
		}
		return nil
	})
	l.Logf("available again after %s", l.within(soon, "two pods again", func() error { return l.available(p, "availableReplicas", 2) }))
}

// lose deletes a pod at once.
func (l *lab) lose(name string) {
	l.Helper()
	must(l, l.client.CoreV1().Pods(l.namespace).Delete(l.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
}
