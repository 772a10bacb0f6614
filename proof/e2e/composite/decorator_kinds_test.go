package composite

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/sandbox/install"
)

// This file decorates three kinds with one DecoratorController: one with a status of its own, one without, and one
// outside of namespaces; all of them are told of one related object.

var plantKind = schema.GroupVersionKind{Group: "test.cairn.dev", Version: "v1", Kind: "Plant"}

const gardeners = `
- apiVersion: metacontroller.k8s.io/v1alpha1
  kind: DecoratorController
  metadata: {name: LAB-gardener}
  spec:
    resources:
    - {apiVersion: test.cairn.dev/v1, resource: sets, labelSelector: {matchLabels: {lab: LAB}}}
    - {apiVersion: test.cairn.dev/v1, resource: clustersets, labelSelector: {matchLabels: {lab: LAB}}}
    - {apiVersion: test.cairn.dev/v1, resource: plants, labelSelector: {matchLabels: {lab: LAB}}}
    attachments:
    - {apiVersion: v1, resource: configmaps, updateStrategy: {method: Recreate}}
    hooks:
      sync: {webhook: {url: URL/garden}}
      customize: {version: v2, webhook: {url: URL/customize}}
`

// planted returns an object of a kind that the gardener decorates.
func (d *decorating) planted(kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: m{"spec": m{}}}
	o.SetGroupVersionKind(kind)
	o.SetName(name)
	o.SetLabels(map[string]string{"lab": d.namespace, "tag": "old"})
	if kind != clusterSetKind {
		o.SetNamespace(d.namespace)
	}
	return o
}

// TestDecoratedKinds: the kinds share a queue and are not taken for each other; a related object wakes all of them.
func TestDecoratedKinds(t *testing.T) {
	d := newDecorating(t, gardeners, map[string]func(decoration) any{
		"/customize": func(in decoration) any {
			namespace := in.Parent.GetLabels()["lab"]
			return m{"relatedResources": []any{m{"apiVersion": "v1", "resource": "configmaps", "namespace": namespace, "names": []any{"weather"}}}}
		},
		"/garden": func(in decoration) any {
			weather := "unknown"
			for _, o := range in.Related["ConfigMap.v1"] {
				weather, _, _ = unstructured.NestedString(o.Object, "data", "today")
			}
			namespace := in.Object.GetLabels()["lab"]
			if stray, ok := in.Object.GetAnnotations()["stray"]; ok {
				namespace = stray
			}
			name := fmt.Sprintf("%s-%s", in.Object.GetKind(), in.Object.GetName())
			return m{
				"labels": m{"tag": nil, "weather": weather}, "annotations": m{"decorated": "yes"}, "status": m{"weather": weather},
				"attachments": []any{m{
					"apiVersion": "v1", "kind": "ConfigMap", "metadata": m{"name": strings.ToLower(name), "namespace": namespace},
					"data": m{"weather": weather, "empty": ""},
				}},
			}
		},
	}, "")
	must(t, install.Apply(t.Context(), d.sandbox.Config(), crd("Plant", "Namespaced", "")))
	weather := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: "weather"}, Data: map[string]string{"today": "rain"}}
	d.create(weather)
	objects := map[string]*unstructured.Unstructured{}
	for _, kind := range []schema.GroupVersionKind{setKind, clusterSetKind, plantKind} {
		o := d.planted(kind, "fern")
		if kind == clusterSetKind {
			o.SetName(d.namespace)
		}
		objects[kind.Kind] = o
		d.eventually("create a "+kind.Kind, func() error { return d.Create(t.Context(), o) })
		t.Cleanup(func() { _ = d.Delete(context.WithoutCancel(t.Context()), o) })
	}
	decorated := func(today string) {
		t.Helper()
		for kind, o := range objects {
			d.eventually("wait for the "+kind, func() error {
				d.reload(o)
				status, _, _ := unstructured.NestedString(o.Object, "status", "weather")
				attached := &corev1.ConfigMap{}
				key := client.ObjectKey{Namespace: d.namespace, Name: strings.ToLower(kind + "-" + o.GetName())}
				if err := d.Get(t.Context(), key, attached); err != nil {
					return err
				}
				labels := o.GetLabels()
				_, tagged := labels["tag"]
				if status != today || labels["weather"] != today || tagged || o.GetAnnotations()["decorated"] != "yes" || attached.Data["weather"] != today {
					return fmt.Errorf("labels %v, status %s, attached %v", labels, status, attached.Data)
				}
				if ref := metav1.GetControllerOf(attached); ref == nil || ref.UID != o.GetUID() {
					return fmt.Errorf("attached to %+v", ref)
				}
				return nil
			})
		}
	}
	decorated("rain")
	d.quiet()
	weather.Data["today"] = "sun"
	must(t, d.Update(t.Context(), weather))
	decorated("sun")
	d.quiet()

	// An object in a namespace cannot reach into another one.
	set := objects["Set"]
	d.eventually("let the hook stray", func() error {
		d.reload(set)
		set.SetAnnotations(map[string]string{"stray": "kube-system"})
		return d.Update(t.Context(), set)
	})
	d.event(set, "SyncError", "kube-system")
	if err := d.Get(t.Context(), client.ObjectKey{Namespace: d.namespace, Name: "set-fern"}, &corev1.ConfigMap{}); err != nil {
		t.Errorf("what was attached is gone: %v", err)
	}
	if err := d.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "set-fern"}, &corev1.ConfigMap{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("in kube-system: %v", err)
	}
}
