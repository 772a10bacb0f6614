package revision_test

// Resolve and a log in disorder: duplicates, missing labels, data that nobody can read, numbers out of order; and what
// holds for any log at all.

import (
	"errors"
	"math"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/cairn-dev/cairn/revision"
)

func TestResolveDuplicates(t *testing.T) {
	run(t, []resolveCase{
		{
			name: "of the newest: the higher number stays", parent: parent("A", 2), log: log{stored("a", 1, "A", at(1)), stored("x", 2, "A", at(1))},
			want: "NoChange x by E1, number 2, a repeats x",
		},
		{
			name: "with the same number: the later name stays", parent: parent("A", 2), log: log{stored("a", 1, "A", at(1)), stored("x", 1, "A", at(1))},
			want: "Rollback x by E1, number 2 (was 1), stamp parent@2, a repeats x",
		},
		{
			name: "of an old one, which is none of the newest's business (kubernetes#111280)", parent: parent("B", 2),
			log: log{stored("x", 0, "A"), stored("a", 1, "A"), stored("b", 2, "B", at(2))}, want: "NoChange b by E0, number 2, x repeats a",
		},
		{
			name: "of an old one, and back to it", parent: parent("A", 3), log: log{stored("x", 0, "A"), stored("a", 1, "A"), stored("b", 2, "B", at(2))},
			want: "Rollback a by E1, number 3 (was 1), stamp parent@3, x repeats a",
		},
		{
			name: "in other bytes", parent: parent("B", 2),
			log:  log{stored("a", 1, "A"), stored("x", 2, "A~"), stored("b", 4, "B", at(2))},
			want: "NoChange b by E0, number 4, a repeats x",
		},
		{
			name: "not for today's type alone, which drops what it does not have", parent: parent("B", 2),
			log:  log{stored("a", 1, "A"), stored("x", 2, "A~"), stored("y", 3, "A!"), stored("b", 4, "B", at(2))},
			want: "NoChange b by E0, number 4, a repeats x",
		},
		{
			name: "what the stamp proves stays, whatever its number", parent: parent("A", 3), log: log{stored("a", 1, "A", at(3)), stored("x", 2, "A")},
			want: "Rollback a by E0, number 3 (was 1), x repeats a",
		},
		{
			name: "and all others name it", parent: parent("A", 3), log: log{stored("x", 1, "A"), stored("a", 2, "A", at(3)), stored("y", 3, "A"), stored("z", 4, "A")},
			want: "Rollback a by E0, number 5 (was 2), y repeats a, z repeats a, x repeats a",
		},
		{
			name: "two at a time", parent: parent("C", 3), log: log{stored("a", 1, "A"), stored("b", 2, "B"), stored("x", 3, "A"), stored("y", 4, "B"), stored("c", 5, "C", at(3))},
			want: "NoChange c by E0, number 5, b repeats y, a repeats x",
		},
		{
			name: "different by what could be a default: no duplicate", parent: parent("A+", 3), log: log{stored("a", 1, "A"), stored("b", 2, "A^"), stored("c", 3, "A+", at(3))},
			want: "NoChange c by E0, number 3",
		},
		{
			name: "equal for the API server only: no duplicate", parent: parent("A+", 3), log: log{stored("a", 1, "A"), stored("c", 3, "A+", at(2))},
			answers: revision.Answers{"uid-a": true}, want: "NoChange c by E1, number 3",
		},
		{
			name: "what goes away anyway needs no deleting", parent: parent("A", 3), log: log{stored("a", 2, "A", at(3)), stored("x", 1, "A", deleting)},
			want: "NoChange a by E0, number 2",
		},
		{
			name: "and nothing moves to it", parent: parent("A", 3), log: log{stored("a", 1, "A", at(3)), stored("x", 2, "A", deleting)},
			want: "Rollback a by E0, number 3 (was 1)",
		},
	})
}

func TestResolveRelabel(t *testing.T) {
	run(t, []resolveCase{
		{
			name: "every revision gets its label, newest first", parent: parent("B", 2),
			log: log{stored("a", 1, "A", unlabelled), stored("b", 2, "B", at(2), unlabelled), stored("c", 0, "C")}, want: "NoChange b by E0, number 2, relabel b a",
		},
		{
			name: "not on its way out", parent: parent("B", 2), log: log{stored("a", 1, "A", unlabelled, deleting), stored("b", 2, "B", at(2))},
			want: "NoChange b by E0, number 2",
		},
	})
}

// What nobody can read is kept and reported, and never starts a rollout by itself.
func TestResolveUndecodable(t *testing.T) {
	custom := parent("A", 5)
	custom.Generational = false
	run(t, []resolveCase{
		{
			name: "the parent is what it was", parent: parent("A", 5), log: log{stored("u", 2, "?", at(5)), stored("b", 1, "B", at(1))},
			want: "NoChange u by E0, number 2, cannot read u",
		},
		{
			name: "whatever else looks like it", parent: parent("A", 5), log: log{stored("u", 2, "?", at(5)), stored("a", 1, "A", at(1))},
			want: "NoChange u by E0, number 2, cannot read u",
		},
		{
			name: "the parent changed", parent: parent("A", 6), log: log{stored("u", 2, "?", at(5))},
			want: "RollForward, number 3, stamp parent@6, cannot read u",
		},
		{
			name: "the parent changed back", parent: parent("A", 6), log: log{stored("u", 2, "?", at(5)), stored("a", 1, "A", at(1))},
			want: "Rollback a by E1, number 3 (was 1), stamp parent@6, cannot read u",
		},
		{
			name: "not stamped", parent: parent("A", 5), log: log{stored("u", 2, "?")},
			want: "RollForward, number 3, stamp parent@5, cannot read u",
		},
		{
			name: "generations prove nothing", parent: custom, log: log{stored("u", 2, "?", at(5))},
			want: "RollForward, number 3, stamp parent@5, cannot read u",
		},
		{
			name: "on its way out", parent: parent("A", 5), log: log{stored("u", 2, "?", at(5), deleting)},
			want: "RollForward, number 3, stamp parent@5, cannot read u",
		},
		{
			name: "two of them are no duplicates, and get no label", parent: parent("A", 5),
			log: log{stored("u", 2, "?", unlabelled), stored("v", 1, "?"), stored("a", 3, "A", at(5))}, want: "NoChange a by E0, number 3, cannot read u v",
		},
	})
}

func TestResolveNumbers(t *testing.T) {
	broken := log{stored("a", 0, "A"), stored("b", 0, "B"), stored("c", 1, "C"), stored("d", 2, "D", at(1))} // kubernetes#80698
	run(t, []resolveCase{
		{name: "0, 0, 1, 2 and the newest", parent: parent("D", 2), log: broken, want: "NoChange d by E1, number 2"},
		{name: "0, 0, 1, 2 and the first 0", parent: parent("A", 2), log: broken, want: "Rollback a by E1, number 3 (was 0), stamp parent@2"},
		{name: "0, 0, 1, 2 and the second 0", parent: parent("B", 2), log: broken, want: "Rollback b by E1, number 3 (was 0), stamp parent@2"},
		{name: "0, 0, 1, 2 and a new one", parent: parent("E", 2), log: broken, want: "RollForward, number 3, stamp parent@2"},
		{
			name: "two are the newest", parent: parent("B", 2), log: log{stored("a", 2, "A"), stored("b", 2, "B", at(1))},
			want: "Rollback b by E1, number 3 (was 2), stamp parent@2",
		},
		{name: "0 is no number", parent: parent("A", 2), log: log{stored("a", 0, "A", at(2))}, want: "Rollback a by E0, number 1 (was 0)"},
		{name: "nor is anything below", parent: parent("A", 2), log: log{stored("a", -7, "A", at(2))}, want: "Rollback a by E0, number 1 (was -7)"},
	})
}

// Nobody gets there by counting; somebody wrote it by hand and has to undo it. What is stored can be used meanwhile,
// under the number that it has; what would be new waits.
func TestResolveHasNoNumberLeft(t *testing.T) {
	full := log{stored("a", math.MaxInt64, "A", at(1)), stored("b", 1, "B", at(1)), stored("x", 2, "?")}
	const says = "revision a has the highest number there is, so no newer one can be recorded; delete it or lower its number"

	res, err := revision.Resolve(parent("B", 2), full, nil, true)
	if err != nil || res.Change != revision.NoChange || res.Update == nil || res.Update.Name != "b" || res.Renumber() || res.Restamp() {
		t.Fatalf("%+v, %v", res, err)
	}
	if res.Full == nil || res.Full.Error() != says || res.Full.Revision != "a" || !strings.Contains(res.Reason, says) {
		t.Errorf("full: %v, reason %q", res.Full, res.Reason)
	}

	res, err = revision.Resolve(parent("C", 2), full, nil, true)
	if none, ok := errors.AsType[*revision.NumberError](err); !ok || none.Error() != says {
		t.Fatalf("got %v, want the error %q", err, says)
	}
	if res == nil || res.Change != revision.RollForward || res.Update != nil || res.Number != 0 || res.Full == nil || len(res.Undecodable) != 1 {
		t.Errorf("beside the error: %+v", res)
	}

	// The last number that there is can be had.
	if res, err = revision.Resolve(parent("C", 2), log{stored("a", math.MaxInt64-1, "A")}, nil, true); err != nil || res.Number != math.MaxInt64 || res.Full != nil {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestResolutionRenumberAndRestamp(t *testing.T) {
	a := stored("a", 1, "A", at(1))
	for _, c := range []struct {
		name               string
		res                revision.Resolution
		renumber, restamps bool
	}{
		{"nothing stored", revision.Resolution{Number: 2, Stamp: revision.Stamp{ParentUID: parentUID, Generation: 2}}, false, false},
		{"as it is", revision.Resolution{Update: &a, Number: 1, Stamp: a.Stamp}, false, false},
		{"another number", revision.Resolution{Update: &a, Number: 2, Stamp: a.Stamp}, true, false},
		{"another generation", revision.Resolution{Update: &a, Number: 1, Stamp: revision.Stamp{ParentUID: parentUID, Generation: 2}}, false, true},
		{"another parent", revision.Resolution{Update: &a, Number: 1, Stamp: revision.Stamp{ParentUID: otherUID, Generation: 1}}, false, true},
	} {
		if c.res.Renumber() != c.renumber || c.res.Restamp() != c.restamps {
			t.Errorf("%s: Renumber %t, Restamp %t", c.name, c.res.Renumber(), c.res.Restamp())
		}
	}
}

// A reason is what people read in events and conditions: it names the revision, its number and the rule.
func TestResolveReasons(t *testing.T) {
	for _, c := range []struct {
		parent revision.ParentState
		log    log
		want   string
	}{
		{parent("A", 1), log{stored("a", 4, "A", at(1))}, "revision 4 (a) is what the parent asks for"},
		{parent("A", 3), log{stored("a", 1, "A"), stored("b", 2, "B")}, "the parent asks for revision 1 (a) again; renumbering it to 3"},
		{parent("C", 3), log{stored("a", 1, "A")}, "no stored revision is what the parent asks for; recording revision 2"},
		{parent("A+", 3), log{stored("a", 1, "A")}, "1 stored revisions differ from the parent only in fields that could be defaults"},
		{parent("A", 3), log{stored("a", 1, "A", at(4))}, "the parent was read at generation 3, but revision a was recorded at generation 4; waiting for a newer read"},
	} {
		res, err := revision.Resolve(c.parent, c.log, nil, true)
		if err != nil || res.Reason != c.want {
			t.Errorf("got %q, %v, want %q", res.Reason, err, c.want)
		}
	}
}

// Any log, in any order, gives one resolution; and it keeps its promises to whoever applies it.
func TestResolveOfAnyLog(t *testing.T) {
	contents := rapid.SampledFrom([]string{"A", "A~", "A!", "A+", "A^", "B", "B!", "C", "?"})
	rapid.Check(t, func(t *rapid.T) {
		var all log
		for _, name := range []string{"a", "b", "c", "d", "e"}[:rapid.IntRange(0, 5).Draw(t, "length")] {
			r := stored(name, rapid.Int64Range(0, 4).Draw(t, "number"), contents.Draw(t, "content"))
			if rapid.Bool().Draw(t, "stamped") {
				by(rapid.SampledFrom([]types.UID{parentUID, otherUID}).Draw(t, "by"), rapid.Int64Range(0, 4).Draw(t, "at"))(&r)
			}
			r.Deleting = rapid.IntRange(0, 4).Draw(t, "deleting") == 0
			all = append(all, r)
		}
		p := parent(contents.Filter(func(s string) bool { return s != "?" }).Draw(t, "parent"), rapid.Int64Range(1, 4).Draw(t, "generation"))
		p.Uncached, p.Generational = rapid.Bool().Draw(t, "uncached"), rapid.Bool().Draw(t, "generational")
		answers := revision.Answers{}
		for _, name := range []string{"a", "b"} {
			if rapid.Bool().Draw(t, "answered") {
				answers[types.UID("uid-"+name)] = rapid.Bool().Draw(t, "answer")
			}
		}
		ask := rapid.Bool().Draw(t, "ask")
		res, err := revision.Resolve(p, all, answers, ask)
		again, errAgain := revision.Resolve(p, rapid.Permutation(all).Draw(t, "shuffled"), answers, ask)
		if err != nil || errAgain != nil {
			t.Fatal(err, errAgain)
		}
		if got, want := tell(again), tell(res); got != want {
			t.Fatalf("the order counts:\n%s\n%s", got, want)
		}
		checkPromises(t, p, all, res)
	})
}

// checkPromises checks what holds for every resolution.
func checkPromises(t *rapid.T, p revision.ParentState, all log, res *revision.Resolution) {
	gone := map[string]bool{}
	for _, d := range res.Duplicates {
		if d.Revision.Deleting || d.Revision.Err != nil || gone[d.Revision.Name] || d.Revision.UID == d.Of.UID {
			t.Fatalf("%s is no duplicate to delete: %s", d.Revision.Name, tell(res))
		}
		if revision.Compare(d.Revision.Snapshot, d.Of.Snapshot) == revision.RuleNone {
			t.Fatalf("%s does not repeat %s", d.Revision.Name, d.Of.Name)
		}
		gone[d.Revision.Name] = true
	}
	for _, d := range res.Duplicates {
		if gone[d.Of.Name] || d.Of.Deleting {
			t.Fatalf("%s moves to %s, which goes away too: %s", d.Revision.Name, d.Of.Name, tell(res))
		}
	}
	if res.Update != nil && (gone[res.Update.Name] || res.Number < res.Update.Number) {
		t.Fatalf("the update revision goes away, or back: %s", tell(res))
	}
	if p.Uncached && res.Change == revision.Stale {
		t.Fatalf("no read is newer: %s", tell(res))
	}
	if res.Change != revision.Ask && res.Change != revision.Stale {
		for _, r := range all {
			if r.Number >= res.Number && (res.Update == nil || r.UID != res.Update.UID) {
				t.Fatalf("number %d is not above that of %s: %s", res.Number, r.Name, tell(res))
			}
		}
	}
}
