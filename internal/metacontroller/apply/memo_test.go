package apply_test

import (
	"fmt"
	"runtime"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/internal/metacontroller/apply"
)

// TestMemoIsBounded has many children pass by, whose objects somebody else keeps, and whose desired states nobody does.
func TestMemoIsBounded(t *testing.T) {
	const bound, children = 4 << 20, 2000
	created, err := apply.New(parse(t, desiredPod))
	if err != nil {
		t.Fatal(err)
	}
	observed := make([]*unstructured.Unstructured, children)
	for i := range observed {
		observed[i] = &unstructured.Unstructured{Object: parse(t, text(t, created))}
		observed[i].SetUID(types.UID(fmt.Sprint(i)))
		observed[i].SetResourceVersion("7")
	}
	memo := apply.NewMemo(bound)
	before := inUse()
	for _, o := range observed {
		if r, err := memo.Child("", o, &unstructured.Unstructured{Object: parse(t, desiredPod)}, nil); err != nil || r.Changed {
			t.Fatal(r, err)
		}
	}
	kept := inUse() - before
	t.Logf("%d bytes are kept, %d by the estimate", kept, memo.Size())
	if memo.Size() > bound || kept > bound || kept < bound/4 {
		t.Errorf("%d bytes are kept, %d by the estimate, and the bound is %d", kept, memo.Size(), bound)
	}
	for _, o := range observed {
		memo.Forget(o.GetUID())
	}
	if left := inUse() - before; left > bound/16 || memo.Size() != 0 {
		t.Errorf("%d bytes are left, %d by the estimate", left, memo.Size())
	}
	runtime.KeepAlive(observed)
	runtime.KeepAlive(memo)
}

// inUse is what the heap holds.
func inUse() int {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}
