package e2e

// The next apply after an undo leaves exactly its manifest (kubernetes#94698), and the fields of other managers. No
// container or variable of the restored revision stays. The same for client-side and server-side apply.

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	exit "github.com/cairn-dev/cairn/internal/cli/env"
)

// appliers are the commands of kubectl with which the tests apply.
var appliers = map[string][]string{
	"client":  {"apply"},
	"server":  {"apply", "--server-side"},
	"flux":    {"apply", "--server-side", "--force-conflicts", "--field-manager=kustomize-controller"},
	"argo":    {"apply", "--server-side", "--force-conflicts", "--field-manager=argocd-controller"},
	"helm-v4": {"apply", "--server-side", "--field-manager=helm"},
}

// apply applies a manifest of web with a pod spec, and waits for the rollout. web has the name of one of the appliers.
func (a *asking) apply(web *appsv1.Deployment, podSpec string) {
	a.Helper()
	a.applyBy(appliers[web.Name], web, podSpec)
}

func (a *asking) applyBy(command []string, web *appsv1.Deployment, podSpec string) {
	a.Helper()
	file := filepath.Join(a.TempDir(), "web.yaml")
	must(a, os.WriteFile(file, fmt.Appendf(nil, `apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: 1
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: %[2]s
`, web.Name, podSpec), 0o600))
	a.must(a.kubectl(append(slices.Clone(command), "-f", file)...))
	a.deployed(web)
}

func TestApplyAfterUndo(t *testing.T) {
	for name := range appliers {
		t.Run(name, func(t *testing.T) {
			a := &asking{newEnv(t), t.TempDir()}
			a.upstreamOf("replicaset")
			web := a.deployment(name, "app:1", 1)
			apply := func(container, image, variable string) {
				t.Helper()
				a.apply(web, fmt.Sprintf(`{containers: [{name: %s, image: %q, env: [{name: %s, value: "1"}]}]}`, container, image, variable))
			}
			is := func(want string) {
				t.Helper()
				must(t, a.Get(t.Context(), client.ObjectKeyFromObject(web), web))
				var got []string
				for _, c := range web.Spec.Template.Spec.Containers {
					text := c.Name + "=" + c.Image
					for _, v := range c.Env {
						text += "," + v.Name
					}
					got = append(got, text)
				}
				if strings.Join(got, " ") != want {
					t.Fatalf("the containers are %s, want %s", got, want)
				}
			}
			apply("a", "app:1", "OLD")
			apply("b", "app:2", "NEW")
			a.says(exit.OK, "undo --yes deploy/"+name, "rolled back to revision 1", "takes this undo back")
			a.deployed(web)
			is("a=app:1,OLD")
			apply("b", "app:3", "NEW")
			is("b=app:3,NEW")

			// The same within a container, and the manifest of the restored revision changes nothing.
			apply("b", "app:4", "NEWER")
			a.says(exit.OK, "undo --yes deploy/"+name, "rolled back to revision")
			is("b=app:3,NEW")
			before := web.Generation
			apply("b", "app:3", "NEW")
			if web.Generation != before {
				t.Errorf("the manifest of the restored revision makes generation %d of %d", web.Generation, before)
			}
			apply("b", "app:5", "NEWER")
			is("b=app:5,NEWER")
		})
	}
}

// TestOthersKeepTheirFields: an undo brings fields of another manager back, and no later apply removes them. The
// manifest of the restored revision changes nothing. The ports have no names and no protocol.
func TestOthersKeepTheirFields(t *testing.T) {
	for _, name := range []string{"client", "server", "flux"} {
		t.Run(name, func(t *testing.T) {
			a := &asking{newEnv(t), t.TempDir()}
			a.upstreamOf("replicaset")
			web := a.deployment(name, "app:0", 1)
			apply := func(image, ports string) {
				t.Helper()
				a.apply(web, fmt.Sprintf(`{containers: [{name: a, image: %q, ports: [%s]}]}`, image, ports))
			}
			others := func(value string) {
				t.Helper()
				patch := `{"spec":{"template":{"metadata":{"annotations":{"at":"` + value + `"}},"spec":{"containers":[{"name":"a",` +
					`"env":[{"name":"FOO","value":"` + value + `"}],"resources":{"limits":{"memory":"1Gi","cpu":"` + value + `"}}}]}}}}`
				a.must(a.kubectl("patch", "deploy/"+name, "--field-manager=others", "-p", patch))
				a.deployed(web)
			}
			is := func(want string) {
				t.Helper()
				must(t, a.Get(t.Context(), client.ObjectKeyFromObject(web), web))
				c := web.Spec.Template.Spec.Containers[len(web.Spec.Template.Spec.Containers)-1]
				got := c.Image + " at=" + web.Spec.Template.Annotations["at"]
				for _, v := range c.Env {
					got += " " + v.Name + "=" + v.Value
				}
				got += fmt.Sprintf(" cpu=%s memory=%s", c.Resources.Limits.Cpu(), c.Resources.Limits.Memory())
				for _, p := range c.Ports {
					got += fmt.Sprintf(" %d%s", p.ContainerPort, p.Name)
				}
				if got != want {
					t.Fatalf("it is %s, want %s", got, want)
				}
			}
			apply("app:1", "{containerPort: 80, name: http}, {containerPort: 90}")
			others("1")
			number := web.Annotations["deployment.kubernetes.io/revision"]
			apply("app:2", "{containerPort: 80}")
			others("2")
			is("app:2 at=2 FOO=2 cpu=2 memory=1Gi 80")
			a.says(exit.OK, "undo --yes deploy/"+name+" --to-revision "+number, "rolled back to revision "+number)
			const restored = " at=1 FOO=1 cpu=1 memory=1Gi"
			is("app:1" + restored + " 80http 90")
			before := web.Spec.DeepCopy()
			apply("app:1", "{containerPort: 80, name: http}, {containerPort: 90}")
			if !apiequality.Semantic.DeepEqual(&web.Spec, before) {
				t.Errorf("the manifest of the restored revision makes %+v of %+v", &web.Spec, before)
			}
			apply("app:3", "{containerPort: 80}")
			is("app:3" + restored + " 80")

			// After another undo, kubectl applies with --server-side for the first time, and migrates its fields.
			if name == "client" {
				a.says(exit.OK, "undo --yes deploy/"+name, "rolled back to revision")
				is("app:1" + restored + " 80http 90")
				a.applyBy(append(appliers["server"], "--force-conflicts"), web, `{containers: [{name: a, image: "app:4"}]}`)
				is("app:4" + restored)
			}
		})
	}
}

// TestUndoAddsToFields: an undo adds fields to maps and elements of another manager, which the next apply keeps. The
// next apply removes the fields that the undo adds to the manifest's, and sets the API server's defaults again.
func TestUndoAddsToFields(t *testing.T) {
	for _, name := range []string{"client", "flux"} {
		t.Run(name, func(t *testing.T) {
			a := &asking{newEnv(t), t.TempDir()}
			a.upstreamOf("replicaset")
			web := a.deployment(name, "app:0", 1)
			apply := func(image, ofPod, ofContainer, ofProbe string) {
				t.Helper()
				a.apply(web, fmt.Sprintf(`{%s containers: [{name: a, image: %q, %s readinessProbe: {%s exec: {command: [x]}}}]}`,
					ofPod, image, ofContainer, ofProbe))
			}
			others := func(metadata, ofPod, side, variable string) {
				t.Helper()
				a.must(a.kubectl("patch", "deploy/"+name, "--field-manager=others", "-p", `{"spec":{"template":{"metadata":{"annotations":{`+metadata+
					`}},"spec":{"tolerations":[`+ofPod+`],"containers":[{"name":"side","image":"side:1","args":`+side+`},{"name":"a","env":[{"name":"F",`+variable+`}]}]}}}}`))
				a.deployed(web)
			}
			is := func(want string) {
				t.Helper()
				must(t, a.Get(t.Context(), client.ObjectKeyFromObject(web), web))
				pod := web.Spec.Template.Spec
				got := fmt.Sprintf("x=%s y=%s grace=%d tolerations=%d", web.Spec.Template.Annotations["x"], web.Spec.Template.Annotations["y"],
					*pod.TerminationGracePeriodSeconds, len(pod.Tolerations))
				for _, c := range pod.Containers {
					got += fmt.Sprintf(" %s %s %s", c.Name, c.Args, c.ImagePullPolicy)
					slices.SortFunc(c.Env, func(a, b corev1.EnvVar) int { return strings.Compare(a.Name, b.Name) })
					for _, v := range c.Env {
						got += fmt.Sprintf(" %s=%s %t", v.Name, v.Value, v.ValueFrom != nil)
					}
					if c.ReadinessProbe != nil {
						got += fmt.Sprintf(" every %d", c.ReadinessProbe.PeriodSeconds)
					}
				}
				if got != want {
					t.Fatalf("it is\n%s, want\n%s", got, want)
				}
			}
			const one, two = `{"key":"one","operator":"Exists"}`, `{"key":"two","operator":"Exists"}`
			apply("app:1", "terminationGracePeriodSeconds: 5,", "imagePullPolicy: Always,", "periodSeconds: 60,")
			others(`"x":"1","y":"1"`, one+","+two, `["serve"]`, `"value":null,"valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}`)
			number := web.Annotations["deployment.kubernetes.io/revision"]
			apply("app:2", "", `env: [{name: G, value: "g"}],`, "")
			others(`"x":"1","y":null`, one, `null`, `"value":"2","valueFrom":null`)
			is("x=1 y= grace=30 tolerations=1 side [] IfNotPresent a [] IfNotPresent F=2 false G=g false every 10")

			a.must(a.kubectl("rollout", "restart", "deploy/"+name))
			a.deployed(web)
			a.says(exit.OK, "undo --yes deploy/"+name+" --to-revision "+number, "rolled back to revision "+number)
			is("x=1 y=1 grace=5 tolerations=2 side [serve] IfNotPresent a [] Always F= true every 60")
			apply("app:3", "", "", "")
			is("x=1 y=1 grace=30 tolerations=2 side [serve] IfNotPresent a [] IfNotPresent F= true every 10")
		})
	}
}

// TestUndoNamesMissingObjects: an undo warns of each object that the restored pods need and that does not exist.
func TestUndoNamesMissingObjects(t *testing.T) {
	a := &asking{newEnv(t), t.TempDir()}
	a.upstreamOf("replicaset")
	web := a.deployment("client", "app:0", 1)
	for _, args := range [][]string{{"serviceaccount", "old"}, {"configmap", "settings"}, {"configmap", "kept"}} {
		a.must(a.kubectl(append([]string{"create"}, args...)...))
	}
	a.apply(web, `{serviceAccountName: old, containers: [{name: a, image: "app:1", envFrom: [{configMapRef: {name: settings}}, `+
		`{configMapRef: {name: kept}}, {secretRef: {name: absent, optional: true}}]}]}`)
	number := web.Annotations["deployment.kubernetes.io/revision"]
	a.apply(web, `{serviceAccountName: default, containers: [{name: a, image: "app:2"}]}`)
	a.must(a.kubectl("delete", "serviceaccount/old", "configmap/settings"))
	out := a.says(exit.OK, "undo deploy/client --dry-run=server --to-revision "+number,
		"needs serviceaccount/old, which does not exist: no pod of it can be created",
		"needs configmap/settings, which does not exist: pods of it do not start")
	if strings.Contains(out, "needs configmap/kept") || strings.Contains(out, "needs secret/absent") {
		t.Error(out)
	}
}
