package fault_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/cairn-dev/cairn/sandbox"
)

// This file has what Kubernetes' conformance suite asks of clusters and cairn did not keep once: what happens to pods
// that fail, and in which order pods come and go beside unhealthy ones. Upstream's controllers pass the same tests.

// idle is for how long a set must not change that is to halt.
const idle = 5 * time.Second

func TestConformance(t *testing.T) {
	t.Parallel()
	a := newLabs(t)
	for _, who := range []string{"cairn", "upstream"} {
		if who == "upstream" && !full {
			continue
		}
		t.Run(who+" makes another pod for a failed one, of another name", func(t *testing.T) {
			t.Parallel()
			a.lab(t, who == "upstream").failedDaemonPod()
		})
		t.Run(who+" scales in order, and halts beside unhealthy pods", func(t *testing.T) {
			t.Parallel()
			a.lab(t, who == "upstream").scalesInOrder()
		})
	}
}

// failedDaemonPod is "Daemon set: should retry creating failed daemon pods": whoever waits for the failed pod to be
// gone waits for its name.
func (l *lab) failedDaemonPod() {
	p := oneOfEach(1)[0]
	l.create(p, nil)
	l.until("the first pods", func() error { return l.ready(p, nodes, "app:1") })
	before := names(l.pods(p))
	failed := l.pods(p)[0]
	patch := []byte(`{"status":{"phase":"Failed"}}`)
	if _, err := l.client.CoreV1().Pods(l.namespace).Patch(l.Context(), failed.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		l.Fatal(err)
	}
	l.until("a pod on every node", func() error {
		pods := l.pods(p)
		for _, pod := range pods {
			if pod.UID == failed.UID {
				return fmt.Errorf("%s has failed and is still there", pod.Name)
			}
		}
		return l.ready(p, nodes, "app:1")
	})
	after := names(l.pods(p))
	if slices.Contains(after, failed.Name) {
		l.Errorf("the pod that stands in for %s has its name; before %v, after %v", failed.Name, before, after)
	}
}

func names(pods []corev1.Pod) (out []string) {
	for _, pod := range pods {
		out = append(out, pod.Name)
	}
	slices.Sort(out)
	return out
}

// scalesInOrder is "StatefulSet: Scaling should happen in predictable order and halt if any stateful pod is unhealthy".
func (l *lab) scalesInOrder() {
	p := oneOfEach(1)[2]
	l.create(p, nil)
	l.until("the first pod", func() error { return l.ready(p, 1, "app:1") })
	changes := l.follow(p)

	l.healthy(p, false)
	l.patch(p, `{"spec":{"replicas":3}}`)
	l.stays(p, 1, "scaled up beside an unhealthy pod")
	l.healthy(p, true)
	l.until("three pods", func() error { return l.ready(p, 3, "app:1") })

	l.healthy(p, false)
	l.patch(p, `{"spec":{"replicas":0}}`)
	l.stays(p, 3, "scaled down, all pods unhealthy")
	l.healthy(p, true)
	l.until("no pod", func() error {
		if n := len(l.pods(p)); n > 0 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
	want := "+1 +2 -2 -1 -0"
	l.until("the order of the pods", func() error {
		if got := changes(); got != want {
			return fmt.Errorf("the pods came and went as %s, want %s", got, want)
		}
		return nil
	})
}

// healthy makes all pods of the parent ready or unready, and waits until its status says so.
func (l *lab) healthy(p parent, ready bool) {
	l.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"%t"}}}`, sandbox.ReadyAnnotation, ready)
	want := map[string]bool{}
	for _, pod := range l.pods(p) {
		want[pod.Name] = ready
		if _, err := l.client.CoreV1().Pods(l.namespace).Patch(l.Context(), pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			l.Fatal(err)
		}
	}
	if ready {
		return
	}
	l.until("the status says that no pod is ready", func() error {
		got := map[string]bool{}
		for _, pod := range l.pods(p) {
			got[pod.Name] = podutil.IsPodReady(&pod)
		}
		if !maps.Equal(got, want) {
			return fmt.Errorf("the pods are ready: %v", got)
		}
		return l.available(p, p.ready, 0)
	})
}

// stays fails the test if the parent does not keep so many pods for a while.
func (l *lab) stays(p parent, n int, when string) {
	l.Helper()
	for end := time.Now().Add(idle); time.Now().Before(end); {
		if got := len(l.pods(p)); got != n {
			l.Errorf("%s: there are %d pods, want %d", when, got, n)
			return
		}
		time.Sleep(poll) //nolint:forbidigo // between two looks
	}
}

// follow writes down which ordinals come (+) and are told to go (-) from now on.
func (l *lab) follow(p parent) func() string {
	l.Helper()
	ctx, cancel := context.WithCancel(l.Context())
	pods := l.client.CoreV1().Pods(l.namespace)
	list, err := pods.List(ctx, metav1.ListOptions{})
	if err != nil {
		l.Fatal(err)
	}
	w, err := pods.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion, LabelSelector: "app=" + p.name})
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { cancel(); w.Stop() })
	var seen []string
	lost := map[types.UID]bool{}
	return func() string {
		for {
			select {
			case event, ok := <-w.ResultChan():
				pod, isPod := event.Object.(*corev1.Pod)
				if !ok || !isPod {
					l.Fatalf("the watch ended with %v", event)
				}
				ordinal := pod.Name[strings.LastIndex(pod.Name, "-")+1:]
				switch {
				case event.Type == watch.Added:
					seen = append(seen, "+"+ordinal)
				case (pod.DeletionTimestamp != nil || event.Type == watch.Deleted) && !lost[pod.UID]:
					lost[pod.UID] = true
					seen = append(seen, "-"+ordinal)
				}
			default:
				return strings.Join(seen, " ")
			}
		}
	}
}
