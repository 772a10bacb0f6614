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
	results *lru.Cache
}

type memoKey struct {
	uid     types.UID
	variant string
}

type memoEntry struct {
	resourceVersion string
	desired, served map[string]any
	result          Result
}

// NewMemo returns a memo of at most size results. The oldest ones go first; that costs time and nothing else.
func NewMemo(size int) *Memo { return &Memo{results: lru.New(size)} }

// Child is [Child], remembered. variant tells apart the desired states that one child is compared with in the same pass,
// such as the names of the revisions; without it they would push each other out.
func (m *Memo) Child(variant string, observed, desired *unstructured.Unstructured, served Served) (Result, error) {
	key := memoKey{uid: observed.GetUID(), variant: variant}
	version := observed.GetResourceVersion()
	if value, ok := m.results.Get(key); ok {
		e := value.(*memoEntry) //nolint:forcetypeassert // only this method adds
		if e.resourceVersion == version && same(e.served, served) && Equal(e.desired, desired.Object) {
			return e.result, nil
		}
	}
	result, err := Child(observed.Object, desired.Object, served)
	if err == nil && key.uid != "" && version != "" {
		m.results.Add(key, &memoEntry{version, desired.Object, served, result})
	}
	return result, err
}

// same reports whether a and b are one map in memory. What the server answered is kept as it came, so this is enough.
func same(a, b map[string]any) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}
