package e2e

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/cli"
	"github.com/cairn-dev/cairn/revision"
	"github.com/cairn-dev/cairn/sandbox/install"
)

// This file goes back where that is dangerous: to what somebody planted, from what somebody else keeps, in another API
// version; and looks at what the other verbs say of the same objects on the real API server.

// twice returns a DaemonSet with two revisions, under cairn.
func twice(t *testing.T) (*asking, *appsv1.DaemonSet) {
	t.Helper()
	a := &asking{newEnv(t), t.TempDir()}
	a.cairn()
	ds := a.daemonSet("web", "app:1")
	a.create(ds)
	a.rolledOut(ds)
	a.image(ds, "app:2")
	a.rolledOut(ds)
	return a, ds
}

// TestPlantedRevision: an orphan with the right labels and a wrong name is adopted, as the ControllerRef proposal has
// it, and shown as what it is; nobody goes back to it by accident.
func TestPlantedRevision(t *testing.T) {
	a, ds := twice(t)
	planted := newestOf(a.revisions(ds))
	planted.ObjectMeta = metav1.ObjectMeta{
		Namespace: a.namespace, Name: "web-planted", Labels: map[string]string{"app": "web", appsv1.DefaultDaemonSetUniqueLabelKey: "zzz"},
	}
	planted.Revision = 99
	planted.Data = runtime.RawExtension{Raw: []byte(strings.ReplaceAll(string(planted.Data.Raw), "app:2", "evil:1"))}
	a.create(&planted)
	a.eventually("it is adopted", func() error {
		if n := len(a.revisions(ds)); n != 3 || !metav1.IsControlledBy(a.reloaded(&planted), ds) {
			return fmt.Errorf("%d revisions", n)
		}
		return nil
	})
	a.says(0, "history ds/web -o wide", "web-planted", "no ")
	a.says(1, "undo ds/web --to-revision 99", "does not go with", "--force", "nothing was changed")
	a.says(0, "undo ds/web --dry-run=server", "Revision 99 (web-planted) was passed over", "rolled back to revision 1 ")
	for _, how := range []string{"server", "client"} {
		a.says(1, "undo ds/web --to-revision 99 --dry-run="+how, "+      - image: evil:1", "does not go with", "--force")
		a.says(0, "undo ds/web --to-revision 99 --force --dry-run="+how, "+      - image: evil:1")
	}
	a.says(1, "verify ds/web", "NotIntact")
	a.images(ds, "app:2")
	a.says(0, "undo ds/web --to-revision 99 --force", "rolled back to revision 99 (web-planted)")
	a.rolledOut(ds)
	a.images(ds, "evil:1")
}

// prints runs the command line as it is.
func (a *asking) prints(command string) string {
	a.Helper()
	var out bytes.Buffer
	streams := genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: io.Discard}
	cli.Main(a.Context(), strings.Fields(command), streams, "test")
	return out.String()
}

func (a *asking) reloaded(o *appsv1.ControllerRevision) *appsv1.ControllerRevision {
	a.Helper()
	must(a, a.Get(a.Context(), client.ObjectKeyFromObject(o), o))
	return o
}

// TestApplyUndoApply: the second apply does what the undo said that it would.
func TestApplyUndoApply(t *testing.T) {
	a := &asking{newEnv(t), t.TempDir()}
	a.cairn()
	manifest := func(image string) string {
		return fmt.Sprintf(`
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: web, namespace: %s}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: %q}]}}
`, a.namespace, image)
	}
	ds := a.daemonSet("web", "")
	for n, image := range []string{"app:1", "app:2"} {
		must(t, install.Apply(t.Context(), a.sandbox.Config(), manifest(image)))
		must(t, a.Get(t.Context(), client.ObjectKeyFromObject(ds), ds))
		a.rolledOut(ds)
		a.says(0, "history ds/web", fmt.Sprintf("\n%d          *", n+1))
	}
	a.says(0, "undo ds/web", `server-side apply of "cairn-sandbox": its next apply takes this undo back`)
	a.reload(ds)
	a.rolledOut(ds)
	a.images(ds, "app:1")
	if err := install.Apply(t.Context(), a.sandbox.Config(), manifest("app:2")); err != nil { // by force
		t.Fatal(err)
	}
	a.reload(ds)
	a.rolledOut(ds)
	a.images(ds, "app:2")
}

// TestTheOtherVerbs: a cause, two states, a tree both ways, and nothing wrong.
func TestTheOtherVerbs(t *testing.T) {
	a, ds := twice(t)
	a.says(0, "annotate ds/web because", "revision 2 (web-", "annotated")
	a.says(0, "annotate ds/web because", "has this cause already")
	a.says(0, "history ds/web", "because")
	if out := a.must(a.kubectl("rollout", "history", "ds/web")); !strings.Contains(out, "2         because") {
		t.Errorf("kubectl rollout history:\n%s", out)
	}
	a.says(1, "diff ds/web 1 2 --exit-code", "-      - image: app:1")
	a.says(0, "diff ds/web 2 live --exit-code", "nothing differs")
	a.says(0, "diff ds/web ~1 live", "-      - image: app:1")
	tree := a.says(0, "tree ds/web", "daemonset.apps/web", "controllerrevision.apps/web-", "Done")
	if n := strings.Count(tree, "─ pod/web-"); n != nodes {
		t.Errorf("%d pods of %d:\n%s", n, nodes, tree)
	}
	pod := ""
	for name := range a.pods(ds) {
		pod = name
	}
	a.says(0, "tree pod/"+pod+" --up", "daemonset.apps/web", "└─ pod/"+pod)
	a.says(0, "verify", "nothing is wrong with 2 revisions of 1 object")
	a.image(ds, "app:3") // the cause stays where it is
	a.rolledOut(ds)
	if out := a.says(0, "history ds/web"); strings.Count(out, "because") != 1 {
		t.Errorf("the next revision inherits the cause:\n%s", out)
	}
	at := "--kubeconfig=" + a.sandbox.Kubeconfig() + " --namespace=" + a.namespace + " --cache-dir=" + a.cache
	for command, want := range map[string]string{
		"undo ds/w": "ds/web", "history stateful": "statefulsets/", "undo ds/web --to-revision=": "2\tweb-", "tree -n=test-": a.namespace,
	} {
		if out := a.prints("__complete " + at + " " + command); !strings.Contains(out, want) {
			t.Errorf("%s is completed to %q", command, out)
		}
	}
}

// TestVerifyAndFix: what was restored from a backup, and what an old cluster left, is found and put right.
func TestVerifyAndFix(t *testing.T) {
	a := &asking{newEnv(t), t.TempDir()}
	stop := a.cairn()
	ds := a.daemonSet("web", "app:1")
	a.create(ds)
	a.rolledOut(ds)
	stop()
	again := a.revisions(ds)[0]
	again.ObjectMeta = metav1.ObjectMeta{
		Namespace: a.namespace, Name: "web-0again", Labels: map[string]string{"app": "web", appsv1.DefaultDaemonSetUniqueLabelKey: "0again"}, // before the other, by name
		OwnerReferences: again.OwnerReferences, Annotations: again.Annotations,
	}
	again.Revision = 1
	a.create(&again)
	a.says(1, "verify", "SameContent", "SameNumber")
	a.says(64, "verify --fix", "use --yes to confirm")
	a.says(1, "verify --fix --yes", "delete controllerrevision.apps/", "1 of 2 problems put right")
	a.says(0, "verify", "nothing is wrong with 1 revision of 1 object")
}

// TestRecordedInAnotherVersion: revisions that were recorded in v1 are read, shown and restored in v1, although v2 is
// preferred; and refused with the reason when v1 is served no more.
func TestRecordedInAnotherVersion(t *testing.T) {
	a := &asking{newEnv(t), t.TempDir()}
	group := a.namespace + ".example.com"
	crd := func(servedV1 bool) string {
		return fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {plural: boats, singular: boat, kind: Boat, listKind: BoatList}
  versions:
  - {name: v1, served: %[2]t, storage: false, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {sail: {type: string}}}}}}}
  - {name: v2, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {sail: {type: string}, mast: {type: string}}}}}}}
`, group, servedV1)
	}
	must(t, install.Apply(t.Context(), a.sandbox.Config(), crd(true)))
	boat := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"sail": "red"}}}
	boat.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Boat"})
	boat.SetNamespace(a.namespace)
	boat.SetName("north")
	a.eventually("the kind is served", func() error { return a.Create(t.Context(), boat.DeepCopy()) })
	must(t, a.Get(t.Context(), client.ObjectKeyFromObject(boat), boat))
	a.collected(boat)
	for n, sail := range []string{"white", "red"} {
		data := []byte(`{"spec":{"sail":"` + sail + `"}}`)
		r := &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: a.namespace, Name: "north-" + revision.Hash(data, nil), Labels: map[string]string{"boat": "north"},
				Annotations:     map[string]string{"cairn.dev/field-paths": "spec"},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(boat, boat.GroupVersionKind())},
			},
			Revision: int64(n + 1), Data: runtime.RawExtension{Raw: data},
		}
		a.create(r)
	}
	a.says(0, "history boats."+group+"/north", "\n2          *")
	a.says(0, "undo boats."+group+"/north", "rolled back to revision 1")
	v1 := boat.DeepCopy()
	must(t, a.Get(t.Context(), client.ObjectKeyFromObject(boat), v1))
	if sail, _, _ := unstructured.NestedString(v1.Object, "spec", "sail"); sail != "white" {
		t.Errorf("the sail is %s", sail)
	}
	by := ""
	for _, m := range v1.GetManagedFields() {
		if m.Manager == "cairn" {
			by = m.APIVersion
		}
	}
	if by != group+"/v1" {
		t.Errorf("the undo was written in %s", by)
	}
	must(t, install.Apply(t.Context(), a.sandbox.Config(), crd(false)))
	a.cache = t.TempDir() // discovery that is kept would say that v1 is served
	a.eventually("v1 is served no more", func() error {
		if err := a.Get(t.Context(), client.ObjectKeyFromObject(boat), boat.DeepCopy()); err == nil {
			return errorf("it is")
		}
		groups, err := discovery.NewDiscoveryClientForConfigOrDie(a.sandbox.Config()).ServerGroups() // a moment later
		if err != nil {
			return err
		}
		for _, g := range groups.Groups {
			if g.Name == group && (len(g.Versions) != 1 || g.Versions[0].Version != "v2") {
				return errorf("discovery says %v", g.Versions)
			}
		}
		return nil
	})
	a.says(1, "undo boats."+group+"/north", "recorded in "+group+"/v1, which the API server does not serve any more")
}

// collected waits until the garbage collector watches the kind of o. Until then it asks for each owner in the version
// of the reference, so that what a version owns that is served no more is deleted.
func (a *asking) collected(o *unstructured.Unstructured) {
	a.Helper()
	canary := &unstructured.Unstructured{}
	canary.SetGroupVersionKind(o.GroupVersionKind())
	canary.SetNamespace(a.namespace)
	canary.SetName("canary")
	a.create(canary)
	must(a, a.Delete(a.Context(), canary, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	a.within(2*time.Minute, "the garbage collector watches the kind", func() error {
		err := a.Get(a.Context(), client.ObjectKeyFromObject(canary), canary)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errorf("the canary is there: %v", err)
	})
}
