package apply

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/internal/bounded"
	"github.com/cairn-dev/cairn/revision"
)

// This file remembers results. [Child] decodes and encodes the annotation; a pass over a hundred children of which one
// changed must not do that a hundred times.

// Memo remembers the results of [Child] by UID, as long as resourceVersion and desired content stay the same. It is
// safe for concurrent use. Make one with [NewMemo].
type Memo struct {
	// results are those of each child by variant, in maps that nobody writes to.
	results *bounded.Map[types.UID, map[string]memoEntry]
}

type memoEntry struct {
	resourceVersion string
	desired, served map[string]any
	result          Result
	size            int
}

// MemoBytes is what all memos of a process together should keep at most.
const MemoBytes = 64 << 20

// NewMemo returns a memo that keeps about so many bytes at most. The least recently used goes first, and then has to be
// computed again. One is enough for all controllers.
func NewMemo(bytes int) *Memo { return &Memo{bounded.New[types.UID, map[string]memoEntry](bytes)} }

// Child is [Child], remembered. variant tells apart the desired states that one child is compared with in the same
// pass, such as the names of the revisions; without it they would push each other out. Use few of them.
func (m *Memo) Child(variant string, observed, desired *unstructured.Unstructured, served Served) (Result, error) {
	uid, version := observed.GetUID(), observed.GetResourceVersion()
	known, _ := m.results.Get(uid)
	if e, ok := known[variant]; ok && e.resourceVersion == version && same(e.served, served) && Equal(e.desired, desired.Object) {
		return e.result, nil
	}
	result, err := Child(observed.Object, desired.Object, served)
	if err == nil && uid != "" && version != "" {
		// Two calls at once may lose what one of them adds, which costs time.
		next := map[string]memoEntry{variant: {version, desired.Object, served, result, sizeOf(desired.Object, result)}}
		size := next[variant].size
		for other, e := range known {
			if other != variant && e.resourceVersion == version {
				next[other] = e
				size += e.size
			}
		}
		m.results.Put(uid, uid, next, size)
	}
	return result, err
}

// sizeOf estimates what remembering a result takes: what was desired, its text in the annotation, and the maps on the
// way to that. Almost all else of the result is the observed child's, which a cache has anyway.
func sizeOf(desired map[string]any, r Result) int {
	const around = 2048 // a little more than was measured
	return revision.SizeOf(desired) + len(annotation(r.Object)) + around
}

// Forget drops what is kept of a deleted child, including its object. Otherwise that is dropped when the memo is full.
func (m *Memo) Forget(uid types.UID) { m.results.Forget(uid) }

// Size returns about how many bytes are kept.
func (m *Memo) Size() int { return m.results.Size() }

// same reports whether a and b are one map in memory. What the server answered is kept as it came, so this is enough.
func same(a, b map[string]any) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}
