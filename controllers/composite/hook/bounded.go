package hook

import (
	"container/list"
	"sync"
)

// bounded is a map that holds at most limit bytes, as its users count them. What was used longest ago goes first; that
// costs the work of making it again, and nothing else. It is safe for concurrent use.
type bounded[K comparable, V any] struct {
	limit int

	mu    sync.Mutex
	size  int
	items map[K]*list.Element
	order *list.List // of *boundedItem[K, V], last used first
}

type boundedItem[K comparable, V any] struct {
	key   K
	value V
	size  int
}

func newBounded[K comparable, V any](limit int) *bounded[K, V] {
	return &bounded[K, V]{limit: limit, items: map[K]*list.Element{}, order: list.New()}
}

func (b *bounded[K, V]) get(key K) (value V, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	element, ok := b.items[key]
	if !ok {
		return value, false
	}
	b.order.MoveToFront(element)
	return b.item(element).value, true
}

// put replaces what is under key. What is larger than the limit is not kept.
func (b *bounded[K, V]) put(key K, value V, size int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cut(b.items[key])
	if size > b.limit {
		return
	}
	b.items[key] = b.order.PushFront(&boundedItem[K, V]{key, value, size})
	b.size += size
	for b.size > b.limit {
		b.cut(b.order.Back())
	}
}

// drop removes what gone says is gone. It looks at every key.
func (b *bounded[K, V]) drop(gone func(K) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, element := range b.items {
		if gone(key) {
			b.cut(element)
		}
	}
}

// remove removes what is under key, if there is anything.
func (b *bounded[K, V]) remove(key K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cut(b.items[key])
}

// cut removes an element. It may be nil.
func (b *bounded[K, V]) cut(element *list.Element) {
	if element == nil {
		return
	}
	item := b.item(element)
	b.order.Remove(element)
	delete(b.items, item.key)
	b.size -= item.size
}

func (b *bounded[K, V]) item(element *list.Element) *boundedItem[K, V] {
	return element.Value.(*boundedItem[K, V]) //nolint:forcetypeassert // only put adds
}
