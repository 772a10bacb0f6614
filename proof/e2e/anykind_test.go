package e2e

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/cli"
	exit "github.com/cairn-dev/cairn/internal/cli/env"
	"github.com/cairn-dev/cairn/sandbox/install"
)

// This file asks the command line about kinds that no line of ours knows.

// asking is an environment with a command line.
type asking struct {
	*env

	cache string
}

// ask runs a command and returns what it prints, and its exit code.
func (a *asking) ask(command string) (string, int) {
	var out bytes.Buffer
	streams := genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &out}
	args := append(strings.Fields(command), "--kubeconfig", a.sandbox.Kubeconfig(), "--namespace", a.namespace, "--cache-dir", a.cache)
	code := cli.Main(a.Context(), args, streams, "test")
	return out.String(), code
}

func (a *asking) says(code int, command string, texts ...string) string {
	a.Helper()
	out, got := a.ask(command)
	if got != code {
		a.Fatalf("cairn %s ended with %d, want %d\n%s", command, got, code, out)
	}
	for _, text := range texts {
		if !strings.Contains(squeezed(out), squeezed(text)) {
			a.Errorf("cairn %s does not say %q:\n%s", command, text, out)
		}
	}
	return out
}

// TestADeployment: the built-in controller keeps the revisions, as ReplicaSets.
func TestADeployment(t *testing.T) {
	a := &asking{newEnv(t), t.TempDir()}
	a.upstreamOf("replicaset")
	web := a.deployment("web", "app:1", 2)
	a.create(web)
	rolled := func(image string) {
		t.Helper()
		a.deployed(web)
		if got := web.Spec.Template.Spec.Containers[0].Image; got != image {
			t.Errorf("%s is rolled out, want %s", got, image)
		}
	}
	rolled("app:1")
	patch := `{"metadata":{"annotations":{"kubernetes.io/change-cause":"upgrade"}},"spec":{"template":{"spec":{"containers":[{"name":"main","image":"app:2"}]}}}}`
	must(t, a.Patch(t.Context(), web, client.RawPatch("application/strategic-merge-patch+json", []byte(patch))))
	rolled("app:2")
	a.says(exit.OK, "history deploy/web", "deployment.apps/web\n", "1  0", "2  *  2", "upgrade")
	a.says(exit.OK, "history deploy/web --revision 1", "with revision #1", "image: app:1")
	a.says(exit.OK, "diff deploy/web", "--- revision 1", "-      - image: app:1", "+      - image: app:2")
	a.says(exit.OK, "status deploy/web", "2/2 pods updated, 2/2 available")
	a.says(exit.OK, "undo deploy/web --dry-run=server", "(server dry run)", "+      - image: app:1")
	a.says(exit.OK, "undo deploy/web", "rolled back to revision 1")
	rolled("app:1")
	a.says(exit.OK, "history deploy/web", "2  0", "3  *  2")
	a.says(exit.OK, "history deploy/web -o wide", "rollback to 1")
	a.says(exit.OK, "history deploy/web -o custom-columns=REV:.revision,CAUSE:.changeCause", "2  upgrade", "3  <none>")
	if out := a.prints("history deploy/web -o custom-columns=REV:.revision,INTACT:.intact,WHY:.unverified"); strings.Contains(out, "does not show") {
		t.Errorf("the names of a Deployment's ReplicaSets follow from their templates:\n%s", out)
	}
	a.says(exit.OK, "undo deploy/web --to-revision 3", "skipped rollback (current template already matches revision 3)")
	a.says(exit.Failed, "undo deploy/web --to-revision 1", "has no revision 1; it has: 2 (web-")
	if got := fmt.Sprint(web.Spec.Template.Labels); got != "map[app:web]" {
		t.Errorf("the template has the labels %s", got)
	}
	a.plantReplicaSet(web)
	a.says(exit.OK, "history deploy/web -o wide", "web-planted", "unknown")
	a.says(exit.Failed, "undo deploy/web --to-revision 99 --dry-run=server", "+      hostPID: true", "--force")
	a.says(exit.Failed, "undo deploy/web --to-revision 99 --yes", "does not show whether it comes from a controller", "--force")
}

// plantReplicaSet creates revision 99 of a Deployment, with pods that share the process namespace of their node.
func (a *asking) plantReplicaSet(of *appsv1.Deployment) {
	a.Helper()
	labels := map[string]string{"app": "web", appsv1.DefaultDeploymentUniqueLabelKey: "planted"}
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: a.namespace, Name: "web-planted", Labels: labels, Annotations: map[string]string{"deployment.kubernetes.io/revision": "99"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(of, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: *of.Spec.Template.DeepCopy()},
	}
	set.Spec.Template.Labels, set.Spec.Template.Spec.HostPID = labels, true
	a.create(set)
}

const convoyCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: convoys.anykind.example.com}
spec:
  group: anykind.example.com
  scope: Namespaced
  names: {kind: Convoy, plural: convoys, singular: convoy}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              replicas: {type: integer}
              network: {type: object, x-kubernetes-preserve-unknown-fields: true}
              truck:
                type: object
                properties:
                  color: {type: string, default: red}
                  image: {type: string}
`

// TestTheConvention: a controller that copied how StatefulSets keep revisions, with labels, parts and a default of its
// own.
func TestTheConvention(t *testing.T) {
	a := &asking{newEnv(t), t.TempDir()}
	a.eventually("apply", func() error { return install.Apply(t.Context(), a.sandbox.Config(), convoyCRD) })
	convoy := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "anykind.example.com/v1", "kind": "Convoy",
		"metadata": map[string]any{"name": "east", "namespace": a.namespace},
		"spec": map[string]any{
			"replicas": int64(2), "truck": map[string]any{"image": "app:2"}, "network": map[string]any{"shared": true},
		},
	}}
	a.eventually("create the parent as soon as its kind is served", func() error { return a.Create(t.Context(), convoy) })
	t.Cleanup(func() { _ = a.Delete(context.WithoutCancel(t.Context()), convoy) })
	a.says(exit.Failed, "history convoy/east", "convoy.anykind.example.com has no history; to record later edits")

	const label = "convoys.example.com/truck-revision"
	ref := []metav1.OwnerReference{*metav1.NewControllerRef(convoy, convoy.GroupVersionKind())}
	for number, data := range []string{
		`{"spec":{"truck":{"$patch":"replace","image":"app:1"}}}`, // before there was a default, and a network
		`{"spec":{"truck":{"$patch":"replace","image":"app:2","color":"red"},"network":{"shared":true}}}`,
	} {
		hash := fmt.Sprintf("6fbc%d", number+1)
		a.create(&appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: a.namespace, Name: "east-" + hash, OwnerReferences: ref, Labels: map[string]string{label: hash, "convoy": "east"},
			},
			Revision: int64(number + 1), Data: runtime.RawExtension{Raw: []byte(data)},
		})
	}
	for n, hash := range []string{"6fbc1", "6fbc2", "6fbc2"} {
		a.create(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: a.namespace, Name: fmt.Sprintf("east-%d", n), OwnerReferences: ref, Labels: map[string]string{label: hash, "convoy": "east"},
			},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "app:2"}}},
		})
	}

	a.says(exit.OK, "history convoy/east", "convoy.anykind.example.com/east\n", "PODS", "1  1", "east-6fbc1", "2  *  2", "east-6fbc2")
	a.says(exit.OK, "diff convoy/east", "--- revision 1 (east-6fbc1)", "+  network:", "-    image: app:1", "+    image: app:2")
	a.says(exit.Unfinished, "status convoy/east", "is in progress: 2/2 pods updated, 2/2 available, 3 exist")
	a.says(exit.OK, "undo convoy/east", "rolled back to revision 1 (east-6fbc1)")
	must(t, a.Get(t.Context(), client.ObjectKeyFromObject(convoy), convoy))
	if got := fmt.Sprint(convoy.Object["spec"]); got != "map[replicas:2 truck:map[color:red image:app:1]]" {
		t.Errorf("after the undo: %s", got)
	}
	// The default is no difference, says the API server.
	a.says(exit.OK, "history convoy/east", "1  *  1")
	a.says(exit.OK, "undo convoy/east --to-revision 1", "skipped rollback")
}
