package revision_test

// A state machine: somebody edits a parent at random, copies and breaks revisions, upgrades the API server; a
// controller passes over it, sometimes with an old read; what Resolve and Prune say is applied to a log in memory. The
// promises of the design (H1 to H9) are checked on the way, and every resolution is compared with the naive one.

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/cairn-dev/cairn/revision"
)

func TestLogModel(t *testing.T) {
	for seed := range 8 { // steps are cheap, and what is rare must come up in every run
		t.Run(fmt.Sprint(seed), func(t *testing.T) { rapid.Check(t, runModel) })
	}
}

func runModel(t *rapid.T) {
	w := &world{reads: []read{{1, "A"}}, data: map[types.UID]string{}}
	pass := func(t *rapid.T) { w.freshPass(t) }
	t.Repeat(map[string]func(*rapid.T){
		"edit": w.edit, "edit again": w.edit, "scale": w.scale, "upgrade": w.upgrade,
		"pass": pass, "pass again": pass, "pass once more": pass, "stale pass": w.stalePass,
		"plant": w.plant, "plant again": w.plant, "unlabel": w.unlabel,
		"break": w.breakData, "delete": w.deleteOne, "reap": w.reap, "prune": w.prune,
		"": w.check,
	})
	w.freshPass(t)
}

func (w *world) now() read { return w.reads[len(w.reads)-1] }

func (w *world) edit(t *rapid.T) {
	w.reads = append(w.reads, read{w.now().generation + 1, rapid.SampledFrom([]string{"A", "B", "C"}).Draw(t, "content")})
}

func (w *world) scale(*rapid.T) {
	w.reads = append(w.reads, read{w.now().generation + 1, w.now().letter})
}

func (w *world) upgrade(t *rapid.T) {
	if w.upgraded {
		t.Skip("once is enough")
	}
	w.upgraded = true
}

// add puts a revision into the log under a new name.
func (w *world) add(t *rapid.T, e *entry, data string) *entry {
	w.made++
	// Names do not sort as they were made, as hashes do not.
	e.Name = fmt.Sprintf("%s-%d", rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name"), w.made)
	e.UID = types.UID("uid-" + e.Name)
	e.Snapshot = decode(t, appTarget, data)
	w.data[e.UID] = data
	w.log = append(w.log, e)
	return e
}

// plant copies a revision, as a restored backup, a lost cache or a person with kubectl does.
func (w *world) plant(t *rapid.T) {
	original := w.pick(t, (*entry).readable)
	planted := &entry{Revision: original.Revision, letter: original.letter}
	planted.Number = rapid.Int64Range(0, original.Number+2).Draw(t, "number")
	if rapid.Bool().Draw(t, "new hash") {
		planted.Hash = fmt.Sprintf("planted-%d", w.made)
	}
	switch rapid.IntRange(0, 2).Draw(t, "stamp") {
	case 0:
		planted.Stamp = revision.Stamp{}
	case 1:
		planted.Stamp.ParentUID = otherUID
	default: // copied
	}
	w.add(t, planted, w.data[original.UID])
}

func (w *world) unlabel(t *rapid.T) {
	e := w.pick(t, func(e *entry) bool { return e.readable() && e.Hash != "" })
	if slices.ContainsFunc(w.children, func(c *child) bool { return c.label == e.Hash }) {
		t.Skip("its children would lose their revision")
	}
	e.Hash = ""
}

func (w *world) breakData(t *rapid.T) {
	if slices.ContainsFunc(w.log, func(e *entry) bool { return e.Err != nil }) {
		t.Skip("one at a time, or nothing else is left")
	}
	e := w.pick(t, (*entry).readable)
	e.Snapshot, e.Err = nil, errors.New("unreadable")
}

func (w *world) deleteOne(t *rapid.T) {
	w.pick(t, func(e *entry) bool { return !e.Deleting }).Deleting = true
}

func (w *world) reap(t *rapid.T) {
	w.remove(w.pick(t, func(e *entry) bool { return e.Deleting }))
	w.children = slices.DeleteFunc(w.children, func(c *child) bool { return w.revisionOf(c) == nil })
}

// resolve asks Resolve, and the API server for what Resolve wants to know, and compares the answer with the naive one.
func (w *world) resolve(t *rapid.T, r read) (*revision.Resolution, revision.ParentState) {
	content := r.letter
	if w.upgraded {
		content += "+"
	}
	p, answers := parent(content, r.generation), revision.Answers{}
	for {
		res, err := revision.Resolve(p, revision.Identified(func(hash string) string { return "a-" + hash }, rapid.Permutation(w.revisions()).Draw(t, "log")), answers, true)
		if err != nil {
			t.Fatal(err)
		}
		if res.Change != revision.Ask {
			if got, want := brief(res), naive(r, w.log); got != want {
				t.Fatalf("\n got %s\nwant %s\n(%s)", got, want, tell(res))
			}
			return res, p
		}
		for _, asked := range res.Ask {
			if _, again := answers[asked.UID]; again {
				t.Fatalf("asked about %s twice", asked.Name)
			}
			answers[asked.UID] = w.entry(asked.UID).letter == r.letter
		}
	}
}

// apply does what history/ will do with a resolution, in the same order.
func (w *world) apply(t *rapid.T, r read, p revision.ParentState, res *revision.Resolution) *entry {
	var highest, fence int64
	for _, e := range w.log {
		if res.Update == nil || e.UID != res.Update.UID {
			highest = max(highest, e.Number)
		}
		if e.Stamp.ParentUID == parentUID {
			fence = max(fence, e.Stamp.Generation)
		}
	}
	if (res.Update == nil || res.Renumber()) && (res.Number <= highest || r.generation < fence) {
		t.Fatalf("number %d of %d, from generation %d behind %d: %s", res.Number, highest, r.generation, fence, tell(res))
	}
	for _, e := range res.Relabel {
		w.entry(e.UID).Hash = e.Hash
	}
	for _, d := range res.Duplicates {
		duplicate, of := w.entry(d.Revision.UID), w.entry(d.Of.UID)
		for _, c := range w.children {
			if c.label == duplicate.label() {
				c.label = of.label()
			}
		}
		w.remove(duplicate)
	}
	if res.Update == nil {
		e := &entry{letter: r.letter, Revision: revision.Revision{Number: res.Number, Stamp: res.Stamp, Hash: fmt.Sprintf("hash-%d", w.made)}}
		return w.add(t, e, string(p.Snapshot.Data()))
	}
	e := w.entry(res.Update.UID)
	e.Number, e.Stamp = res.Number, res.Stamp
	return e
}

func (w *world) freshPass(t *rapid.T) {
	r := w.now()
	res, p := w.resolve(t, r)
	update := w.apply(t, r, p, res)
	w.update = update.UID

	// At rest: nothing is left to write (H8), one revision for each content (H1), the update revision is the newest (H2).
	again, _ := w.resolve(t, r)
	if again.Change != revision.NoChange || again.Renumber() || again.Restamp() || len(again.Relabel)+len(again.Duplicates) > 0 {
		t.Fatalf("still something to write: %s\nafter %s", tell(again), tell(res))
	}
	seen := map[string]bool{}
	for _, e := range w.log {
		if e.readable() && seen[e.letter] {
			t.Fatalf("%s has the content %s once more", e.Name, e.letter)
		}
		seen[e.letter] = seen[e.letter] || e.readable()
		if e != update && e.Number >= update.Number {
			t.Fatalf("%s (%d) is not older than %s (%d)", e.Name, e.Number, update.Name, update.Number)
		}
	}
	// The rollout makes a child, or updates one.
	if i := rapid.IntRange(0, 4).Draw(t, "child"); i < len(w.children) {
		*w.children[i] = child{update.label(), r.letter}
	} else {
		w.children = append(w.children, &child{update.label(), r.letter})
	}
}

// stalePass acts on an old read of the parent, if Resolve lets it.
func (w *world) stalePass(t *rapid.T) {
	r := w.reads[rapid.IntRange(0, len(w.reads)-1).Draw(t, "read")]
	if res, p := w.resolve(t, r); res.Change != revision.Stale {
		w.apply(t, r, p, res)
	}
}

func (w *world) prune(t *rapid.T) {
	if w.update == "" {
		t.Skip("no pass yet")
	}
	limit := rapid.IntRange(0, 2).Draw(t, "limit")
	var refs []string
	inUse := map[string]bool{}
	for _, c := range w.children {
		refs, inUse[c.label] = append(refs, c.label), true
	}
	pruned := revision.Prune(w.revisions(), revision.Revision{UID: w.update}, revision.NewInUse(refs...), limit)
	if diff := cmp.Diff(naivePrune(w.revisions(), w.update, inUse, limit), names(pruned)); diff != "" {
		t.Fatalf("(-naive +got):\n%s", diff)
	}
	for _, r := range pruned {
		w.remove(w.entry(r.UID))
	}
	left := 0
	for _, e := range w.log {
		if e.readable() && !inUse[e.label()] && e.UID != w.update {
			left++
		}
	}
	if left > limit {
		t.Fatalf("%d revisions left that nothing needs, limit %d", left, limit)
	}
}

// check is what holds after every step: no child loses its revision or gets another one (H3, kubernetes#111280), and no
// data changes (H4).
func (w *world) check(t *rapid.T) {
	for _, c := range w.children {
		e := w.revisionOf(c)
		if e == nil {
			t.Fatalf("the revision %s is gone, and a child still needs it", c.label)
		}
		if e.letter != c.letter {
			t.Fatalf("a child made from %s says that it is %s, which is %s", c.letter, e.Name, e.letter)
		}
	}
	for _, e := range w.log {
		if e.Snapshot != nil && string(e.Snapshot.Data()) != w.data[e.UID] {
			t.Fatalf("the data of %s changed", e.Name)
		}
	}
}
