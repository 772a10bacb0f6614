package ownership_test

// Reading one's own writes: what is waited for, what ends the wait, and what never begins one.

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/ownership"
)

var revisions = schema.GroupResource{Group: "apps", Resource: "controllerrevisions"}

// store is an informer's store that is as old as a test wants it.
type store struct {
	mu      sync.Mutex
	at      string
	objects map[string]any
	err     error
}

func (s *store) LastStoreSyncResourceVersion() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at
}

func (s *store) GetByKey(key string) (item any, exists bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	item, exists = s.objects[key]
	return item, exists, s.err
}

// show is an event that the store takes in.
func (s *store) show(at string, objects ...client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at, s.objects = at, map[string]any{}
	for _, o := range objects {
		s.objects[client.ObjectKeyFromObject(o).String()] = o
	}
}

// consistency store returns a consistency store over a pod store and a revision store, both at version 10.
func consistency() (l *ownership.ConsistencyStore, podStore, revisionStore *store) {
	podStore, revisionStore = &store{at: "10"}, &store{at: "10"}
	return ownership.NewConsistencyStore(map[schema.GroupResource]ownership.Store{pods: podStore, revisions: revisionStore}), podStore, revisionStore
}

func unseen(t *testing.T, l *ownership.ConsistencyStore, parent types.UID, expected string) {
	t.Helper()
	if got := l.Unseen(parent); got != expected {
		t.Errorf("unseen is %q, want %q", got, expected)
	}
}

func TestAWriteIsPendingUntilTheCacheHasSeenIt(t *testing.T) {
	for name, c := range map[string]struct {
		shown   string // by the cache before the writes
		wrote   []string
		pending string
		still   []string // later versions of the cache
		seen    []string
	}{
		"one write":                                 {"10", []string{"12"}, "12", []string{"11"}, []string{"12", "1"}}, // a store that forgets changes nothing
		"versions are numbers":                      {"9", []string{"10"}, "10", nil, []string{"10"}},
		"the newest of several, in any order":       {"10", []string{"12", "101", "13"}, "101", []string{"99"}, []string{"101"}},
		"created and deleted behind a broken watch": {"10", []string{"12"}, "12", nil, []string{"15"}}, // there is no event; a new list has it not
	} {
		t.Run(name, func(t *testing.T) {
			l, podStore, _ := consistency()
			podStore.show(c.shown)
			unseen(t, l, "p", "")
			for _, rv := range c.wrote {
				l.WroteAt("p", pods, child("c", version(rv)))
			}
			for _, at := range append([]string{c.shown}, c.still...) {
				podStore.show(at)
				unseen(t, l, "p", "the cache of pods has not reached resource version "+c.pending)
			}
			for _, at := range c.seen {
				podStore.show(at)
				unseen(t, l, "p", "")
			}
		})
	}
}

// What an orphan does says nothing about our own writes: only a cache that has reached them settles them.
func TestAnOrphanAddSettlesNothing(t *testing.T) {
	l, podStore, _ := consistency()
	l.WroteAt(one.UID, pods, child("c", version("12"), ownedBy(one)))
	orphan := child("orphan", version("11"))
	podStore.show("11", orphan)
	wakes(t, nil, orphan, "ns/one", "ns/two")
	unseen(t, l, one.UID, "the cache of pods has not reached resource version 12")
}

// Revisions are waited for as children are: seeing one kind says nothing about the other.
func TestEachResourceIsWaitedFor(t *testing.T) {
	l, podStore, revisionStore := consistency()
	l.WroteAt("p", pods, child("c", version("12")))
	l.WroteAt("p", revisions, child("r", version("13")))
	podStore.show("13")
	unseen(t, l, "p", "the cache of controllerrevisions.apps has not reached resource version 13")
	revisionStore.show("13")
	unseen(t, l, "p", "")
}

func TestADeleteIsPendingUntilTheCacheHasSeenIt(t *testing.T) {
	for name, shows := range map[string][]client.Object{
		"it is gone":                         {},
		"it is terminating":                  {child("c", deleting)},
		"another one has its name":           {child("c", withUID("uid-new"))},
		"another one of the same name is on": {child("c", withUID("uid-new"), version("99"))},
	} {
		t.Run(name, func(t *testing.T) {
			l, podStore, _ := consistency()
			podStore.show("10", child("c"))
			l.Deleted("p", pods, child("c"))
			unseen(t, l, "p", "the cache of pods still shows ns/c, which was deleted")
			podStore.show("11", child("c", version("11"))) // some change from before the delete
			unseen(t, l, "p", "the cache of pods still shows ns/c, which was deleted")
			podStore.show("12", shows...)
			unseen(t, l, "p", "")
		})
	}
}

// What somebody saw past the cache: the object is not like that any more.
func TestWhatIsOutdatedIsPendingUntilTheCacheShowsSomethingElse(t *testing.T) {
	for name, shows := range map[string][]client.Object{
		"it is gone":               {},
		"it is terminating":        {child("c", version("12"), deleting)},
		"it belongs to nobody now": {child("c", version("12"))},
		"another one has its name": {child("c", withUID("uid-new"), version("7"))},
	} {
		t.Run(name, func(t *testing.T) {
			l, podStore, _ := consistency()
			shown := child("c", version("7"))
			podStore.show("10", shown)
			l.Outdated("p", pods, shown)
			unseen(t, l, "p", "the cache of pods still shows ns/c, which was changed or deleted")
			podStore.show("11", shown) // something else has changed
			unseen(t, l, "p", "the cache of pods still shows ns/c, which was changed or deleted")
			podStore.show("12", shows...)
			unseen(t, l, "p", "")
		})
	}
}

func TestEveryDeleteIsWaitedFor(t *testing.T) {
	l, podStore, _ := consistency()
	a, b := child("a"), child("b")
	podStore.show("10", a, b)
	l.Deleted("p", pods, a)
	l.Deleted("p", pods, b)
	podStore.show("11", b)
	unseen(t, l, "p", "the cache of pods still shows ns/b, which was deleted")
	podStore.show("12")
	unseen(t, l, "p", "")
}

func TestAWriteAndADeleteAreBothWaitedFor(t *testing.T) {
	l, podStore, _ := consistency()
	podStore.show("10", child("c"))
	l.WroteAt("p", pods, child("d", version("12")))
	l.Deleted("p", pods, child("c"))
	podStore.show("12", child("c"))
	unseen(t, l, "p", "the cache of pods still shows ns/c, which was deleted")
	podStore.show("13")
	unseen(t, l, "p", "")
}

// A recreated parent does not wait for the writes of its predecessor.
func TestWritesBelongToAUIDAndNotToAName(t *testing.T) {
	l, _, _ := consistency()
	l.WroteAt("uid-old", pods, child("c", version("12")))
	unseen(t, l, "uid-new", "")
	unseen(t, l, "uid-old", "the cache of pods has not reached resource version 12")
}

func TestForgetDropsOneParent(t *testing.T) {
	l, podStore, _ := consistency()
	podStore.show("10", child("c"))
	l.WroteAt("gone", pods, child("d", version("12")))
	l.Deleted("gone", pods, child("c"))
	l.WroteAt("stays", pods, child("d", version("13")))
	l.Clear("gone")
	l.Clear("never heard of")
	unseen(t, l, "gone", "")
	unseen(t, l, "stays", "the cache of pods has not reached resource version 13")
}

// A controller that waits for what never comes is worse than one that reads a little late.
func TestWhatCannotBeToldNeverBlocks(t *testing.T) {
	t.Run("a resource without a store", func(t *testing.T) {
		l, _, _ := consistency()
		l.WroteAt("p", schema.GroupResource{Resource: "services"}, child("c", version("12")))
		l.Deleted("p", schema.GroupResource{Resource: "services"}, child("c"))
		unseen(t, l, "p", "")
	})
	for _, rv := range []string{"", "0", "1", "abc", "012", "-3", "1.5"} {
		t.Run(fmt.Sprintf("a write of version %q", rv), func(t *testing.T) {
			l, _, _ := consistency()
			l.WroteAt("p", pods, child("c", version(rv)))
			unseen(t, l, "p", "")
		})
		t.Run(fmt.Sprintf("a store at version %q", rv), func(t *testing.T) {
			l, podStore, _ := consistency()
			podStore.show(rv)
			l.WroteAt("p", pods, child("c", version("12")))
			if rv == "1" {
				unseen(t, l, "p", "the cache of pods has not reached resource version 12")
				return
			}
			unseen(t, l, "p", "")
		})
	}
	t.Run("a malformed version does not hide a good one", func(t *testing.T) {
		l, _, _ := consistency()
		l.WroteAt("p", pods, child("c", version("12")))
		l.WroteAt("p", pods, child("c", version("abc")))
		unseen(t, l, "p", "the cache of pods has not reached resource version 12")
	})
	t.Run("a store that fails, or holds something strange", func(t *testing.T) {
		l, podStore, _ := consistency()
		l.Deleted("p", pods, child("c"))
		podStore.show("10", child("c"))
		podStore.err = errors.New("broken")
		unseen(t, l, "p", "")
		podStore.err = nil
		podStore.objects["ns/c"] = "not an object"
		l.Deleted("p", pods, child("c"))
		unseen(t, l, "p", "")
	})
}

// The store of client-go's informers is one that the consistency store understands.
func TestAnInformersStoreTellsItsVersion(t *testing.T) {
	informers := cache.NewStore(cache.MetaNamespaceKeyFunc)
	l := ownership.NewConsistencyStore(map[schema.GroupResource]ownership.Store{pods: informers})
	if err := informers.Replace([]any{child("c")}, "10"); err != nil {
		t.Fatal(err)
	}
	l.WroteAt("p", pods, child("d", version("12")))
	l.Deleted("p", pods, child("c"))
	if l.Unseen("p") == "" {
		t.Error("nothing is waited for")
	}
	for _, err := range []error{informers.Delete(child("c", version("11"))), informers.Add(child("d", version("12")))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	unseen(t, l, "p", "")
}

// Workers write for different parents at once, while the informer goes on. Run with -race.
func TestTheConsistencyIsSafeForConcurrentUse(t *testing.T) {
	l, podStore, _ := consistency()
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			uid := types.UID(fmt.Sprint("p", worker%2))
			for i := range 200 {
				l.WroteAt(uid, pods, child("c", version(strconv.Itoa(11+i))))
				l.Deleted(uid, pods, child("c"))
				if text := l.Unseen(uid); text != "" && !strings.Contains(text, "the cache of pods") {
					t.Error(text)
				}
				if i%50 == 49 {
					l.Clear(uid)
				}
				podStore.show(strconv.Itoa(11 + i))
			}
		})
	}
	all.Wait()
	podStore.show("1000")
	unseen(t, l, "p0", "")
	unseen(t, l, "p1", "")
}
