package apply

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
)

// This file remembers results. [Child] decodes and encodes the annotation; a pass over a hundred children of which one
// changed must not do that a hundred times.

// Memo remembers the results of [Child] by UID, and gives them again while resourceVersion and desired content stay what
// they were. It is safe for concurrent use. Make one with [NewMemo].
type Memo struct {
	results *lru.Cache // of map[string]memoEntry, which nobody writes to, by UID
}

type memoEntry struct {
	resourceVersion string
	desired, served map[string]any
	result          Result
}

// NewMemo returns a memo of the results for at most size children. The oldest ones go first; that costs time and nothing
// else.
func NewMemo(size int) *Memo { return &Memo{results: lru.New(size)} }

// Child is [Child], remembered. variant tells apart the desired states that one child is compared with in the same pass,
// such as the names of the revisions; without it they would push each other out. Use few of them.
func (m *Memo) Child(variant string, observed, desired *unstructured.Unstructured, served Served) (Result, error) {
	uid, version := observed.GetUID(), observed.GetResourceVersion()
	var known map[string]memoEntry
	if value, ok := m.results.Get(uid); ok {
		known = value.(map[string]memoEntry) //nolint:forcetypeassert // only this method adds
		if e, ok := known[variant]; ok && e.resourceVersion == version && same(e.served, served) && Equal(e.desired, desired.Object) {
			return e.result, nil
		}
	}
	result, err := Child(observed.Object, desired.Object, served)
	if err == nil && uid != "" && version != "" {
		// Two calls at once may lose what one of them adds, which costs time.
		next := map[string]memoEntry{variant: {version, desired.Object, served, result}}
		for other, e := range known {
			if other != variant && e.resourceVersion == version {
				next[other] = e
			}
		}
		m.results.Add(uid, next)
	}
	return result, err
}

// Forget drops what is kept of a child that is gone, all of its object among it. Without it, that is dropped when room is
// needed.
func (m *Memo) Forget(uid types.UID) { m.results.Remove(uid) }

// same reports whether a and b are one map in memory. What the server answered is kept as it came, so this is enough.
func same(a, b map[string]any) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}
