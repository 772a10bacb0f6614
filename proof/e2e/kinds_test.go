package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	exit "github.com/cairn-dev/cairn/internal/cli/env"
	"github.com/cairn-dev/cairn/proof/compat"
	"github.com/cairn-dev/cairn/sandbox/install"
)

// This file asks the command line about kinds of others, with objects as users write them and revisions as their
// controllers encode them.

// theirs is a cluster with the kinds of others.
func theirs(t *testing.T) *asking {
	t.Helper()
	a := &asking{newEnv(t), t.TempDir()}
	definitions, err := compat.Definitions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range definitions {
		a.eventually("apply a definition", func() error { return install.Apply(t.Context(), a.sandbox.Config(), text) })
	}
	return a
}

// tree reads JSON.
func tree(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := utiljson.Unmarshal([]byte(text), &out); err != nil { // whole numbers as clients read them
		t.Fatalf("%v in %s", err, text)
	}
	return out
}

// template is a pod template as users write it, and filled is what the API server makes of it.
func template(app, image string) string {
	return fmt.Sprintf(`{"metadata":{"labels":{"app":%q}},"spec":{"containers":[{"name":"main","image":%q}]}}`, app, image)
}

func filled(app, image, more string) string {
	return fmt.Sprintf(`{"metadata":{"creationTimestamp":null,"labels":{"app":%q}},"spec":{"containers":[{"name":"main","image":%q,`+
		`"imagePullPolicy":"IfNotPresent","resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],`+
		`"dnsPolicy":"ClusterFirst","restartPolicy":"Always","schedulerName":"default-scheduler","securityContext":{},`+
		`"terminationGracePeriodSeconds":30}%s}`, app, image, more)
}

// made stores an object of theirs as soon as its kind is served.
func (a *asking) made(apiVersion, kind, name, spec string) *unstructured.Unstructured {
	a.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"spec": tree(a.T, spec)}}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetName(name)
	if kind != "SidecarSet" {
		o.SetNamespace(a.namespace)
	}
	a.eventually("create the "+kind, func() error { return a.Create(a.Context(), o) })
	a.Cleanup(func() { _ = a.Delete(context.WithoutCancel(a.Context()), o) })
	return o
}

// reports is what a controller says of the spec as it is.
func (a *asking) reports(o *unstructured.Unstructured, status string) {
	a.Helper()
	o.Object["status"] = tree(a.T, strings.ReplaceAll(status, "$G", fmt.Sprint(o.GetGeneration())))
	must(a, a.Status().Update(a.Context(), o))
}

// keeps stores a revision of o.
func (a *asking) keeps(o *unstructured.Unstructured, number int, data string) (name string) {
	a.Helper()
	r := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: a.namespace, Name: fmt.Sprintf("%s-%s%d", o.GetName(), "6fbc", number),
			Labels:          map[string]string{"controller.kubernetes.io/hash": fmt.Sprintf("6fbc%d", number)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(o, o.GroupVersionKind())},
		},
		Revision: int64(number), Data: runtime.RawExtension{Raw: []byte(data)},
	}
	a.create(r)
	return r.Name
}

// replicates stores a ReplicaSet of a Rollout.
func (a *asking) replicates(o *unstructured.Unstructured, number int, image, injected string) (hash string) {
	a.Helper()
	const label = "rollouts-pod-template-hash"
	hash = fmt.Sprintf("5d9c%d", number)
	var set appsv1.ReplicaSet
	must(a, json.Unmarshal([]byte(`{"spec":{"template":`+template("ro", image)+`}}`), &set))
	if injected != "" {
		must(a, json.Unmarshal([]byte(injected), &set.Spec.Template.Spec))
	}
	set.Namespace, set.Name = a.namespace, o.GetName()+"-"+hash
	set.Annotations = map[string]string{"rollout.argoproj.io/revision": fmt.Sprint(number), "rollout.argoproj.io/desired-replicas": "1"}
	set.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(o, o.GroupVersionKind())}
	set.Spec.Replicas, set.Spec.Template.Labels[label] = new(int32(0)), hash
	set.Labels = set.Spec.Template.Labels
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "ro", label: hash}}
	a.create(&set)
	return hash
}

// spec returns the spec of an object as it is stored.
func (a *asking) spec(o *unstructured.Unstructured) string {
	a.Helper()
	must(a, a.Get(a.Context(), client.ObjectKeyFromObject(o), o))
	b, err := json.Marshal(o.Object["spec"])
	if err != nil {
		a.Fatal(err)
	}
	return string(b)
}

// goesBack asks for the history and for an undo of an object at the second of two revisions, and says what its spec is
// then.
func (a *asking) goesBack(what string, o *unstructured.Unstructured) string {
	a.Helper()
	a.says(exit.OK, "history "+what, "2          *")
	a.says(exit.OK, "undo "+what+" --yes", "rolled back to revision 1")
	return a.spec(o)
}

// TestArgoRollouts: a Rollout's template is filled in by its controller, in ReplicaSets.
func TestArgoRollouts(t *testing.T) {
	a := theirs(t)
	const rollout = "rollout.argoproj.io"
	spec := func(of string) string {
		return `{"replicas":1,"selector":{"matchLabels":{"app":"ro"}},"strategy":{"canary":{}},` + of + `}`
	}
	made := func(name, of string) *unstructured.Unstructured {
		return a.made("argoproj.io/v1alpha1", "Rollout", name, spec(of))
	}
	own := `"template":` + template("ro", "app:2")

	quiet := made("quiet", own)
	a.replicates(quiet, 1, "app:1", "")
	a.replicates(quiet, 2, "app:2", "")
	if got, want := a.goesBack(rollout+"/quiet", quiet), `"image":"app:1"`; !strings.Contains(got, want) || strings.Contains(got, "dnsPolicy") || !strings.Contains(got, "canary") {
		t.Error(got)
	}

	spoken := made("spoken", own)
	const affinity = `{"affinity":{"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"podAffinityTerm":{` +
		`"topologyKey":"kubernetes.io/hostname","labelSelector":{"matchExpressions":[{"key":"rollouts-pod-template-hash","operator":"NotIn","values":["x"]}]}}}]}}}`
	a.replicates(spoken, 1, "app:1", affinity)
	hash := a.replicates(spoken, 2, "app:2", affinity)
	a.reports(spoken, `{"observedGeneration":"$G","currentPodHash":"`+hash+`"}`)
	if got := a.goesBack(rollout+"/spoken", spoken); !strings.Contains(got, `"image":"app:1"`) || strings.Contains(got, "affinity") {
		t.Error(got)
	}

	unknown := made("unknown", own)
	a.replicates(unknown, 1, "app:1", affinity)
	a.replicates(unknown, 2, "app:2", affinity)
	a.reports(unknown, `{"observedGeneration":"$G"}`)
	a.says(exit.OK, "history "+rollout+"/unknown", "which one is the spec's is not known")
	a.says(exit.Failed, "undo "+rollout+"/unknown --yes", "is not known", "--to-revision")

	a.create(&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "source"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "ro"}},
			Template: unmarshalled[appsv1.Deployment](t, `{"spec":{"template":`+template("ro", "app:2")+`}}`).Spec.Template,
		},
	})
	refers := made("refers", `"workloadRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"source"}`)
	a.replicates(refers, 1, "app:1", "")
	a.replicates(refers, 2, "app:2", "")
	a.says(exit.OK, "history "+rollout+"/refers", "2          *")
	a.says(exit.Failed, "undo "+rollout+"/refers --yes", "is that of deployment.apps/source")
	if got := a.spec(refers); strings.Contains(got, "image") {
		t.Error(got)
	}
}

func unmarshalled[T any](t *testing.T, text string) *T {
	t.Helper()
	var out T
	must(t, json.Unmarshal([]byte(text), &out))
	return &out
}

// TestKruise: its controllers fill in what its webhooks would, in revisions; and a SidecarSet's revisions have a
// directive at spec, and hold a part of it.
func TestKruise(t *testing.T) {
	a := theirs(t)
	for kind, version := range map[string]string{"CloneSet": "v1alpha1", "StatefulSet": "v1beta1", "DaemonSet": "v1alpha1"} {
		for _, reports := range []bool{true, false} {
			name := strings.ToLower(kind) + fmt.Sprint(reports)
			o := a.made("apps.kruise.io/"+version, kind, name,
				`{"selector":{"matchLabels":{"app":"k"}},"updateStrategy":{"type":"RollingUpdate"},"template":`+template("k", "app:2")+`}`)
			a.keeps(o, 1, `{"spec":{"template":`+filled("k", "app:1", `,"$patch":"replace"`)+`}}`)
			second := a.keeps(o, 2, `{"spec":{"template":`+filled("k", "app:2", `,"$patch":"replace"`)+`}}`)
			if reports {
				a.reports(o, `{"observedGeneration":$G,"updateRevision":"`+second+`","replicas":0,"readyReplicas":0,"availableReplicas":0,`+
					`"updatedReplicas":0,"updatedReadyReplicas":0,"currentReplicas":0,"currentNumberScheduled":0,"desiredNumberScheduled":0,`+
					`"numberMisscheduled":0,"numberReady":0,"daemonSetHash":"6fbc2","updatedNumberScheduled":0}`)
			}
			if got := a.goesBack(strings.ToLower(kind)+".apps.kruise.io/"+name, o); !strings.Contains(got, `"image":"app:1"`) || !strings.Contains(got, "selector") || strings.Contains(got, "dnsPolicy") {
				t.Error(got)
			}
		}
	}

	side := func(image string, more ...string) string {
		return `"containers":[{"name":"side","image":"` + image + `","podInjectPolicy":"BeforeAppContainer"` + strings.Join(more, "") + `}]`
	}
	o := a.made("apps.kruise.io/v1alpha1", "SidecarSet", "side-"+a.namespace,
		`{`+side("envoy:2")+`,"selector":{"matchLabels":{"app":"k"}},"namespace":"default","updateStrategy":{"type":"RollingUpdate"},`+
			`"injectionStrategy":{"paused":false}}`)
	for n, image := range []string{"envoy:1", "envoy:2"} {
		a.keeps(o, n+1, `{"spec":{"$patch":"replace",`+side(image, `,"resources":{}`)+`,"volumes":null,"initContainers":null,"imagePullSecrets":null}}`)
	}
	got := a.goesBack("sidecarset/"+o.GetName(), o)
	if strings.Contains(got, "resources") {
		t.Errorf("the undo wrote what its controller encodes: %s", got)
	}
	for _, kept := range []string{"envoy:1", "selector", "namespace", "updateStrategy", "injectionStrategy"} {
		if !strings.Contains(got, kept) {
			t.Errorf("%s is gone: %s", kept, got)
		}
	}
}

// TestLeaderWorkerSets: two templates, and a part beside them.
func TestLeaderWorkerSets(t *testing.T) {
	a := theirs(t)
	groups := func(image string, of func(app, image string) string) string {
		return fmt.Sprintf(`"size":2,"restartPolicy":"RecreateGroupOnPodRestart","leaderTemplate":%s,"workerTemplate":%s`, of("lws", image), of("lws", image))
	}
	o := a.made("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "lws",
		`{"replicas":1,"networkConfig":{"subdomainPolicy":"Shared"},"leaderWorkerTemplate":{`+groups("vllm:2", template)+`}}`)
	encoded := func(app, image string) string {
		return fmt.Sprintf(`{"metadata":{"creationTimestamp":null,"labels":{"app":%q}},"spec":{"containers":[{"name":"main","image":%q,"resources":{}}]}}`, app, image)
	}
	for n, image := range []string{"vllm:1", "vllm:2"} {
		a.keeps(o, n+1, `{"spec":{"networkConfig":{"subdomainPolicy":"Shared","$patch":"replace"},"leaderWorkerTemplate":{`+groups(image, encoded)+`,"$patch":"replace"}}}`)
	}
	got := a.goesBack("leaderworkerset/lws", o)
	if strings.Count(got, "vllm:1") != 2 || !strings.Contains(got, `"replicas":1`) {
		t.Error(got)
	}
}

// TestRevisionsInTwoVersions: each is read in the version in which it was recorded, and gone back to in it.
func TestRevisionsInTwoVersions(t *testing.T) {
	a := &asking{newEnv(t), t.TempDir()}
	const group = "trucks.example.com"
	err := install.Apply(t.Context(), a.sandbox.Config(), `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: trucks.`+group+`}
spec:
  group: `+group+`
  scope: Namespaced
  names: {kind: Truck, plural: trucks, singular: truck}
  versions:
  - {name: v1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {image: {type: string}}}}}}}
  - {name: v2, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {image: {type: string}, tyres: {type: string}}}}}}}
`)
	if err != nil {
		t.Fatal(err)
	}
	truck := a.made(group+"/v2", "Truck", "east", `{"image":"a:5","tyres":"wide"}`)
	old := truck.DeepCopy()
	old.SetAPIVersion(group + "/v1")
	for n := range 5 {
		if of := n + 1; of <= 3 {
			a.keeps(old, of, fmt.Sprintf(`{"spec":{"$patch":"replace","image":"a:%d"}}`, of))
		} else {
			a.keeps(truck, of, fmt.Sprintf(`{"spec":{"$patch":"replace","image":"a:%d","tyres":"wide"}}`, of))
		}
	}
	a.says(exit.OK, "history truck/east", "3   ", "5          *")
	a.says(exit.OK, "diff truck/east", "--- revision 4", "-    image: a:4", "+    image: a:5")
	a.says(exit.OK, "undo truck/east --yes", "rolled back to revision 4")
	if got := a.spec(truck); got != `{"image":"a:4","tyres":"wide"}` {
		t.Error(got)
	}
	a.says(exit.OK, "undo truck/east --to-revision 2 --yes", "written in it: what only other versions have may be lost", "rolled back to revision 2")
	if got := a.spec(truck); got != `{"image":"a:2"}` { // the API server prunes what v1 lacks
		t.Error(got)
	}

	// The operator's next release no longer serves v1. The discovery cache on the disk still has it.
	a.must(a.kubectl("patch", "crd", "trucks."+group, "--type=json", "-p",
		`[{"op":"replace","path":"/spec/versions/0/served","value":false}]`))
	a.eventually("v1 is not served", func() error {
		if err := a.Get(t.Context(), client.ObjectKeyFromObject(old), old); err == nil {
			return errorf("it is")
		}
		return nil
	})
	a.says(exit.OK, "history truck/east", "which the API server does not serve any more", "5   ")
	a.says(exit.Failed, "undo truck/east --to-revision 3 --yes", "serve that version again")
	a.says(exit.OK, "undo truck/east --to-revision 4 --yes", "rolled back to revision 4")
}
