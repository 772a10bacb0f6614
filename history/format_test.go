package history_test

// The stored format of a revision is a contract with kubectl and with the built-in controllers: the whole
// object as a golden file, and what each part of it is taken from.

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/internal/goldenfile"
)

// annotated is a DaemonSet whose template has another label than its selector asks for, and which carries annotations.
func annotated() *appsv1.DaemonSet {
	ds := agent("agent:1")
	ds.Generation = 7
	ds.Labels = map[string]string{"of": "the parent, not copied"}
	ds.Annotations = map[string]string{
		"kubectl.kubernetes.io/last-applied-configuration": "{}",
		appsv1.DeprecatedTemplateGeneration:                "3",
		"kubernetes.io/change-cause":                       "first",
	}
	ds.Spec.Template.Labels["tier"] = "node"
	ds.Spec.Template.Annotations = map[string]string{"of": "the template, in the data only"}
	return ds
}

func TestFormatOfADaemonSetRevision(t *testing.T) {
	s := newServer(t, annotated())
	_, recorded := mustPass(t, newLog(s), s.parent())
	o := s.stored()[recorded.Update.Name]
	o.UID, o.ResourceVersion = "", "" // the server's
	got, err := yaml.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	goldenfile.Check(t, "daemonset-revision.yaml", string(got))
}

// A StatefulSet's revision carries its hash under a label of its own; everything else is as for DaemonSets.
func TestFormatOfAStatefulSetRevision(t *testing.T) {
	ds := annotated()
	set := &appsv1.StatefulSet{ObjectMeta: ds.ObjectMeta, Spec: appsv1.StatefulSetSpec{
		Selector: ds.Spec.Selector, Template: ds.Spec.Template, ServiceName: "not part of it", Replicas: new(int32(3)),
		VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "nor-this"}}},
	}}
	s := newServer(t, set)
	l := history.New(history.StatefulSet(), history.Options{Client: s, Indexed: true})
	v, err := l.Resolve(t.Context(), set, nil)
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := l.Record(t.Context(), set, v, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	o := s.stored()[recorded.Update.Name]
	o.UID, o.ResourceVersion = "", ""
	got, err := yaml.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	goldenfile.Check(t, "statefulset-revision.yaml", string(got))
}

// The revisions of two kinds are kept apart by their hash labels, also where their pods have the same labels.
func TestKindsDoNotAdoptEachOthersRevisions(t *testing.T) {
	ds := annotated()
	orphan := revisionOf(t, ds, "agent:1", 1)
	orphan.OwnerReferences = nil
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "agent", UID: "set-uid"}, Spec: appsv1.StatefulSetSpec{Selector: ds.Spec.Selector}}
	s := newServer(t, set, orphan)
	entries, err := history.New(history.StatefulSet(), history.Options{Client: s, Indexed: true}).Claim(t.Context(), set, matching)
	if err != nil || len(entries) != 0 {
		t.Errorf("adopted %v, %v", entries, err)
	}
}

// The collision count goes into the hash, and the hash into name and label; into nothing else.
func TestFormatWithACollisionCount(t *testing.T) {
	plain, counted := newServer(t, annotated()), newServer(t, annotated())
	_, first := mustPass(t, newLog(plain), plain.parent())
	ds, count := counted.parent(), int32(4)
	ds.Status.CollisionCount = &count
	_, second := mustPass(t, newLog(counted), ds)
	if first.Update.Hash == second.Update.Hash {
		t.Errorf("both have hash %s", first.Update.Hash)
	}
	if second.CollisionCount == nil || *second.CollisionCount != 4 {
		t.Errorf("collision count %v, although the name was free", second.CollisionCount)
	}
	a, b := plain.stored()[first.Update.Name], counted.stored()[second.Update.Name]
	if a == nil || b == nil {
		t.Fatal("not stored under the name that was returned")
	}
	if b.Name != "agent-"+second.Update.Hash || b.Labels["controller-revision-hash"] != second.Update.Hash {
		t.Errorf("%s has labels %v, want hash %s", b.Name, b.Labels, second.Update.Hash)
	}
	b.Name, b.UID = a.Name, a.UID
	b.Labels["controller-revision-hash"] = a.Labels["controller-revision-hash"]
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("more than the hash differs:\n%s", diff)
	}
}

// Making a revision must not write into the parent that it is made from: parents come from a cache.
func TestRecordLeavesTheParentAlone(t *testing.T) {
	s := newServer(t, annotated())
	ds := s.parent()
	before := ds.DeepCopy()
	mustPass(t, newLog(s), ds)
	if diff := cmp.Diff(before, ds); diff != "" {
		t.Errorf("the parent changed:\n%s", diff)
	}
}

func TestLongNames(t *testing.T) {
	long := agent("agent:1")
	long.Name = strings.Repeat("a", 222) + "." + strings.Repeat("b", 30)
	s := newServer(t, long)
	_, recorded := mustPass(t, newLog(s), long)
	if want := strings.Repeat("a", 222) + "-" + recorded.Update.Hash; recorded.Update.Name != want {
		t.Errorf("named %s, want %s", recorded.Update.Name, want)
	}
	if errs := validation.IsDNS1123Subdomain(recorded.Update.Name); len(errs) > 0 {
		t.Error(errs)
	}
}

func TestFormatOf(t *testing.T) {
	f, ok := history.FormatOf(schema.GroupKind{Group: "apps", Kind: "DaemonSet"})
	if !ok || f.HashLabel != "controller-revision-hash" || f.ChildLabel != "controller-revision-hash" || f.Children[0].Kind != "Pod" {
		t.Errorf("%v, %+v", ok, f)
	}
	if _, ok := f.NewParent().(*appsv1.DaemonSet); !ok {
		t.Errorf("New returns a %T", f.NewParent())
	}
	f, ok = history.FormatOf(schema.GroupKind{Group: "apps", Kind: "StatefulSet"})
	if _, is := f.NewParent().(*appsv1.StatefulSet); !ok || !is || f.HashLabel != "controller.kubernetes.io/hash" || f.ChildLabel != "controller-revision-hash" {
		t.Errorf("%v, %+v", ok, f)
	}
	for _, unknown := range []schema.GroupKind{{Kind: "DaemonSet"}, {Group: "extensions", Kind: "DaemonSet"}, {Group: "apps", Kind: "Deployment"}} {
		if _, ok := history.FormatOf(unknown); ok {
			t.Errorf("%s has a format", unknown)
		}
	}
}

func TestFormatOfAnotherKindsObject(t *testing.T) {
	other := &appsv1.Deployment{}
	for name, f := range map[string]*history.Apps{"DaemonSet": history.DaemonSet(), "StatefulSet": history.StatefulSet()} {
		if _, err := f.Selector(other); err == nil || !strings.Contains(err.Error(), "Deployment is not a "+name) {
			t.Errorf("selector: %v", err)
		}
		if got := f.Labels(other); got != nil {
			t.Errorf("labels: %v", got)
		}
	}
	f := history.DaemonSet()
	ds := agent("agent:1")
	selector, err := f.Selector(ds)
	if err != nil || selector.String() != "app=agent" {
		t.Errorf("selector %v, %v", selector, err)
	}
	ds.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "x", Operator: "Like"}}
	if _, err := f.Selector(ds); err == nil {
		t.Error("a selector that does not parse has no error")
	}
}

// TestOnlyTheTemplateIsRestored: a revision may have more in it than the template. That reaches neither the metadata,
// the status nor the rest of the spec. Kubernetes restored all of it before 1.37.
func TestOnlyTheTemplateIsRestored(t *testing.T) {
	planted := []byte(`{"metadata":{"labels":{"stolen":"yes"},"finalizers":["x/y"]},"status":{"observedGeneration":9},` +
		`"spec":{"replicas":0,"minReadySeconds":7,"template":{"$patch":"replace","spec":{"containers":[{"name":"c","image":"planted"}]}}}}`)
	for f, parent := range map[*history.Apps]client.Object{
		history.DaemonSet():   agent("agent:1"),
		history.StatefulSet(): &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "u"}, Spec: appsv1.StatefulSetSpec{Replicas: new(int32(3))}},
	} {
		s := f.Read(&appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: planted}}).Snapshot
		if s == nil {
			t.Fatalf("%s: it cannot be read", f.Parent.Kind)
		}
		restored, err := s.Restore(parent)
		if err != nil {
			t.Fatal(err)
		}
		want, err := runtime.DefaultUnstructuredConverter.ToUnstructured(parent)
		if err != nil {
			t.Fatal(err)
		}
		template, _, _ := unstructured.NestedMap(restored, "spec", "template")
		if got := fmt.Sprint(template["spec"]); !strings.Contains(got, "image:planted") {
			t.Errorf("%s: the template is %s", f.Parent.Kind, got)
		}
		unstructured.RemoveNestedField(restored, "spec", "template")
		unstructured.RemoveNestedField(want, "spec", "template")
		if diff := cmp.Diff(fmt.Sprint(want), fmt.Sprint(restored)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", f.Parent.Kind, diff)
		}
	}
}
