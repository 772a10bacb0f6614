// Package bounded keeps in memory what is expensive to compute again, up to a number of bytes, and drops it with the
// object that it is about.
//
// What may not come in: what is kept, and how large that is. The callers know.
package bounded

import (
	"container/list"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Map is a map that holds at most a number of bytes, as its callers count them. The least recently used entry goes
// first; it then only has to be computed again. An entry belongs to an object, its owner, and is dropped with it. It is
// safe for concurrent use. Make one with [New].
type Map[K comparable, V any] struct {
	limit int

	mu    sync.Mutex
	size  int
	items map[K]*list.Element
	order *list.List // of *item[K, V], last used first
	of    map[types.UID]map[K]struct{}
}

type item[K comparable, V any] struct {
	owner types.UID
	key   K
	value V
	size  int
}

// New returns a map that holds at most so many bytes.
func New[K comparable, V any](limit int) *Map[K, V] {
	return &Map[K, V]{limit: limit, items: map[K]*list.Element{}, order: list.New(), of: map[types.UID]map[K]struct{}{}}
}

// Get returns what is under a key.
func (m *Map[K, V]) Get(key K) (value V, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	element, ok := m.items[key]
	if !ok {
		return value, false
	}
	m.order.MoveToFront(element)
	return m.item(element).value, true
}

// Put replaces what is under a key, which always has the same owner. What is larger than the limit is not kept.
func (m *Map[K, V]) Put(owner types.UID, key K, value V, size int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cut(m.items[key])
	if size > m.limit {
		return
	}
	m.items[key] = m.order.PushFront(&item[K, V]{owner, key, value, size})
	if m.of[owner] == nil {
		m.of[owner] = map[K]struct{}{}
	}
	m.of[owner][key] = struct{}{}
	for m.size += size; m.size > m.limit; {
		m.cut(m.order.Back())
	}
}

// Forget drops all entries of an object.
func (m *Map[K, V]) Forget(owner types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.of[owner] {
		m.cut(m.items[key])
	}
}

// Drop drops the entries that gone returns true for. It looks at every key.
func (m *Map[K, V]) Drop(gone func(K) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, element := range m.items {
		if gone(key) {
			m.cut(element)
		}
	}
}

// Size returns how many bytes are kept.
func (m *Map[K, V]) Size() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.size
}

// Len returns the number of entries.
func (m *Map[K, V]) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.items)
}

// cut removes an element. It may be nil.
func (m *Map[K, V]) cut(element *list.Element) {
	if element == nil {
		return
	}
	i := m.item(element)
	m.order.Remove(element)
	delete(m.items, i.key)
	delete(m.of[i.owner], i.key)
	if len(m.of[i.owner]) == 0 {
		delete(m.of, i.owner)
	}
	m.size -= i.size
}

func (m *Map[K, V]) item(element *list.Element) *item[K, V] {
	return element.Value.(*item[K, V])
}
