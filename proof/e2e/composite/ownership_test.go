package composite

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
)

// TestALabelTakenOff: the pod is released and goes on running, and the name that it has is said to be in the way. With
// Metacontroller the set is one short with Updated=True.
func TestALabelTakenOff(t *testing.T) {
	l := newLab(t)
	set, _ := l.running(2)
	pod := l.podsOf(set)["web-1"]
	l.patch(pod, `{"metadata":{"labels":{"app":"debug"}}}`)
	l.reports(set, "ChildExists", "Pod web-1")
	l.reload(pod)
	if metav1.GetControllerOf(pod) != nil || pod.GetDeletionTimestamp() != nil {
		t.Errorf("it was not released: %v", pod.GetOwnerReferences())
	}
	l.patch(pod, fmt.Sprintf(`{"metadata":{"labels":{"app":%q}}}`, l.namespace+"-web"))
	l.rolledOut(set)
	if now := l.podsOf(set)["web-1"]; now == nil || now.GetUID() != pod.GetUID() {
		t.Errorf("it was not adopted again: %v", now)
	}
}

func (l *lab) patch(o client.Object, body string) {
	l.Helper()
	must(l, l.Patch(l.Context(), o, client.RawPatch(types.MergePatchType, []byte(body))))
}

// TestBuiltInParents: Namespaces have a status of their own, which stays.
func TestBuiltInParents(t *testing.T) {
	l := newLab(t)
	l.answer(func(in request) any {
		return m{"status": m{}, "children": []any{m{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": m{"name": "welcome", "namespace": in.Parent.GetName()},
			"data": m{"to": in.Parent.GetName()},
		}}}
	})
	cc := l.install(l.controller(func(cc *v1alpha1.CompositeController) {
		cc.Spec.ParentResource.ResourceRule = v1alpha1.ResourceRule{APIVersion: "v1", Resource: "namespaces"}
		cc.Spec.ParentResource.RevisionHistory = nil
		cc.Spec.GenerateSelector = new(true)
		cc.Spec.ChildResources = []v1alpha1.ChildResource{{
			ResourceRule:   v1alpha1.ResourceRule{APIVersion: "v1", Resource: "configmaps"},
			UpdateStrategy: &v1alpha1.ChildUpdateStrategy{Method: v1alpha1.ChildUpdateInPlace},
		}}
	}))
	l.cairn(cc)
	namespace := &unstructured.Unstructured{}
	namespace.SetGroupVersionKind(setKind.GroupKind().WithVersion("v1"))
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName(l.namespace)
	l.patch(namespace, fmt.Sprintf(`{"metadata":{"labels":{"lab":%q}}}`, l.namespace))
	welcome := &unstructured.Unstructured{}
	welcome.SetAPIVersion("v1")
	welcome.SetKind("ConfigMap")
	welcome.SetNamespace(l.namespace)
	welcome.SetName("welcome")
	l.eventually("be welcomed", func() error { return l.Get(t.Context(), client.ObjectKeyFromObject(welcome), welcome) })
	l.patch(welcome, `{"data":{"to":"nobody"}}`)
	l.eventually("be welcomed again", func() error {
		l.reload(welcome)
		if to, _, _ := unstructured.NestedString(welcome.Object, "data", "to"); to != l.namespace {
			return fmt.Errorf("welcome to %s", to)
		}
		return nil
	})
	l.reload(namespace)
	if phase, _, _ := unstructured.NestedString(namespace.Object, "status", "phase"); phase != "Active" {
		t.Errorf("its status is %v", namespace.Object["status"])
	}
}

// TestResync: the controller calls the hook again after the period of its spec. TestResyncAfter has the period of an
// answer.
func TestResync(t *testing.T) {
	l := newLab(t)
	l.running(1, func(cc *v1alpha1.CompositeController) { cc.Spec.ResyncPeriodSeconds = new(int32(1)) })
	before := l.calls.Load()
	l.eventually("be asked again", func() error {
		if n := l.calls.Load() - before; n < 3 {
			return fmt.Errorf("asked %d times", n)
		}
		return nil
	})
}

// TestOrphans: one that the hook wants is adopted as it is; one that it does not want is left alone, although the
// selector matches it. Metacontroller adopts and deletes it.
func TestOrphans(t *testing.T) {
	l := newLab(t)
	cc := l.install(l.controller())
	set := l.set(setKind, "web", 3, "app:1")
	orphan := func(name string) *unstructured.Unstructured {
		pod := &unstructured.Unstructured{Object: l.pod(request{Parent: set}, name)}
		l.create(pod)
		return pod
	}
	wanted, unwanted := orphan("web-1"), orphan("else")
	l.cairn(cc)
	l.create(set)
	l.rolledOut(set)
	if got := l.uids(set)["web-1"]; got != string(wanted.GetUID()) {
		t.Errorf("web-1 is %q, was %s", got, wanted.GetUID())
	}
	l.reload(unwanted)
	if unwanted.GetDeletionTimestamp() != nil || metav1.GetControllerOf(unwanted) != nil {
		t.Errorf("it was touched: %v", unwanted.Object["metadata"])
	}
}
