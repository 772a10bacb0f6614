package e2e

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	exit "github.com/cairn-dev/cairn/internal/cli/env"
)

// This file asks for the status of objects that other controllers run, as they are on a real API server, and waits for
// them with --watch.

// sooner waits until a command says all of texts, with that exit code.
func (a *asking) sooner(code int, command string, texts ...string) {
	a.Helper()
	a.eventually("cairn "+command, func() error {
		out, got := a.ask(command)
		if got != code {
			return errorf("exit code %d, want %d\n%s", got, code, out)
		}
		for _, text := range texts {
			if !strings.Contains(squeezed(out), squeezed(text)) {
				return errorf("no %q in\n%s", text, out)
			}
		}
		return nil
	})
}

// TestStatusOfADeployment: what keeps a pod is said by the scheduler, the kubelet or the quota, and a rollout is waited
// for.
func TestStatusOfADeployment(t *testing.T) {
	a := &asking{newEnv(t), t.TempDir()}
	a.upstreamOf("replicaset")
	web := a.deployment("web", "app:1", 2)
	a.create(web)
	a.says(exit.OK, "status deploy/web --watch --timeout 1m", "deployment.apps/web rolled out: 2/2 pods updated, 2/2 available")
	a.says(exit.OK, "status deploy/web -o json", `"state": "Done"`, `"readyReplicas": 2`)

	image := func(image string) {
		patch := `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"` + image + `"}]}}}}`
		must(t, a.Patch(t.Context(), web, client.RawPatch("application/strategic-merge-patch+json", []byte(patch))))
	}
	image("app:2")
	out := a.says(exit.OK, "status deploy/web --watch --timeout 1m", "deployment.apps/web is in progress", "deployment.apps/web rolled out: 2/2 pods updated")
	if lines := strings.Split(strings.TrimSpace(out), "\n"); !strings.Contains(lines[len(lines)-1], "rolled out") {
		t.Errorf("the last line is not the last state:\n%s", out)
	}
	image("broken:3")
	a.sooner(exit.Unfinished, "status deploy/web", "is in progress: 1/2 pods updated, 2/2 available, 3 exist", "container main is waiting: ErrImagePull")
	a.says(exit.TimedOut, "status deploy/web --watch --timeout 2s", "timed out after 2s: deployment.apps/web is in progress")
	a.says(exit.OK, "undo deploy/web --wait --timeout 1m", "rolled back to revision 2", "deployment.apps/web rolled out: 2/2")

	nowhere := a.deployment("nowhere", "app:1", 1)
	nowhere.Spec.Template.Spec.NodeSelector = map[string]string{"nobody": "has-it"}
	nowhere.Spec.ProgressDeadlineSeconds, nowhere.Spec.MinReadySeconds = new(int32(2)), 1
	a.create(nowhere)
	a.sooner(exit.Broken, "status deploy/nowhere", "deployment.apps/nowhere has failed", "ProgressDeadlineExceeded", "it is not scheduled: Unschedulable: 0/5 nodes are available")
	a.says(exit.Broken, "status deploy/nowhere --watch", "ProgressDeadlineExceeded")
}

// TestStatusOfWhatIsRefused: no child exists, and the quota is quoted.
func TestStatusOfWhatIsRefused(t *testing.T) {
	a := &asking{newEnv(t), t.TempDir()}
	a.upstreamOf("replicaset")
	a.upstream()
	a.quota("small", 0)
	a.create(a.deployment("web", "app:1", 2))
	const why = `is forbidden: exceeded quota: small, requested: pods=1, used: pods=0, limited: pods=0`
	a.sooner(exit.Unfinished, "status deploy/web", "deployment.apps/web is in progress", "FailedCreate: pods ", why)
	a.create(a.daemonSet("agent", "app:1"))
	a.sooner(exit.Unfinished, "status ds/agent", "daemonset.apps/agent is in progress", "new pods  <none>  FailedCreate: Error creating: pods ", why)
}

// TestStatusOfOtherKinds: a DaemonSet of the upstream controller, a Job, a ConfigMap, a claim.
func TestStatusOfOtherKinds(t *testing.T) {
	a := &asking{newEnv(t), t.TempDir()}
	a.upstream()
	a.create(a.daemonSet("agent", "app:1"))
	a.says(exit.OK, "status ds/agent --watch --timeout 1m", "daemonset.apps/agent rolled out: 5/5 pods updated, 5/5 available")

	job := func(name string, change func(*corev1.PodSpec)) {
		j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: name}}
		j.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "app:1"}}}
		change(&j.Spec.Template.Spec)
		a.create(j)
	}
	job("backup", func(*corev1.PodSpec) {})
	a.says(exit.OK, "status job/backup --watch --timeout 1m", "job.batch/backup is done: Job Completed")
	job("stuck", func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"nobody": "has-it"} })
	a.sooner(exit.Unfinished, "status job/stuck", "job.batch/stuck is in progress", "it is not scheduled: Unschedulable: 0/5 nodes are available")

	a.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "settings"}})
	a.says(exit.OK, "status configmap/settings", "configmap/settings is done: nothing in its status is waited for")
	a.says(exit.OK, "status namespace/"+a.namespace, "is done")
	a.says(exit.Failed, "status configmap/nobody", `configmaps "nobody" not found`)
}
