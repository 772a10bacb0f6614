package check_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/check/parents"
	"github.com/cairn-dev/cairn/proof/check/recording"
)

// This file plays many random rollouts, good ones and bad ones.

// rollouts plays a controller that keeps its promises while a user edits at any moment. spoil, if not nil, is called
// once in the middle, when one pod is going.
func rollouts(w *world, random *rand.Rand, turns int, spoil func()) {
	images, number := map[string]string{"h1": "app:1"}, int64(1)
	on := map[string]string{"n1": "h1", "n2": "h1", "n3": "h1"}
	for turn := range turns {
		hash := fmt.Sprintf("h%d", 1+random.IntN(4))
		w.edit("app:" + hash[1:])
		if _, known := images[hash]; known {
			number++
			r := get(w, revision("web", "web-uid", 1, hash, ""), "web-"+hash)
			if r.Revision != number-1 {
				r.Revision = number
				w.put(r)
			} else {
				number--
			}
		} else {
			images[hash], number = "app:"+hash[1:], number+1
			w.put(revision("web", "web-uid", number, hash, images[hash]))
		}
		order := []string{"n1", "n2", "n3"}
		random.Shuffle(3, func(i, j int) { order[i], order[j] = order[j], order[i] })
		for i, node := range order {
			if on[node] != hash {
				w.replace(node, on[node], hash, images[hash])
				on[node] = hash
			}
			w.report(updatedOf(on, hash), 3)
			if spoil != nil && turn == 3 && i == 1 {
				spoil()
				return
			}
			if random.IntN(4) == 0 {
				break // the user is impatient
			}
		}
	}
}

func updatedOf(on map[string]string, hash string) int32 {
	n := int32(0)
	for _, h := range on {
		if h == hash {
			n++
		}
	}
	return n
}

func TestRandomRolloutsAreSilent(t *testing.T) {
	for seed := range uint64(300) {
		w := newWorld(t)
		rollouts(w, rand.New(rand.NewPCG(seed, 1)), 6, nil)
		if got := check.Check(w.history(), parents.DaemonSet()); len(got) != 0 {
			t.Fatalf("seed %d:\n%s", seed, story(got))
		}
	}
}

// Whatever happened before: who deletes everything breaks the budget.
func TestADeleteTooManyIsAlwaysFound(t *testing.T) {
	found := 0
	for seed := range uint64(300) {
		w := newWorld(t)
		spoiled := false
		rollouts(w, rand.New(rand.NewPCG(seed, 2)), 6, func() {
			spoiled = true
			for k, o := range w.objects {
				if _, isPod := o.(*corev1.Pod); isPod {
					w.mark(k.Name)
				}
			}
		})
		if !spoiled {
			continue
		}
		n := 0
		for _, v := range check.Check(w.history(), parents.DaemonSet()) {
			if v.Invariant == "R1" {
				n++
			}
		}
		if n != 2 { // the first of three is allowed
			t.Fatalf("seed %d: %d of 2 deletes too many were found", seed, n)
		}
		found++
	}
	if found < 100 {
		t.Errorf("only %d histories were spoiled", found)
	}
}

// The order between watches is nobody's; the history is the same.
func TestHistoryDependsOnNoOrderBetweenWatches(t *testing.T) {
	w := newWorld(t)
	rollouts(w, rand.New(rand.NewPCG(1, 1)), 6, nil)
	want := w.history()
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 3))
		byResource := map[string][]recording.Change{}
		var turns []string
		for _, c := range w.watched {
			byResource[c.Resource.Resource] = append(byResource[c.Resource.Resource], c)
			turns = append(turns, c.Resource.Resource)
		}
		random.Shuffle(len(turns), func(i, j int) { turns[i], turns[j] = turns[j], turns[i] })
		var merged []recording.Change
		for _, r := range turns {
			merged = append(merged, byResource[r][0])
			byResource[r] = byResource[r][1:]
		}
		got, err := recording.NewHistory(w.origin, w.rv, w.listed, merged)
		if err != nil {
			t.Fatal(err)
		}
		same := slices.EqualFunc(got.Events, want.Events, func(a, b check.Event) bool {
			return a.RV == b.RV && a.Type == b.Type && a.Key == b.Key && reflect.DeepEqual(a.Old, b.Old) && reflect.DeepEqual(a.New, b.New)
		})
		if !same {
			t.Fatalf("seed %d: another history", seed)
		}
	}
}

func TestTornHistoriesAreRefused(t *testing.T) {
	for name, tear := range map[string]func(w *world){
		"a version twice":        func(w *world) { w.watched = append(w.watched, w.watched[0]) },
		"an end without a start": func(w *world) { w.watched[0].Deleted = true; w.listed = nil },
		"no version":             func(w *world) { w.watched[0].Object = pod("x", "x", "n1", "h", "i") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.edit("app:2")
			tear(w)
			if _, err := recording.NewHistory(w.origin, w.rv, w.listed, w.watched); err == nil {
				t.Error("it was taken")
			}
		})
	}
}

// Histories of one process share what is remembered of contents, and nothing else.
func TestHistoriesAreJudgedAtTheSameTime(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			rollouts(w, rand.New(rand.NewPCG(seed, 4)), 6, func() {
				for k, o := range w.objects {
					if _, isPod := o.(*corev1.Pod); isPod {
						w.mark(k.Name)
					}
				}
			})
			h := w.history()
			want := story(check.Check(h, parents.DaemonSet()))
			for range 20 {
				if got := story(check.Check(h, parents.DaemonSet())); got != want {
					t.Fatalf("once:\n%s\nand then:\n%s", want, got)
				}
			}
		})
	}
}
