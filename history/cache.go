package history

import (
	"container/list"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// This file keeps what was decoded, so that a pass that finds nothing new decodes nothing. It is bounded in bytes, because a
// template in memory takes many times the bytes that it has in the store.

// DefaultCacheBytes is the bound of the cache that all logs of a process share that are given none.
const DefaultCacheBytes = 64 << 20

// shared is the cache of logs that are given none.
var shared = NewCache(DefaultCacheBytes)

// mostForgotten is how many parents that are gone are remembered as such: a pass over one of them may still be under way.
const mostForgotten = 1024

// Cache holds what was decoded for parents, up to a number of bytes; what was not asked for the longest goes first. Logs of
// several kinds may share one. It is safe for concurrent use.
type Cache struct {
	mu         sync.Mutex
	most, size int
	entries    map[any]*list.Element
	recent     *list.List // of *cached, the last one that was asked for in front
	of         map[types.UID]map[any]struct{}
	forgotten  map[types.UID]struct{}
	order      []types.UID // of forgotten, a ring
	next       int
}

type cached struct {
	parent types.UID
	key    any
	value  any
	size   int
}

// NewCache returns a cache for so many bytes, as far as they can be estimated.
func NewCache(bytes int) *Cache {
	return &Cache{
		most: bytes, entries: map[any]*list.Element{}, recent: list.New(), of: map[types.UID]map[any]struct{}{},
		forgotten: map[types.UID]struct{}{},
	}
}

// Get returns what is kept under a key. Keys are comparable values of types of their own, so that users of one cache do
// not get in each other's way.
func (c *Cache) Get(key any) (value any, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[key]
	if !ok {
		return nil, false
	}
	c.recent.MoveToFront(e)
	return entryOf(e).value, true
}

// Add keeps a value for a parent, unless the parent is gone. bytes is about what it takes.
func (c *Cache) Add(parent types.UID, key, value any, bytes int) {
	const overhead = 512 // of an entry, in the maps and the list; measured
	bytes += overhead
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[key]; ok {
		c.drop(e)
	}
	if _, gone := c.forgotten[parent]; gone || bytes > c.most {
		return
	}
	c.entries[key] = c.recent.PushFront(&cached{parent, key, value, bytes})
	if c.of[parent] == nil {
		c.of[parent] = map[any]struct{}{}
	}
	c.of[parent][key] = struct{}{}
	for c.size += bytes; c.size > c.most; {
		c.drop(c.recent.Back())
	}
}

// Forget drops all that is kept for a parent that is gone, and what a pass that is still under way would add.
func (c *Cache) Forget(parent types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.of[parent] {
		c.drop(c.entries[key])
	}
	if _, known := c.forgotten[parent]; known {
		return
	}
	if len(c.order) < mostForgotten {
		c.order = append(c.order, parent)
	} else {
		delete(c.forgotten, c.order[c.next])
		c.order[c.next] = parent
		c.next = (c.next + 1) % mostForgotten
	}
	c.forgotten[parent] = struct{}{}
}

// Size returns about how many bytes are kept.
func (c *Cache) Size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.size
}

func (c *Cache) drop(e *list.Element) {
	was := entryOf(e)
	c.recent.Remove(e)
	c.size -= was.size
	delete(c.entries, was.key)
	delete(c.of[was.parent], was.key)
	if len(c.of[was.parent]) == 0 {
		delete(c.of, was.parent)
	}
}

func entryOf(e *list.Element) *cached {
	return e.Value.(*cached) //nolint:forcetypeassert // nothing else is put into the list
}
