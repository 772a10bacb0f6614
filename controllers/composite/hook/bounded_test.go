package hook

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
)

// TestBounded compares with a list in which what was used last is last.
func TestBounded(t *testing.T) {
	type entry struct{ key, value, size int }
	rapid.Check(t, func(t *rapid.T) {
		const limit = 10
		b := newBounded[int, int](limit)
		var model []entry
		remove := func(key int) (found entry, ok bool) {
			for i, e := range model {
				if e.key == key {
					model = append(model[:i:i], model[i+1:]...)
					return e, true
				}
			}
			return entry{}, false
		}
		key := rapid.IntRange(0, 5)
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				e := entry{key.Draw(t, "key"), rapid.Int().Draw(t, "value"), rapid.IntRange(0, 12).Draw(t, "size")}
				b.put(e.key, e.value, e.size)
				remove(e.key)
				if e.size <= limit {
					model = append(model, e)
				}
			},
			"get": func(t *rapid.T) {
				k := key.Draw(t, "key")
				e, ok := remove(k)
				if ok {
					model = append(model, e)
				}
				if value, there := b.get(k); there != ok || value != e.value {
					t.Fatalf("%d is %d, %t; want %d, %t", k, value, there, e.value, ok)
				}
			},
			"remove": func(t *rapid.T) {
				k := key.Draw(t, "key")
				b.remove(k)
				remove(k)
			},
			"drop": func(t *rapid.T) {
				odd := rapid.IntRange(0, 1).Draw(t, "odd")
				b.drop(func(k int) bool { return k%2 == odd })
				for k := range 6 {
					if k%2 == odd {
						remove(k)
					}
				}
			},
			"": func(t *rapid.T) {
				size := 0
				for _, e := range model {
					size += e.size
				}
				for size > limit {
					size -= model[0].size
					model = model[1:]
				}
				if b.size != size || len(b.items) != len(model) || b.order.Len() != len(model) {
					t.Fatalf("it holds %d in %d items, want %d in %d", b.size, len(b.items), size, len(model))
				}
			},
		})
	})
}

func TestEncoderForgets(t *testing.T) {
	e := NewEncoder(1 << 20)
	a, b := bigPod("a"), bigPod("b")
	for range 2 {
		for _, o := range []*unstructured.Unstructured{a, b} {
			if _, err := e.encode(o); err != nil {
				t.Fatal(err)
			}
		}
	}
	if e.Forget(a); len(e.encoded.items) != 1 {
		t.Errorf("%d objects are kept", len(e.encoded.items))
	}
}
