package history_test

// What is kept in memory: up to a bound, whatever passes by, and nothing for parents that are gone.

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
)

// single is a client that lists one revision.
type single struct {
	client.Client

	revision *appsv1.ControllerRevision
}

func (o *single) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*appsv1.ControllerRevisionList).Items = []appsv1.ControllerRevision{*o.revision}
	return nil
}

// heavy is a DaemonSet with a template of about nine kilobytes.
func heavy(n int) *appsv1.DaemonSet {
	ds := agent("agent:1")
	ds.Name, ds.UID = fmt.Sprint("agent-", n), types.UID(fmt.Sprint("uid-", n))
	for i := range 100 {
		ds.Spec.Template.Spec.Containers[0].Env = append(ds.Spec.Template.Spec.Containers[0].Env, corev1.EnvVar{
			Name: fmt.Sprint("SOME_VARIABLE_", i), Value: fmt.Sprint("some value of ordinary length, number ", i, " of parent ", n),
		})
	}
	return ds
}

// inUse is what the heap holds.
func inUse() int {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}

// look is what a pass that finds nothing new does with the log of a parent.
func look(t *testing.T, l *history.Log, c *single, n int) {
	t.Helper()
	ds := heavy(n)
	c.revision = revisionOf(t, ds, "agent:1", 1)
	c.revision.UID, c.revision.ResourceVersion = types.UID(fmt.Sprint("revision-", n)), "1"
	entries, err := l.List(t.Context(), ds)
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	if v, err := l.Resolve(t.Context(), ds, entries); err != nil || v.Update == nil {
		t.Fatal(v, err)
	}
}

// TestMemoryIsBounded has the logs of many parents pass by.
func TestMemoryIsBounded(t *testing.T) {
	const bound, parents = 16 << 20, 1000
	cache := history.NewCache(bound)
	c := &single{}
	l := history.New(history.DaemonSet(), history.Options{Client: c, Cache: cache})
	look(t, l, c, 0) // whatever is made once
	before := inUse()
	for n := range parents {
		look(t, l, c, n)
	}
	full := inUse() - before
	t.Logf("%d bytes are kept, %d by the estimate", full, cache.Size())
	if cache.Size() > bound || full > 2*bound {
		t.Errorf("%d bytes are kept, %d by the estimate, and the bound is %d", full, cache.Size(), bound)
	}
	if cache.Size() < bound/2 || full < bound/3 {
		t.Errorf("%d bytes are kept, %d by the estimate: the cache is of no use, or the estimate is", full, cache.Size())
	}
	for n := range parents {
		l.Forget(types.UID(fmt.Sprint("uid-", n)))
	}
	if left := inUse() - before; cache.Size() != 0 || left > bound/4 {
		t.Errorf("%d bytes are left of parents that are gone, %d by the estimate", left, cache.Size())
	}
	runtime.KeepAlive(l)
}

// What was not asked for the longest goes first, and what is too large for the cache is not kept at all.
func TestCacheOrder(t *testing.T) {
	c := history.NewCache(3000)
	for _, key := range []string{"a", "b"} {
		c.Add("parent", key, key, 800)
	}
	c.Get("a")
	c.Add("parent", "c", "c", 800)
	c.Add("other", "large", "large", 4000)
	for key, want := range map[string]bool{"a": true, "b": false, "c": true, "large": false} {
		if got, ok := c.Get(key); ok != want || ok && got != key {
			t.Errorf("%s: %v, %v", key, got, ok)
		}
	}
	c.Add("parent", "a", "again", 100)
	if got, _ := c.Get("a"); got != "again" {
		t.Errorf("a is %v", got)
	}
	c.Forget("parent")
	if _, ok := c.Get("a"); ok || c.Size() != 0 {
		t.Errorf("left over: %d bytes", c.Size())
	}
}
