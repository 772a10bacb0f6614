package revision_test

// Order and pruning: what comes before what, what is in use, and what may go.

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/cairn-dev/cairn/revision"
)

// logs generates the revisions of one parent: distinct names, and few numbers, so that many are the same.
func logs() *rapid.Generator[[]revision.Revision] {
	return rapid.Custom(func(t *rapid.T) []revision.Revision {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-c]{1,2}`), 0, 8, rapid.ID[string]).Draw(t, "names")
		var all []revision.Revision
		for _, name := range names {
			r := revision.Revision{
				Name: name, UID: types.UID("uid-" + name),
				Number:   rapid.Int64Range(0, 4).Draw(t, "number"),
				Hash:     rapid.SampledFrom([]string{"", "h1", "h2", "h-" + name}).Draw(t, "hash"),
				Deleting: rapid.IntRange(0, 4).Draw(t, "deleting") == 0,
			}
			if rapid.IntRange(0, 4).Draw(t, "undecodable") == 0 {
				r.Err = errors.New("unreadable")
			}
			all = append(all, r)
		}
		return all
	})
}

func names(revisions []revision.Revision) []string {
	out := []string{}
	for _, r := range revisions {
		out = append(out, r.Name)
	}
	return out
}

func TestOlder(t *testing.T) {
	r := func(number int64, name string) revision.Revision {
		return revision.Revision{Number: number, Name: name}
	}
	for _, c := range []struct {
		a, b revision.Revision
		want int
	}{
		{r(1, "b"), r(2, "a"), -1},
		{r(2, "a"), r(1, "b"), 1},
		{r(1, "a"), r(1, "b"), -1},
		{r(1, "b"), r(1, "a"), 1},
		{r(1, "a"), r(1, "a"), 0},
		{r(9, "a"), r(10, "a"), -1}, // numbers, not text
		{r(math.MinInt64, "a"), r(math.MaxInt64, "a"), -1},
		{r(math.MaxInt64, "a"), r(math.MinInt64, "a"), 1},
	} {
		if got := revision.CompareByNumber(c.a, c.b); got != c.want {
			t.Errorf("%v, %v: got %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

// Whatever order a list comes in, the history has one (kubernetes#69967).
func TestSorted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := logs().Draw(t, "log")
		given := slices.Clone(log)
		sorted := revision.Sorted(log)
		if diff := cmp.Diff(names(given), names(log)); diff != "" {
			t.Fatalf("the input was sorted in place:\n%s", diff)
		}
		for i := 1; i < len(sorted); i++ {
			a, b := sorted[i-1], sorted[i]
			if a.Number > b.Number || a.Number == b.Number && a.Name >= b.Name {
				t.Fatalf("%s (%d) before %s (%d)", a.Name, a.Number, b.Name, b.Number)
			}
		}
		if diff := cmp.Diff(names(sorted), names(revision.Sorted(rapid.Permutation(log).Draw(t, "shuffled")))); diff != "" {
			t.Fatalf("the order depends on the input's:\n%s", diff)
		}
		if len(sorted) != len(log) {
			t.Fatalf("%d of %d left", len(sorted), len(log))
		}
	})
}

func TestLive(t *testing.T) {
	long := "x-" + fmt.Sprintf("%070d", 7)
	var unknown revision.InUse
	known := revision.NewInUse("name", "", "hash", revision.LabelValue(long))
	if unknown.Known() || !known.Known() || !revision.NewInUse().Known() {
		t.Error("Known is wrong: nothing in use is known, nothing looked at is not")
	}
	if !known.Names("hash") || known.Names("other") || known.Names("") || unknown.Names("hash") {
		t.Error("Names is wrong")
	}
	for _, c := range []struct {
		revision revision.Revision
		want     bool
	}{
		{revision.Revision{Name: "name"}, true},
		{revision.Revision{Name: "other", Hash: "hash"}, true},
		{revision.Revision{Name: "hash", Hash: "x"}, true}, // StatefulSet: the label holds the name
		{revision.Revision{Name: long}, true},              // the label holds the end of the name
		{revision.Revision{Name: "other"}, false},
		{revision.Revision{Name: "other", Hash: "other"}, false},
		{revision.Revision{}, false}, // an empty reference is none
	} {
		if got := known.Has(c.revision); got != c.want {
			t.Errorf("Has(%q, %q) = %t, want %t", c.revision.Name, c.revision.Hash, got, c.want)
		}
		if unknown.Has(c.revision) || revision.NewInUse().Has(c.revision) {
			t.Errorf("the empty set has %q", c.revision.Name)
		}
	}
}

// naivePrune deletes the oldest that may go, one at a time, until few enough are left.
func naivePrune(log []revision.Revision, keep types.UID, inUse map[string]bool, limit int) []string {
	deleted := []string{}
	for {
		var oldest *revision.Revision
		count := 0
		for i, r := range log {
			if r.UID == keep || r.Deleting || r.Err != nil || inUse[r.Name] || inUse[r.Hash] || slices.Contains(deleted, r.Name) {
				continue
			}
			count++
			if oldest == nil || r.Number < oldest.Number || r.Number == oldest.Number && r.Name < oldest.Name {
				oldest = &log[i]
			}
		}
		if count == 0 || count <= limit {
			return deleted
		}
		deleted = append(deleted, oldest.Name)
	}
}

func TestPruneAgainstNaivePrune(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := logs().Draw(t, "log")
		given := slices.Clone(log)
		keep := revision.Revision{UID: types.UID(rapid.SampledFrom([]string{"", "uid-a", "uid-b", "uid-ab"}).Draw(t, "keep"))}
		limit := rapid.OneOf(rapid.IntRange(-2, 5), rapid.SampledFrom([]int{math.MinInt, math.MaxInt})).Draw(t, "limit")
		refs := rapid.SliceOf(rapid.SampledFrom([]string{"", "a", "ab", "c", "h1", "h-a", "h-b"})).Draw(t, "in use")
		inUse := map[string]bool{}
		for _, ref := range refs {
			inUse[ref] = ref != ""
		}
		pruned := revision.Prune(log, keep, revision.NewInUse(refs...), limit)
		if diff := cmp.Diff(naivePrune(log, keep.UID, inUse, limit), names(pruned)); diff != "" {
			t.Fatalf("(-naive +got):\n%s", diff)
		}
		if diff := cmp.Diff(names(given), names(log)); diff != "" {
			t.Fatalf("the input changed:\n%s", diff)
		}
		if got := revision.Prune(log, keep, revision.InUse{}, limit); len(got) > 0 {
			t.Fatalf("pruned %v without knowing what is in use", names(got))
		}
	})
}

func TestPrune(t *testing.T) {
	r := func(number int64) revision.Revision {
		name := fmt.Sprintf("r%d", number)
		return revision.Revision{Name: name, UID: types.UID(name), Hash: "h-" + name, Number: number}
	}
	deleting, unreadable := r(2), r(3)
	deleting.Deleting, unreadable.Err = true, errors.New("unreadable")
	log := []revision.Revision{r(5), r(1), deleting, unreadable, r(4), r(6)}
	for _, c := range []struct {
		name  string
		live  revision.InUse
		limit int
		want  []string
	}{
		{"within the limit", revision.NewInUse(), 3, []string{}},
		{"the oldest goes", revision.NewInUse(), 2, []string{"r1"}},
		{"oldest first", revision.NewInUse(), 0, []string{"r1", "r4", "r5"}},
		{"negative is 0 (kubernetes#129018)", revision.NewInUse(), -1, []string{"r1", "r4", "r5"}},
		{"live by label", revision.NewInUse("h-r1"), 0, []string{"r4", "r5"}},
		{"live by name", revision.NewInUse("r4"), 1, []string{"r1"}},
		{"nothing is known", revision.InUse{}, 0, []string{}},
	} {
		if diff := cmp.Diff(c.want, names(revision.Prune(log, r(6), c.live, c.limit))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestLiveBeside(t *testing.T) {
	log := []revision.Revision{{Name: "web-1", Hash: "1"}, {Name: "web-2", Hash: "two"}}
	for _, c := range []struct {
		refs []string
		want bool
	}{
		{nil, false},
		{[]string{"1", "web-2", ""}, false},
		{[]string{"1", "3"}, true},
	} {
		if got := revision.NewInUse(c.refs...).Beside(log); got != c.want {
			t.Errorf("%q: %v", c.refs, got)
		}
	}
	if (revision.InUse{}).Beside(nil) {
		t.Error("what is not known depends on nothing")
	}
}
