package e2e

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/cairn-dev/cairn/api/cairn/v1alpha1"
	"github.com/cairn-dev/cairn/deploy"
	"github.com/cairn-dev/cairn/internal/manager"
	"github.com/cairn-dev/cairn/sandbox/install"
)

// This file records objects whose own controller keeps no history, by a HistoryPolicy, on the real API server and under
// the rights that "cairn roles" prints.

// recorded is an environment whose API server knows HistoryPolicies.
type recorded struct {
	*asking
}

func newRecorded(t *testing.T) *recorded {
	t.Helper()
	e := newEnv(t, &thePolicies)
	must(t, install.CRDs(t.Context(), e.sandbox.Config()))
	scheme := runtime.NewScheme()
	must(t, clientgoscheme.AddToScheme(scheme))
	must(t, v1alpha1.AddToScheme(scheme))
	cfg := e.sandbox.Config()
	cfg.QPS = -1
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	e.WithWatch = c
	return &recorded{&asking{e, t.TempDir()}}
}

// policy creates a policy, grants what it needs, and deletes both when the test ends.
func (r *recorded) policy(name, spec string) *v1alpha1.HistoryPolicy {
	r.Helper()
	p := &v1alpha1.HistoryPolicy{ObjectMeta: metav1.ObjectMeta{
		Name: r.namespace + "-" + name, Annotations: map[string]string{v1alpha1.ServiceAccountAnnotation: r.namespace + "/" + name},
	}}
	must(r, yaml.UnmarshalStrict([]byte(strings.ReplaceAll(spec, "NAMESPACE", r.namespace)), &p.Spec))
	r.create(p)
	r.Cleanup(func() { _ = r.Delete(context.WithoutCancel(r.Context()), p) })
	roles := r.cli("roles", "historypolicy/"+p.Name)
	must(r, install.Apply(r.Context(), r.sandbox.Config(), roles))
	return p
}

// records runs the recorder until the test ends.
func (r *recorded) records() {
	r.Helper()
	own, err := r.sandbox.ConfigAs(deploy.Namespace, deploy.ServiceAccount)
	if err != nil {
		r.Fatal(err)
	}
	r.cairnWith(func(cfg *rest.Config) {
		cfg.Impersonate, cfg.TLSClientConfig = rest.ImpersonationConfig{}, own.TLSClientConfig // it acts for others by its own right
	}, manager.Options{Controllers: []string{"recorder"}, NamedAccounts: true})
}

// ready waits until the policy is carried out, or is not for that reason.
func (r *recorded) ready(p *v1alpha1.HistoryPolicy, status metav1.ConditionStatus, reason string) {
	r.Helper()
	r.eventually(fmt.Sprintf("policy %s has Ready=%s, %s", p.Name, status, reason), func() error {
		if err := r.Get(r.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		for _, c := range p.Status.Conditions {
			if c.Type == "Ready" && c.Status == status && c.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("its conditions are %+v", p.Status.Conditions)
	})
}

func (r *recorded) configMap(name string, data map[string]string) *corev1.ConfigMap {
	r.Helper()
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: name}, Data: data}
	r.create(o)
	return o
}

// of returns the revisions that an object controls.
func (r *recorded) of(o client.Object) []appsv1.ControllerRevision {
	r.Helper()
	var all appsv1.ControllerRevisionList
	must(r, r.List(r.Context(), &all, client.InNamespace(r.namespace)))
	var out []appsv1.ControllerRevision
	for _, one := range all.Items {
		if metav1.IsControlledBy(&one, o) {
			out = append(out, one)
		}
	}
	return out
}

// holds waits until the newest revision of a ConfigMap holds that and no two are equal, and returns all.
func (r *recorded) holds(o *corev1.ConfigMap, want map[string]string) []appsv1.ControllerRevision {
	r.Helper()
	var found []appsv1.ControllerRevision
	r.eventually(fmt.Sprintf("%v is recorded", want), func() error {
		found = r.of(o)
		if newest := newestOf(found); !maps.Equal(recordedData(r.T, newest), want) {
			return fmt.Errorf("the newest of %d revisions holds %s", len(found), newest.Data.Raw)
		}
		return nil
	})
	contents := map[string]bool{}
	for i := range found {
		if contents[string(found[i].Data.Raw)] {
			r.Errorf("two revisions hold %s", found[i].Data.Raw)
		}
		contents[string(found[i].Data.Raw)] = true
	}
	return found
}

const configMaps = `
resource: {apiVersion: v1, resource: configmaps}
namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAMESPACE}}
selector: {matchExpressions: [{key: unrecorded, operator: DoesNotExist}]}
revisionHistoryLimit: 3
`

// TestRecordedConfigMaps: five edits, each a revision; back, and forth; the limit holds; what is not selected is not
// recorded.
func TestRecordedConfigMaps(t *testing.T) {
	r := newRecorded(t)
	p := r.policy("cm", configMaps)
	r.records()
	r.ready(p, metav1.ConditionTrue, "Running")
	app := r.configMap("app", map[string]string{"color": "1"})
	r.holds(app, app.Data)
	set := func(color string) {
		t.Helper()
		r.must(r.kubectl("patch", "configmap", "app", "--type=merge", "-p", `{"data":{"color":"`+color+`"}}`))
	}
	for _, color := range []string{"2", "3", "4"} {
		set(color)
		r.holds(app, map[string]string{"color": color})
	}
	r.says(0, "history cm/app", "REVISION   CURRENT   AGE", "\n4          *  ")
	r.says(0, "diff cm/app --revision 2 --to-revision 4", "-  color: \"2\"", "+  color: \"4\"")
	r.says(0, "undo cm/app --to-revision 2", "rolled back to revision 2")
	r.holds(app, map[string]string{"color": "2"})
	r.says(0, "history cm/app", "\n5          *  ")
	r.says(0, "undo cm/app", "rolled back to revision 4") // and forth
	r.holds(app, map[string]string{"color": "4"})
	for _, color := range []string{"5", "6", "7"} {
		set(color)
		r.holds(app, map[string]string{"color": color})
	}
	r.eventually("the limit holds", func() error {
		if found := r.of(app); len(found) != 4 {
			return fmt.Errorf("%d revisions", len(found))
		}
		return nil
	})
	if by := newestOf(r.of(app)).Annotations["cairn.dev/recorded-by"]; by != "kubectl-patch" {
		t.Errorf("the edit was made by %q", by)
	}

	// Labels are no part of it, and what is not selected is not recorded.
	before := len(r.of(app))
	r.must(r.kubectl("label", "configmap", "app", "a=b"))
	other := r.configMap("other", map[string]string{"a": "b"})
	r.holds(other, other.Data)
	if after := len(r.of(app)); after != before {
		t.Errorf("a label made %d revisions of %d", after, before)
	}
	r.must(r.kubectl("label", "configmap", "other", "unrecorded=true"))
	r.must(r.kubectl("patch", "configmap", "other", "--type=merge", "-p", `{"data":{"a":"c"}}`))
	r.eventually("the counts are right", func() error {
		if err := r.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		if s := p.Status; s.Skipped != 0 || s.Parents < 1 || s.Revisions < 4 {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
	if n := len(r.of(other)); n != 1 {
		t.Errorf("an edit of what is not selected made a revision: %d", n)
	}
	if out := r.must(r.kubectl("get", "historypolicies")); !strings.Contains(out, "configmaps   True    Running") {
		t.Errorf("kubectl get:\n%s", out)
	}
	// A ConfigMap that is deleted takes its revisions along.
	uid := app.UID
	r.must(r.kubectl("delete", "configmap", "app"))
	r.eventually("the revisions are deleted", func() error {
		app.UID = uid
		if n := len(r.of(app)); n > 0 {
			return fmt.Errorf("%d are left", n)
		}
		return nil
	})
}

// TestPoliciesThatCannotBe: each says why, and works as soon as it can.
func TestPoliciesThatCannotBe(t *testing.T) {
	r := newRecorded(t)
	r.records()
	first := r.policy("a", configMaps)
	r.ready(first, metav1.ConditionTrue, "Running")
	second := r.policy("b", configMaps)
	r.ready(second, metav1.ConditionFalse, "Overlaps")
	must(t, r.Delete(t.Context(), first))
	r.within(2*overlapRetry, "the second policy goes on", func() error {
		return r.reason(second, "Running")
	})

	workload := r.policy("ds", `resource: {apiVersion: apps/v1, resource: daemonsets}`)
	r.ready(workload, metav1.ConditionFalse, "HasHistory")
	nodes := r.policy("nodes", `resource: {apiVersion: v1, resource: nodes}`)
	r.ready(nodes, metav1.ConditionFalse, "NamespaceRequired")
	path := r.policy("path", `
resource: {apiVersion: v1, resource: services}
fieldPaths: [spec]
ignorePaths: [data.x]`)
	r.ready(path, metav1.ConditionFalse, "InvalidSpec")
	missing := r.policy("later", `resource: {apiVersion: `+r.namespace+`.example.com/v1, resource: boats}`)
	r.ready(missing, metav1.ConditionFalse, "ResourceNotServed")

	// A kind that comes later.
	must(t, install.Apply(t.Context(), r.sandbox.Config(), crd(r.namespace+".example.com", "boats", "Boat")))
	r.within(2*overlapRetry, "the kind is recorded", func() error { return r.reason(missing, "Running") })

	// One that goes, and comes back in no namespace before anybody can look: only the end of its watch tells.
	gone := &unstructured.Unstructured{}
	gone.SetName("boats." + r.namespace + ".example.com")
	gone.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	must(t, r.Delete(t.Context(), gone))
	anew := strings.Replace(crd(r.namespace+".example.com", "boats", "Boat"), "scope: Namespaced", "scope: Cluster", 1)
	r.eventually("its CRD is made again", func() error { return install.Apply(t.Context(), r.sandbox.Config(), anew) })
	r.within(2*overlapRetry, "the kind is in no namespace now", func() error { return r.reason(missing, "NamespaceRequired") })
	// The API server cannot delete a definition before it can list its objects, and it retries after five minutes only.
	boats := &unstructured.UnstructuredList{}
	boats.SetGroupVersionKind(schema.GroupVersionKind{Group: r.namespace + ".example.com", Version: "v1", Kind: "BoatList"})
	r.eventually("Boats are listed", func() error { return r.List(t.Context(), boats) })
	must(t, r.Delete(t.Context(), gone))
	r.within(2*overlapRetry, "the kind is gone", func() error { return r.reason(missing, "ResourceNotServed") })

	// What the API server refuses by itself names the field.
	for name, c := range map[string]struct{ spec, says string }{
		"secrets":  {`resource: {apiVersion: v1, resource: secrets}`, "spec.allowSensitive"},
		"metadata": {`{resource: {apiVersion: v1, resource: services}, fieldPaths: [metadata.labels]}`, "spec.fieldPaths"},
		"limit":    {`{resource: {apiVersion: v1, resource: services}, revisionHistoryLimit: -1}`, "spec.revisionHistoryLimit"},
	} {
		p := &v1alpha1.HistoryPolicy{ObjectMeta: metav1.ObjectMeta{Name: r.namespace + "-" + name}}
		must(t, yaml.UnmarshalStrict([]byte(c.spec), &p.Spec))
		if err := r.Create(t.Context(), p); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: the error does not name %s: %v", name, c.says, err)
		}
	}
}

// foreign stores a revision that an object's own controller has made of it. labels may pretend something else.
func (r *recorded) foreign(name string, of client.Object, labels map[string]string) *appsv1.ControllerRevision {
	r.Helper()
	o := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: name, Labels: labels},
		Data:       runtime.RawExtension{Raw: []byte(`{"spec":{}}`)}, Revision: 7,
	}
	if of != nil {
		o.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(of, corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
	}
	r.create(o)
	return o
}

// untouched fails the test if an object is not as it was.
func (r *recorded) untouched(was *appsv1.ControllerRevision) {
	r.Helper()
	now := &appsv1.ControllerRevision{}
	if err := r.Get(r.Context(), client.ObjectKeyFromObject(was), now); err != nil || now.ResourceVersion != was.ResourceVersion {
		r.Errorf("revision %s is not as it was: %v, owners %v", was.Name, err, now.OwnerReferences)
	}
}

// TestOthersHistory: an object whose controller keeps ControllerRevisions is not recorded, and these stay its own. The
// others of its kind are recorded.
func TestOthersHistory(t *testing.T) {
	r := newRecorded(t)
	r.records()
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "kept"}}
	r.create(kept)
	one, two := r.foreign("kept-1", kept, nil), r.foreign("kept-2", kept, map[string]string{"app": "kept"})
	p := r.policy("all", configMaps)
	r.ready(p, metav1.ConditionTrue, "Running")
	o := r.configMap("plain", map[string]string{"a": "b"})
	r.holds(o, o.Data)
	r.eventually("the object is counted as skipped", func() error {
		if err := r.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		for _, s := range p.Status.SkippedExamples {
			if s.Name == "kept" && strings.Contains(s.Message, "keeps its history itself") {
				return nil
			}
		}
		return errorf("status %+v", p.Status)
	})
	kept.Data = map[string]string{"edited": "yes"}
	must(t, r.Update(t.Context(), kept))
	o.Data["a"] = "c" // recorded after the edit of the other
	must(t, r.Update(t.Context(), o))
	r.holds(o, o.Data)
	r.untouched(one)
	r.untouched(two)
	if n := len(r.of(kept)); n != 2 {
		t.Errorf("%d revisions of an object that has a history of its own", n)
	}
}

// TestSecretsAreNotRecorded: a value that looks like one is in no revision from when the policy says so; to rotate it
// is no edit, and an undo keeps the one that there is, or is refused.
func TestSecretsAreNotRecorded(t *testing.T) {
	r := newRecorded(t)
	r.records()
	p := r.policy("all", configMaps+"allowSensitive: true")
	r.ready(p, metav1.ConditionTrue, "Running")
	o := r.configMap("db", map[string]string{"color": "red", "password": "first"})
	r.holds(o, o.Data)
	r.eventually("secrets are left out from now on", func() error {
		if err := r.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		p.Spec.AllowSensitive = false
		return r.Update(t.Context(), p)
	})
	r.eventually("the condition says who may read what", func() error {
		if err := r.reason(p, "Running"); err != nil {
			return err
		}
		const want = "may read what it records of configmaps, but for values that look like secrets"
		if said := p.Status.Conditions[0]; said.ObservedGeneration != p.Generation || !strings.Contains(said.Message, want) {
			return fmt.Errorf("it says %q about generation %d of %d", said.Message, said.ObservedGeneration, p.Generation)
		}
		return nil
	})
	set := func(data string) {
		t.Helper()
		r.must(r.kubectl("patch", "configmap", "db", "--type=merge", "-p", `{"data":`+data+`}`))
	}
	set(`{"password":"second"}`)
	set(`{"color":"blue"}`)
	all := r.holds(o, map[string]string{"color": "blue", "password": "cairn.dev/not-recorded"})
	if len(all) != 2 {
		t.Errorf("%d revisions: that the policy changed, or a password, is no edit", len(all))
	}
	set(`{"password":"third"}`)
	set(`{"color":"green"}`)
	for _, one := range r.holds(o, map[string]string{"color": "green", "password": "cairn.dev/not-recorded"}) {
		if text := string(one.Data.Raw); strings.Contains(text, "second") || strings.Contains(text, "third") {
			t.Errorf("a password is recorded: %s", text)
		}
	}
	r.says(0, "undo configmap/db --to-revision=2 --yes", "is not recorded, and stays as it is: data.password", "rolled back to revision 2")
	if err := r.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil || o.Data["password"] != "third" || o.Data["color"] != "blue" {
		t.Errorf("%v, %v", o.Data, err)
	}
	set(`{"password":null,"color":"black"}`)
	r.holds(o, map[string]string{"color": "black"})
	r.says(1, "undo configmap/db --to-revision=3 --yes", "the value of data.password looks like a secret, so that it was not recorded")
}

// TestDeletedPolicy: with whenDeleted: Delete its revisions go with it, with Retain they stay. Of another controller's,
// and of what an earlier policy of that name was to retain, nothing goes.
func TestDeletedPolicy(t *testing.T) {
	r := newRecorded(t)
	r.records()
	name := map[string]string{v1alpha1.PolicyLabel: r.namespace + "-delete"}
	strange := r.foreign("strange-0", nil, name)
	owner := r.configMap("owner", nil)
	taken := r.foreign("taken-0", owner, name)
	defer r.untouched(strange)
	defer r.untouched(taken)
	for _, when := range []v1alpha1.DeletionPolicy{v1alpha1.Retain, v1alpha1.Delete} {
		p := r.policy(strings.ToLower(string(when)), configMaps+"whenDeleted: "+string(when))
		r.ready(p, metav1.ConditionTrue, "Running")
		o := r.configMap("of-"+strings.ToLower(string(when)), map[string]string{"a": "b"})
		r.holds(o, o.Data)
		must(t, r.Delete(t.Context(), p))
		r.eventually("the policy is gone", func() error {
			if err := r.Get(t.Context(), client.ObjectKeyFromObject(p), p); client.IgnoreNotFound(err) != nil || err == nil {
				return errorf("it is there: %v, %v", p.Finalizers, err)
			}
			return nil
		})
		if n, want := len(r.of(o)), map[v1alpha1.DeletionPolicy]int{v1alpha1.Retain: 1}[when]; n != want {
			t.Errorf("%s: %d revisions are left, want %d", when, n, want)
		}
	}
}

// TestRecordedVersionThatGoes: revisions that were recorded in v1 name their owner in v2, once that is recorded, so
// that the garbage collector finds it when v1 is served no more; and are read as what they are.
func TestRecordedVersionThatGoes(t *testing.T) {
	r := newRecorded(t)
	group := r.namespace + ".example.com"
	v1 := crd(group, "boats", "Boat")
	_, v2, _ := strings.Cut(v1, "  - name: v1")
	must(t, install.Apply(t.Context(), r.sandbox.Config(), strings.Replace(v1, "storage: true", "storage: false", 1)+"  - name: v2"+v2))
	r.records()
	p := r.policy("v1", `resource: {apiVersion: `+group+`/v1, resource: boats}`)
	r.within(2*overlapRetry, "v1 is recorded", func() error { return r.reason(p, "Running") })
	boat := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"sail": "red"}}}
	boat.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v2", Kind: "Boat"})
	boat.SetNamespace(r.namespace)
	boat.SetName("north")
	r.create(boat)
	owners := func(want string) {
		r.eventually("a revision that names its owner in "+want, func() error {
			all := r.of(boat)
			if len(all) != 1 || all[0].OwnerReferences[0].APIVersion != group+"/"+want {
				return fmt.Errorf("there are %+v", all)
			}
			return nil
		})
	}
	owners("v1")
	must(t, r.Delete(t.Context(), p))
	r.policy("v2", `resource: {apiVersion: `+group+`/v2, resource: boats}`)
	owners("v2")
	if was := r.of(boat)[0].Annotations["cairn.dev/recorded-version"]; was != group+"/v1" {
		t.Errorf("it was recorded in %q", was)
	}
}

// overlapRetry is the longest that a policy waits that could not be carried out.
const overlapRetry = 30 * time.Second

func (r *recorded) reason(p *v1alpha1.HistoryPolicy, want string) error {
	if err := r.Get(r.Context(), client.ObjectKeyFromObject(p), p); err != nil {
		return err
	}
	for _, c := range p.Status.Conditions {
		if c.Type == "Ready" && c.Reason == want {
			return nil
		}
	}
	return fmt.Errorf("its conditions are %+v", p.Status.Conditions)
}

// crd is a definition of a kind with a spec that may hold anything.
func crd(group, plural, kind string) string {
	return fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[2]s.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {plural: %[2]s, singular: %[4]s, kind: %[3]s, listKind: %[3]sList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
`, group, plural, kind, strings.ToLower(kind))
}
