package bounded

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// TestBounded compares with a list in which what was used last is last.
func TestBounded(t *testing.T) {
	type entry struct{ key, value, size int }
	rapid.Check(t, func(t *rapid.T) {
		const limit = 10
		b := New[int, int](limit)
		var model []entry
		owner := func(key int) types.UID { return types.UID(rune('a' + key%2)) }
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
				b.Put(owner(e.key), e.key, e.value, e.size)
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
				if value, there := b.Get(k); there != ok || value != e.value {
					t.Fatalf("%d is %d, %t; want %d, %t", k, value, there, e.value, ok)
				}
			},
			"forget": func(t *rapid.T) {
				gone := owner(key.Draw(t, "key"))
				b.Forget(gone)
				for k := range 6 {
					if owner(k) == gone {
						remove(k)
					}
				}
			},
			"drop": func(t *rapid.T) {
				third := rapid.IntRange(0, 2).Draw(t, "third")
				b.Drop(func(k int) bool { return k%3 == third })
				for k := range 6 {
					if k%3 == third {
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
				if b.Size() != size || b.Len() != len(model) || b.order.Len() != len(model) {
					t.Fatalf("it holds %d in %d items, want %d in %d", b.Size(), b.Len(), size, len(model))
				}
				owned := map[types.UID]map[int]struct{}{}
				for _, e := range model {
					if owned[owner(e.key)] == nil {
						owned[owner(e.key)] = map[int]struct{}{}
					}
					owned[owner(e.key)][e.key] = struct{}{}
				}
				if diff := cmp.Diff(owned, b.of); diff != "" {
					t.Fatalf("who owns what:\n%s", diff)
				}
			},
		})
	})
}
