package main

// This file checks who serves what.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/cairn-dev/cairn/sandbox"
	"github.com/cairn-dev/cairn/sandbox/install"
)

func TestServed(t *testing.T) {
	for want, upstream := range map[string][]string{
		"Served by cairn: cronjob, daemonset, replicaset, replicationcontroller, statefulset":                                     nil,
		"Served by cairn: cronjob, daemonset, replicaset, replicationcontroller\nServed by the upstream controllers: statefulset": {sandbox.StatefulSet},
		"Served by the upstream controllers: cronjob, daemonset, replicaset, replicationcontroller, statefulset":                  sandbox.Kinds(),
	} {
		o := sandbox.Options{Upstream: upstream}
		useManager(&o, "")
		if got := served(o); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		if o.Manager == nil { // composite controllers are nobody else's
			t.Errorf("%v: no manager runs", upstream)
		}
	}
}

// TestEveryKindIsServedByCairn: the examples, and a ReplicationController, get their pods from cairn. Its events say
// why a pod was made, which upstream's do not.
func TestEveryKindIsServedByCairn(t *testing.T) {
	cmd, _ := testCommand(t, "--nodes=2", "--ready-after="+readyAfter.String())
	p := start(t, cmd)
	cfg := p.config(t)
	manifests := []string{"apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n", `
apiVersion: v1
kind: ReplicationController
metadata: {name: old, namespace: shop}
spec:
  template:
    metadata: {labels: {app: old}}
    spec: {containers: [{name: old, image: old}]}
`}
	for _, name := range []string{"daemonset", "statefulset", "deployment"} {
		b, err := os.ReadFile("examples/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		manifests = append(manifests, strings.Replace(string(b), "metadata:\n", "metadata:\n  namespace: shop\n", 1))
	}
	if err := install.Apply(t.Context(), cfg, manifests...); err != nil {
		t.Fatal(err)
	}
	client := clientFor(t, cfg)
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), pollInterval, readyBudget, true, func(ctx context.Context) (bool, error) {
		list, err := client.CoreV1().Events("shop").List(ctx, metav1.ListOptions{})
		last = errors.Join(err, lacks(list.Items))
		return last == nil, nil
	})
	if err != nil {
		t.Error(last)
	}
	takeTime(t, client)
	p.stop(t, syscall.SIGTERM)
}

// readyAfter is what the flag of that name says.
const readyAfter = 1500 * time.Millisecond

// takeTime checks that pods run for as long as --ready-after says before they are Ready, but for one that says
// otherwise.
func takeTime(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	pods := client.CoreV1().Pods("shop")
	for name, annotations := range map[string]map[string]string{"slow": nil, "quick": {sandbox.ReadyAfterAnnotation: "1ms"}} {
		_, err := pods.Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "app"}}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		began, ran := time.Now(), false
		err = wait.PollUntilContextTimeout(t.Context(), pollInterval, readyBudget, true, func(ctx context.Context) (bool, error) {
			pod, err := pods.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			_, ready := podutil.GetPodCondition(&pod.Status, corev1.PodReady)
			ran = ran || pod.Status.Phase == corev1.PodRunning && ready != nil && ready.Status != corev1.ConditionTrue
			return ready != nil && ready.Status == corev1.ConditionTrue, nil
		})
		if err != nil {
			t.Fatalf("pod %s: %v", name, err)
		}
		if took := time.Since(began); name == "slow" && (took < readyAfter || !ran) {
			t.Errorf("it was ready after %s, and was seen to run before: %t", took, ran)
		}
	}
}

// lacks returns an error unless there is an event of cairn's about a pod that was made for a parent of each kind.
func lacks(events []corev1.Event) error {
	kinds := map[string]bool{}
	for _, e := range events {
		if e.Reason == "SuccessfulCreate" && strings.HasPrefix(e.Message, "Created pod: ") && strings.HasSuffix(e.Message, ")") {
			kinds[e.InvolvedObject.Kind] = true
		}
	}
	if len(kinds) != len(sandbox.Kinds())-1 { // a CronJob makes no pods
		return fmt.Errorf("events about pods that cairn made are of %v", kinds)
	}
	return nil
}
