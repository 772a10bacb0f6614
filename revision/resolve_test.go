package revision_test

// Resolve, case by case: what the parent did, which revision that makes, and what the log needs for it.

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cairn-dev/cairn/revision"
)

// log is short for a list of revisions.
type log = []revision.Revision

// resolveCase is one parent, one log, and the sentence that tell makes of the resolution.
type resolveCase struct {
	name    string
	parent  revision.ParentState
	log     log
	answers revision.Answers
	noAsk   bool
	want    string
}

// run resolves each case for several orders of its log: the order never counts (kubernetes#69967).
func run(t *testing.T, cases []resolveCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				shuffled := rapid.Permutation(c.log).Draw(t, "log")
				before := strings.Join(names(shuffled), " ")
				res, err := revision.Resolve(c.parent, shuffled, c.answers, !c.noAsk)
				if err != nil {
					t.Fatal(err)
				}
				if got := tell(res); got != c.want {
					t.Fatalf("\n got %s\nwant %s\n(%s)", got, c.want, res.Reason)
				}
				if res.Reason == "" {
					t.Fatal("no reason given")
				}
				if after := strings.Join(names(shuffled), " "); after != before {
					t.Fatalf("the input was reordered from %s to %s", before, after)
				}
			})
		})
	}
}

func TestResolveNoChange(t *testing.T) {
	run(t, []resolveCase{
		{
			name: "same bytes, not stamped yet", parent: parent("A", 3), log: log{stored("a", 1, "A")},
			want: "NoChange a by E1, number 1, stamp parent@3",
		},
		{
			name: "taken at this generation", parent: parent("A", 3), log: log{stored("a", 1, "A", at(3))},
			want: "NoChange a by E0, number 1",
		},
		{
			name: "scaled since: nothing to write", parent: parent("A", 9), log: log{stored("a", 1, "A", at(3))},
			want: "NoChange a by E1, number 1",
		},
		{
			name: "other bytes", parent: parent("A", 4), log: log{stored("a", 1, "A~", at(3))},
			want: "NoChange a by E1, number 1",
		},
		{
			name: "equal for today's type", parent: parent("A", 4), log: log{stored("a", 1, "A!", at(3))},
			want: "NoChange a by E2, number 1",
		},
		{
			name: "stamped by a parent of the same name that is gone", parent: parent("A", 3), log: log{stored("a", 1, "A", by(otherUID, 3))},
			want: "NoChange a by E1, number 1, stamp parent@3",
		},
		{
			name: "the newest of many", parent: parent("C", 3), log: log{stored("a", 1, "A"), stored("b", 2, "B"), stored("c", 7, "C", at(3))},
			want: "NoChange c by E0, number 7",
		},
		{
			name: "the highest number there is", parent: parent("A", 3), log: log{stored("a", math.MaxInt64, "A", at(3)), stored("b", 1, "B")},
			want: "NoChange a by E0, number 9223372036854775807",
		},
	})
}

func TestResolveRollForward(t *testing.T) {
	run(t, []resolveCase{
		{name: "the first one", parent: parent("A", 1), want: "RollForward, number 1, stamp parent@1"},
		{
			name: "a new content", parent: parent("B", 2), log: log{stored("a", 1, "A", at(1))},
			want: "RollForward, number 2, stamp parent@2",
		},
		{
			name: "numbers have gaps", parent: parent("C", 2), log: log{stored("a", 3, "A"), stored("b", 9, "B")},
			want: "RollForward, number 10, stamp parent@2",
		},
		{
			name: "the number of a terminating revision is taken", parent: parent("C", 2),
			log: log{stored("a", 4, "A", deleting), stored("b", 2, "B")}, want: "RollForward, number 5, stamp parent@2",
		},
		{
			name: "a terminating revision is better than none", parent: parent("A", 2),
			log: log{stored("a", 4, "A", at(2), deleting), stored("b", 2, "B")}, want: "NoChange a by E1, number 4",
		},
		{
			name: "a live revision is better than a terminating one", parent: parent("A", 2),
			log: log{stored("a", 4, "A", deleting), stored("b", 2, "A!")}, want: "Rollback b by E2, number 5 (was 2), stamp parent@2",
		},
		{
			name: "what cannot be read takes its number too", parent: parent("A", 2), log: log{stored("u", 4, "?", at(1))},
			want: "RollForward, number 5, stamp parent@2, cannot read u",
		},
	})
}

func TestResolveRollback(t *testing.T) {
	run(t, []resolveCase{
		{
			name: "back to an older one", parent: parent("A", 3), log: log{stored("a", 1, "A", at(1)), stored("b", 2, "B", at(2))},
			want: "Rollback a by E1, number 3 (was 1), stamp parent@3",
		},
		{
			name: "that was stored in other bytes", parent: parent("A", 3), log: log{stored("a", 1, "A~"), stored("b", 2, "B")},
			want: "Rollback a by E1, number 3 (was 1), stamp parent@3",
		},
		{
			name: "that was stored by an older release", parent: parent("A", 3), log: log{stored("a", 1, "A!"), stored("b", 2, "B")},
			want: "Rollback a by E2, number 3 (was 1), stamp parent@3",
		},
		{
			name: "past one that is being deleted", parent: parent("A", 3), log: log{stored("a", 1, "A", at(3)), stored("b", 2, "B", deleting)},
			want: "Rollback a by E0, number 3 (was 1)",
		},
		{
			name: "past one that cannot be read", parent: parent("A", 3), log: log{stored("a", 1, "A", at(1)), stored("u", 2, "?")},
			want: "Rollback a by E1, number 3 (was 1), stamp parent@3, cannot read u",
		},
	})
}

// Kubernetes starts to fill in a new default. The parent reads as another content than the one it was recorded as; its
// generation proves that nobody changed it.
func TestResolveStampProvesEquality(t *testing.T) {
	custom := parent("A+", 5)
	custom.Generational = false
	run(t, []resolveCase{
		{
			name: "a new default", parent: parent("A+", 5), log: log{stored("a", 1, "A", at(5))}, noAsk: true,
			want: "NoChange a by E0, number 1",
		},
		{
			name: "or a field that was slipped in: the API server can tell", parent: parent("A+", 5), log: log{stored("a", 1, "A", at(5))},
			want: "Ask, ask about a",
		},
		{
			name: "it says default", parent: parent("A+", 5), log: log{stored("a", 1, "A", at(5)), stored("b", 2, "A+", at(4))},
			answers: revision.Answers{"uid-a": true}, want: "Rollback a by E3, number 3 (was 1)",
		},
		{
			name: "it says slipped in", parent: parent("A+", 5), log: log{stored("a", 2, "A", at(5)), stored("b", 1, "A+", at(4))},
			answers: revision.Answers{"uid-a": false}, want: "Rollback b by E1, number 3 (was 1), stamp parent@5",
		},
		{
			name: "a value that contradicts the stamp", parent: parent("A", 5), log: log{stored("a", 1, "A", at(1)), stored("x", 0, "B", at(5))},
			noAsk: true, want: "NoChange a by E1, number 1",
		},
		{
			name: "and another revision has it spelled out", parent: parent("A+", 5), log: log{stored("a", 2, "A", at(5)), stored("b", 1, "A+", at(4))},
			noAsk: true, want: "NoChange a by E0, number 2",
		},
		{
			name: "even a newer one", parent: parent("A+", 5), log: log{stored("a", 1, "A", at(5)), stored("b", 2, "A+", at(4))}, noAsk: true,
			want: "Rollback a by E0, number 3 (was 1)",
		},
		{
			name: "but not if generations do not follow the content", parent: custom,
			log: log{stored("a", 2, "A", at(5)), stored("b", 1, "A+", at(4))}, want: "Rollback b by E1, number 3 (was 1), stamp parent@5",
		},
		{
			name: "nor by the stamp of another parent", parent: parent("A+", 5),
			log: log{stored("a", 2, "A", by(otherUID, 5)), stored("b", 1, "A+", at(4))}, want: "Rollback b by E1, number 3 (was 1), stamp parent@5",
		},
		{
			name: "nor at another generation", parent: parent("A+", 6),
			log: log{stored("a", 2, "A", at(5)), stored("b", 1, "A+", at(4))}, want: "Rollback b by E1, number 3 (was 1), stamp parent@6",
		},
		{
			name: "nor if two claim it", parent: parent("B", 5), log: log{stored("a", 1, "A", at(5)), stored("b", 2, "B", at(5))},
			want: "NoChange b by E1, number 2",
		},
		{
			name: "nor if two claim it and neither is it", parent: parent("C", 5), log: log{stored("a", 1, "A", at(5)), stored("b", 2, "B", at(5))},
			want: "RollForward, number 3, stamp parent@5",
		},
		{
			name: "nor if the other that claims it cannot be read", parent: parent("C", 5), log: log{stored("a", 1, "A", at(5)), stored("u", 2, "?", at(5))},
			want: "RollForward, number 3, stamp parent@5, cannot read u",
		},
		{
			name: "a stamped revision that cannot be read gets its label", parent: parent("A", 5), log: log{stored("u", 2, "?", at(5), unlabelled)},
			want: "NoChange u by E0, number 2, relabel u, cannot read u",
		},
		{
			name: "what is being deleted claims nothing", parent: parent("A+", 5), log: log{stored("a", 2, "A", at(5)), stored("b", 1, "B", at(5), deleting)},
			noAsk: true, want: "NoChange a by E0, number 2",
		},
		{
			name: "generation 0 proves nothing", parent: parent("B", 0), log: log{stored("a", 1, "A", at(0))},
			want: "RollForward, number 2, stamp parent@0",
		},
	})
}

func TestResolveFence(t *testing.T) {
	fresh := func(content string, generation int64) revision.ParentState {
		p := parent(content, generation)
		p.Uncached = true
		return p
	}
	run(t, []resolveCase{
		{name: "an older read", parent: parent("A", 4), log: log{stored("a", 1, "A", at(1)), stored("b", 2, "B", at(5))}, want: "Stale"},
		{name: "even if nothing changed", parent: parent("B", 4), log: log{stored("b", 2, "B", at(5))}, want: "Stale"},
		{name: "the fence is not only the newest revision", parent: parent("A", 4), log: log{stored("a", 1, "A", at(5)), stored("b", 2, "B", at(2))}, want: "Stale"},
		{name: "nor one that stays", parent: parent("A", 4), log: log{stored("b", 2, "B", at(5), deleting)}, want: "Stale"},
		{name: "nor one that can be read", parent: parent("A", 4), log: log{stored("u", 2, "?", at(5))}, want: "Stale"},
		{name: "nothing is done on the way", parent: parent("A", 4), log: log{stored("a", 1, "A", unlabelled), stored("b", 2, "A", at(5))}, want: "Stale"},
		{name: "the same generation is new enough", parent: parent("A", 5), log: log{stored("b", 2, "B", at(5)), stored("a", 1, "A", at(5))}, want: "Rollback a by E1, number 3 (was 1)"},
		{
			name: "another parent's generations say nothing", parent: parent("A", 4), log: log{stored("a", 1, "A", by(otherUID, 5))},
			want: "NoChange a by E1, number 1, stamp parent@4",
		},
		{
			name: "read from the API server, a later stamp is a lie", parent: fresh("A", 4), log: log{stored("a", 1, "A", at(1)), stored("b", 2, "B", at(5))},
			want: "Rollback a by E1, number 3 (was 1), stamp parent@4",
		},
		{
			name: "and is put right where it is in the way", parent: fresh("A", 4), log: log{stored("a", 1, "A", at(5))},
			want: "NoChange a by E1, number 1, stamp parent@4",
		},
		{
			name: "a true stamp stays", parent: fresh("A", 4), log: log{stored("a", 1, "A", at(3))},
			want: "NoChange a by E1, number 1",
		},
	})
}

func TestResolveAsk(t *testing.T) {
	run(t, []resolveCase{
		{name: "could be a default", parent: parent("A+", 5), log: log{stored("a", 1, "A", at(4))}, want: "Ask, ask about a"},
		{
			name: "no right to ask", parent: parent("A+", 5), log: log{stored("a", 1, "A", at(4))}, noAsk: true,
			want: "RollForward, number 2, stamp parent@5",
		},
		{
			name: "it is", parent: parent("A+", 5), log: log{stored("a", 1, "A", at(4))}, answers: revision.Answers{"uid-a": true},
			want: "NoChange a by E3, number 1, stamp parent@5",
		},
		{
			name: "it is, and needs no asking again", parent: parent("A+", 5), log: log{stored("a", 1, "A", at(4))},
			answers: revision.Answers{"uid-a": true}, noAsk: true, want: "NoChange a by E3, number 1, stamp parent@5",
		},
		{
			name: "it is not", parent: parent("A+", 5), log: log{stored("a", 1, "A", at(4))}, answers: revision.Answers{"uid-a": false},
			want: "RollForward, number 2, stamp parent@5",
		},
		{
			name: "newest first, and only where it can matter", parent: parent("A+", 5),
			log: log{stored("a", 1, "A"), stored("b", 2, "B"), stored("c", 3, "A^"), stored("d", 4, "B+")}, want: "Ask, ask about c a",
		},
		{
			name: "what was answered is not asked again", parent: parent("A+", 5), log: log{stored("a", 1, "A"), stored("c", 3, "A^")},
			answers: revision.Answers{"uid-c": false}, want: "Ask, ask about a",
		},
		{
			name: "one yes is enough", parent: parent("A+", 5), log: log{stored("a", 1, "A"), stored("c", 3, "A^")},
			answers: revision.Answers{"uid-a": true}, want: "Rollback a by E3, number 4 (was 1), stamp parent@5",
		},
		{
			name: "the newest yes wins", parent: parent("A+", 5), log: log{stored("a", 1, "A"), stored("c", 3, "A^")},
			answers: revision.Answers{"uid-a": true, "uid-c": true}, want: "NoChange c by E3, number 3, stamp parent@5",
		},
		{
			name: "no question where bytes tell", parent: parent("A+", 5), log: log{stored("a", 1, "A+", at(2)), stored("c", 3, "A^")},
			want: "Rollback a by E1, number 4 (was 1), stamp parent@5",
		},
		{
			name: "live revisions are asked about first", parent: parent("A+", 5), log: log{stored("a", 1, "A", deleting), stored("c", 3, "A^")},
			want: "Ask, ask about c",
		},
		{
			name: "then terminating revisions", parent: parent("A+", 5), log: log{stored("a", 1, "A", deleting), stored("c", 3, "A^")},
			answers: revision.Answers{"uid-c": false}, want: "Ask, ask about a",
		},
		{
			name: "the rest of the log is put in order meanwhile", parent: parent("A+", 5),
			log: log{stored("a", 1, "A"), stored("x", 2, "A", unlabelled)}, want: "Ask, relabel x, a repeats x, ask about x",
		},
	})
}
