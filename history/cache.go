package history

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/internal/bounded"
	"github.com/cairn-dev/cairn/revision"
)

// This file keeps what was read from revisions, so that a pass that finds nothing new decodes nothing. It is bounded in
// bytes.

// DefaultCacheBytes is the bound of the cache that all logs of a process share that are given none.
const DefaultCacheBytes = 64 << 20

// shared is the cache of logs that are given none.
var shared = NewCache(DefaultCacheBytes)

// SharedCache returns the cache that all logs of a process share that are given none.
func SharedCache() *Cache { return shared }

// Cache holds what was decoded for parents, up to a number of bytes; the least recently used goes first. Logs of
// several kinds may share one. It is safe for concurrent use.
type Cache struct{ kept *bounded.Map[any, any] }

// NewCache returns a cache for so many bytes, as far as they can be estimated.
func NewCache(bytes int) *Cache { return &Cache{bounded.New[any, any](bytes)} }

// Get returns what is kept under a key. Keys are comparable values of types of their own, so that users of one cache do
// not get in each other's way.
func (c *Cache) Get(key any) (value any, ok bool) { return c.kept.Get(key) }

// Add keeps a value for a parent. bytes is about what it takes.
func (c *Cache) Add(parent types.UID, key, value any, bytes int) {
	const overhead = 512 // of an entry, in the maps and the list; measured
	c.kept.Put(parent, key, value, bytes+overhead)
}

// Forget drops all that is kept for a deleted parent. What is added for it later is kept until the cache is full, so
// call it when no pass over the parent is under way.
func (c *Cache) Forget(parent types.UID) { c.kept.Forget(parent) }

// Size returns about how many bytes are kept.
func (c *Cache) Size() int { return c.kept.Size() }

// Revision returns what read makes of a stored revision, once for each version of the object. It is kept for the
// controller of the object. target is what revisions are decoded as; it keeps apart those who share a cache.
func (c *Cache) Revision(target *revision.Target, o metav1.Object, read func() revision.Revision) revision.Revision {
	type key struct {
		target  *revision.Target
		uid     types.UID
		version string
	}
	at := key{target, o.GetUID(), o.GetResourceVersion()}
	if r, ok := c.Get(at); ok {
		return r.(revision.Revision)
	}
	r := read()
	size, parent := unreadableSize, o.GetUID()
	if r.Snapshot != nil {
		size = r.Snapshot.Size()
	}
	if ref := metav1.GetControllerOfNoCopy(o); ref != nil {
		parent = ref.UID
	}
	c.Add(parent, at, r, size)
	return r
}

// unreadableSize is about what the error of a revision takes that cannot be read.
const unreadableSize = 512
