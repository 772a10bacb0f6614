package composite

import (
	"fmt"
	"maps"
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
	if err := l.Patch(l.Context(), o, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		l.Fatal(err)
	}
}

// TestTwoParentsThatSelectTheSame: each has its own children, and neither touches the other's.
func TestTwoParentsThatSelectTheSame(t *testing.T) {
	l := newLab(t)
	cc := l.install(l.controller())
	l.cairn(cc)
	one, two := l.set(setKind, "one", 2, "app:1"), l.set(setKind, "two", 2, "app:1")
	for _, field := range [][]string{{"spec", "selector", "matchLabels"}, {"spec", "template", "metadata", "labels"}} {
		for _, set := range []*unstructured.Unstructured{one, two} {
			_ = unstructured.SetNestedStringMap(set.Object, map[string]string{"app": "both"}, field...)
		}
	}
	l.create(one)
	l.create(two)
	l.rolledOut(one)
	l.rolledOut(two)
	before := l.uids(two)
	l.image(one, "app:2")
	l.rolledOut(one)
	l.images(one, 2, "app:2")
	l.images(two, 2, "app:1")
	if after := l.uids(two); !maps.Equal(before, after) {
		t.Errorf("the other's pods were touched: %v, %v", before, after)
	}
}

// TestDriftGoesThroughTheBudget: somebody's edit of a field that the hook set is undone, one pod at a time.
func TestDriftGoesThroughTheBudget(t *testing.T) {
	l := newLab(t)
	l.answer(func(in request) any {
		out := l.pods(in).(m)
		for _, c := range out["children"].([]any) {
			_ = unstructured.SetNestedField(c.(m), "a", "metadata", "annotations", "zone")
		}
		return out
	})
	set, _ := l.running(4)
	least := l.least(set)
	for _, pod := range l.podsOf(set) {
		l.patch(pod, `{"metadata":{"annotations":{"zone":"b"}}}`)
	}
	l.eventually("undo the edits", func() error {
		for name, pod := range l.podsOf(set) {
			if pod.GetAnnotations()["zone"] != "a" {
				return fmt.Errorf("%s has %v", name, pod.GetAnnotations())
			}
		}
		l.reload(set)
		if status, _, message := updated(set); status != "True" || len(l.podsOf(set)) < 4 {
			return fmt.Errorf("%s: %s", status, message)
		}
		return nil
	})
	if n := least(); n < 3 {
		t.Errorf("only %d of 4 were ready at a time", n)
	}
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

// TestResync: a hook that asks to be asked again is, and so is one whose controller has a period.
func TestResync(t *testing.T) {
	for name, c := range map[string]struct {
		answer m
		change func(*v1alpha1.CompositeController)
	}{
		"resyncAfterSeconds":  {m{"resyncAfterSeconds": 0.2}, func(*v1alpha1.CompositeController) {}},
		"resyncPeriodSeconds": {m{}, func(cc *v1alpha1.CompositeController) { cc.Spec.ResyncPeriodSeconds = new(int32(1)) }},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.answer(func(in request) any {
				out := l.pods(in).(m)
				maps.Copy(out, c.answer)
				return out
			})
			l.running(1, c.change)
			before := l.calls.Load()
			l.eventually("be asked again", func() error {
				if n := l.calls.Load() - before; n < 3 {
					return fmt.Errorf("asked %d times", n)
				}
				return nil
			})
		})
	}
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
