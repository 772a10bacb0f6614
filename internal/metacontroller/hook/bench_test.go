package hook

import (
	"encoding/json"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
)

// BenchmarkHundredChildren is what a step of a rollout costs before the call: one child of a hundred changed.
func BenchmarkHundredChildren(b *testing.B) {
	kind := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	parent := bigPod("parent")
	g := Group{GroupVersionKind: kind}
	for i := range 100 {
		g.Objects = append(g.Objects, bigPod(fmt.Sprint("pod-", i)))
	}
	q := &Question{Parent: parent, Children: []Group{g}}
	h := &Hook{kind: Sync, version: v1alpha1.HookVersionV1, encoder: NewEncoder(16 << 20), controller: Controller{
		Object: json.RawMessage(`{}`), Children: []ChildKind{{GroupVersionKind: kind, Namespaced: true}},
	}}
	step := func(i int) {
		o := g.Objects[i%100].DeepCopy()
		o.SetResourceVersion(fmt.Sprint(1000 + i))
		g.Objects[i%100] = o
	}
	b.Run("one changed", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			step(i)
			body, err := h.write(q)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(body)))
		}
	})
	b.Run("without a memory", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			step(i)
			if _, err := json.Marshal(g.Objects); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("not asked", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := h.digest(q); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// bigPod is a pod of the size that the API server returns.
func bigPod(name string) *unstructured.Unstructured {
	managed := map[string]any{}
	for i := range 60 {
		managed[fmt.Sprintf("f:field-%d", i)] = map[string]any{"f:inside": map[string]any{}}
	}
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"spec": map[string]any{"containers": []any{map[string]any{"name": "main", "image": "nginx"}}},
	}}
	o.SetName(name)
	o.SetNamespace("ns")
	o.SetUID(types.UID("uid-of-" + name))
	o.SetResourceVersion("1")
	if err := unstructured.SetNestedField(o.Object, managed, "metadata", "managedFields"); err != nil {
		panic(err)
	}
	return o
}
