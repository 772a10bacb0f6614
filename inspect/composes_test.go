package inspect

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"

	"github.com/cairn-dev/cairn/revision"
)

func manifest(t *testing.T, text string) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestLastApplied: the annotation follows the difference that the undo makes, and nothing else.
func TestLastApplied(t *testing.T) {
	const before = `{apiVersion: apps/v1, spec: {replicas: 3, template: {spec: {dnsPolicy: ClusterFirst, containers: [{name: b, image: "b:2", env: [{name: NEW, value: "2"}]}]}}}}`
	const after = `{apiVersion: apps/v1, spec: {replicas: 5, template: {spec: {dnsPolicy: ClusterFirst, containers: [{name: a, image: "a:1", imagePullPolicy: Always}]}}}}`
	for name, c := range map[string]struct{ applied, want string }{
		"follows": {
			`{apiVersion: apps/v1, metadata: {labels: {a: b}}, spec: {replicas: 3, template: {spec: {containers: [{name: b, image: "b:2", env: [{name: NEW, value: "2"}]}]}}}}`,
			`{"apiVersion":"apps/v1","metadata":{"labels":{"a":"b"}},"spec":{"replicas":5,"template":{"spec":{"containers":[{"image":"a:1","imagePullPolicy":"Always","name":"a"}]}}}}`,
		},
		"without a scale": {
			`{apiVersion: apps/v1, spec: {template: {spec: {containers: [{name: b, image: "b:2"}]}}}}`,
			`{"apiVersion":"apps/v1","spec":{"template":{"spec":{"containers":[{"image":"a:1","imagePullPolicy":"Always","name":"a"}]}}}}`,
		},
		"of another version": {`{apiVersion: apps/v1beta1, spec: {}}`, `{"apiVersion":"apps/v1beta1","spec":{}}`},
		"not a manifest":     {``, `{`},
		"none":               {``, ``},
	} {
		live := &unstructured.Unstructured{Object: manifest(t, before)}
		text := c.want
		if c.applied != "" {
			raw, err := yaml.YAMLToJSON([]byte(c.applied))
			if err != nil {
				t.Fatal(err)
			}
			text = string(raw)
		}
		if text != "" {
			live.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: text})
		}
		restored := manifest(t, after)
		restored["metadata"] = live.Object["metadata"]
		got, warning, err := lastApplied(live, appsv1.SchemeGroupVersion, restored, revision.Path{"spec", "replicas"})
		if err != nil || warning != "" || strings.TrimSuffix(got, "\n") != c.want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

// TestLastAppliedTooLong: an undo that restores more than the annotation can hold leaves the annotation unchanged, and
// warns.
func TestLastAppliedTooLong(t *testing.T) {
	const text = `{"apiVersion":"a/v1","spec":{"x":"1"}}`
	live := &unstructured.Unstructured{Object: manifest(t, `{apiVersion: a/v1, spec: {x: "1"}}`)}
	live.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: text})
	restored := map[string]any{"apiVersion": "a/v1", "spec": map[string]any{"x": "2", "y": strings.Repeat("y", 300_000)}}
	got, warning, err := lastApplied(live, schema.GroupVersion{Group: "a", Version: "v1"}, restored, nil)
	if err != nil || got != text || !strings.Contains(warning, "is unchanged") {
		t.Errorf("%.80s, %s, %v", got, warning, err)
	}
}

// TestLastAppliedOfATypedObject: a typed object has no apiVersion.
func TestLastAppliedOfATypedObject(t *testing.T) {
	live := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{ServiceName: "b"}}
	live.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: `{"apiVersion":"apps/v1","spec":{"serviceName":"b"}}`}
	got, _, err := lastApplied(live, appsv1.SchemeGroupVersion, map[string]any{"spec": map[string]any{"serviceName": "a"}}, nil)
	if err != nil || got != `{"apiVersion":"apps/v1","spec":{"serviceName":"a"}}`+"\n" {
		t.Errorf("%s, %v", got, err)
	}
}

// TestLastAppliedWithoutRestarts: a restart that the undo brings back belongs to no manifest, so no apply removes it.
func TestLastAppliedWithoutRestarts(t *testing.T) {
	for annotations, want := range map[string]string{
		`{kubectl.kubernetes.io/restartedAt: now}`:       `{"spec":{"x":1}}`,
		`{kubectl.kubernetes.io/restartedAt: now, a: b}`: `{"metadata":{"annotations":{"a":"b"}},"spec":{"x":1}}`,
	} {
		const applied = `{"apiVersion":"apps/v1","spec":{"template":{"spec":{"x":1}}}}`
		live := &unstructured.Unstructured{Object: manifest(t, `{apiVersion: apps/v1, spec: {template: {spec: {x: 1}}}}`)}
		live.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: applied})
		restored := manifest(t, `{apiVersion: apps/v1, spec: {template: {metadata: {annotations: `+annotations+`}, spec: {x: 1}}}}`)
		got, _, err := lastApplied(live, appsv1.SchemeGroupVersion, restored, nil)
		if err != nil || got != `{"apiVersion":"apps/v1","spec":{"template":`+want+"}}\n" {
			t.Errorf("%s, %v", got, err)
		}
		if _, has, _ := unstructured.NestedFieldNoCopy(restored, restart...); !has {
			t.Error("the restored state is changed")
		}
	}
}

// TestOthersOf: an annotation of client-side apply belongs to who wrote it, under whatever name.
func TestOthersOf(t *testing.T) {
	entry := func(manager, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetManagedFields([]metav1.ManagedFieldsEntry{
		entry("argocd", `{"f:metadata":{"f:annotations":{"f:kubectl.kubernetes.io/last-applied-configuration":{}}},"f:spec":{"f:a":{}}}`),
		entry(clientSide, `{"f:spec":{"f:b":{}}}`), entry(FieldOwner, `{"f:spec":{"f:c":{}}}`), entry("vpa", `{"f:spec":{"f:d":{}}}`),
	})
	got, err := othersOf(o)
	if err != nil {
		t.Fatal(err)
	}
	if got.Size() != 1 || !got.Has(fieldpath.MakePathOrDie("spec", "d")) {
		t.Error(got)
	}
}

// TestHandedOver: fields that an undo has written go back to their owners, and new fields to the owners of the fields
// around them. Its own annotations, a restart and a scale without owner stay.
func TestHandedOver(t *testing.T) {
	entry := func(manager, operation, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationType(operation), APIVersion: "apps/v1", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	before := []metav1.ManagedFieldsEntry{
		entry("flux", "Apply", `{"f:spec":{"f:image":{}}}`),
		entry("vpa", "Update", `{"f:spec":{"f:cpu":{},"f:mem":{}}}`),
		entry("set", "Update", `{"f:spec":{"f:env":{}}}`),
		entry("inject", "Update", `{"f:spec":{"f:c":{"k:{\"name\":\"side\"}":{".":{},"f:name":{}}}}}`),
		entry("kubectl", "Update", `{"f:spec":{"f:replicas":{}}}`),
	}
	before[4].Subresource = "scale"
	ours := entry(FieldOwner, "Update",
		`{"f:metadata":{"f:annotations":{"f:cairn.dev/rolled-back":{}}},`+
			`"f:spec":{"f:c":{"k:{\"name\":\"side\"}":{"f:args":{}}},"f:cpu":{},"f:env":{},"f:image":{},"f:new":{},"f:replicas":{},"f:size":{},`+
			`"f:template":{"f:metadata":{"f:annotations":{"f:kubectl.kubernetes.io/restartedAt":{}}}}}}`)
	after := []metav1.ManagedFieldsEntry{entry("flux", "Apply", `{"f:spec":{}}`), entry("vpa", "Update", `{"f:spec":{"f:mem":{}}}`), ours}
	got, err := handedOver(before, after, before[0], revision.Path{"spec", "size"})
	if err != nil {
		t.Fatal(err)
	}
	var text []string
	for _, e := range got {
		text = append(text, e.Manager+" "+e.FieldsV1.GetRawString())
	}
	const want = `flux {"f:spec":{".":{},"f:image":{},"f:new":{}}}
vpa {"f:spec":{"f:cpu":{},"f:mem":{}}}
set {"f:spec":{"f:env":{}}}
inject {"f:spec":{"f:c":{"k:{\"name\":\"side\"}":{"f:args":{}}}}}
kubectl {"f:spec":{"f:replicas":{}}}
` + FieldOwner + ` {"f:metadata":{"f:annotations":{"f:cairn.dev/rolled-back":{}}},` +
		`"f:spec":{"f:size":{},"f:template":{"f:metadata":{"f:annotations":{"f:kubectl.kubernetes.io/restartedAt":{}}}}}}`
	if strings.Join(text, "\n") != want {
		t.Errorf("%s\nwant\n%s", strings.Join(text, "\n"), want)
	}
	if got, err := handedOver(before, after[:2], before[0], nil); got != nil || err != nil {
		t.Errorf("an undo that owns nothing: %v, %v", got, err)
	}
	other := before[0]
	other.APIVersion = "apps/v2"
	if _, err := handedOver([]metav1.ManagedFieldsEntry{other}, after, before[0], nil); err == nil {
		t.Error("fields of two versions are compared")
	}
}

// TestHandedOverToClientSideApply: the annotation goes back to its owner with the fields, as kubectl migrates the
// fields of that owner.
func TestHandedOverToClientSideApply(t *testing.T) {
	const annotation = `"f:metadata":{"f:annotations":{"f:kubectl.kubernetes.io/last-applied-configuration":{}}}`
	entry := func(manager, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "apps/v1", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	live := &unstructured.Unstructured{Object: map[string]any{}}
	live.SetManagedFields([]metav1.ManagedFieldsEntry{
		entry("others", `{"f:spec":{"f:env":{}}}`), entry(clientSide, `{`+annotation+`,"f:spec":{"f:image":{}}}`),
	})
	applier := applierOf(live, nil)
	if applier == nil || applier.Manager != clientSide {
		t.Fatalf("applied by %v", applier)
	}
	after := owners{
		entry("others", `{"f:spec":{"f:env":{}}}`),
		entry(FieldOwner, `{`+annotation+`,"f:spec":{"f:image":{},"f:ports":{}}}`),
	}
	got, err := handedOver(live.GetManagedFields(), after, *applier, nil)
	if err != nil || len(got) != 2 || got[1].FieldsV1.GetRawString() != `{`+annotation+`,"f:spec":{"f:image":{},"f:ports":{}}}` {
		t.Errorf("%v, %v", got, err)
	}
	live.SetManagedFields(after) // an earlier release left the annotation with itself
	if applier := applierOf(live, nil); applier != nil {
		t.Errorf("applied by %v", applier)
	}
}
