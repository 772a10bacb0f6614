package rollout_test

// Rollouts as a person would watch them, kept as text: testdata/*.golden. "go test ./rollout -update" writes them anew.

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cairn-dev/cairn/rollout"
)

var update = flag.Bool("update", false, "write testdata/*.golden anew")

// story is one rollout: who is there, and what happens at which tick.
type story struct {
	name, about string
	world       *world
	events      map[int]event
	// stuck says that it does not end, and why that is right.
	stuck string
}

type event struct {
	about string
	do    func(w *world)
}

func edit(rev string) event {
	return event{"the template changes to " + rev, func(w *world) { w.target = rev }}
}

func mark(w *world, set func(p *place), places ...int) *world {
	for _, i := range places {
		set(w.places[i-1])
	}
	return w
}

func stories() []story {
	dead := func(p *place) { p.dead = true; p.pods[0].ready, p.pods[0].available = false, false }
	unready := func(p *place) { p.pods[0].ready, p.pods[0].available = false, false }
	leaving := func(p *place) { p.leaving = true }
	toB := map[int]event{1: edit("B")}
	return []story{
		{name: "one_at_a_time", about: "five nodes, maxUnavailable 1", world: newWorld(5, rollout.Strategy{MaxUnavailable: 1}), events: toB},
		{
			name: "broken_node", about: "five nodes, maxUnavailable 2, and nothing ever becomes ready on n3",
			world: mark(newWorld(5, rollout.Strategy{MaxUnavailable: 2}), dead, 3), events: toB,
		},
		{name: "surge_one", about: "three nodes, maxSurge 1", world: newWorld(3, rollout.Strategy{MaxSurge: 1}), events: toB},
		{
			name: "surge_half", about: "four nodes, maxSurge 50% is 2, n3 is not ready, a pod takes a while to be available",
			world: func() *world {
				w := broken(mark(newWorld(4, rollout.Strategy{MaxSurge: 2}), unready, 3), "A") // so it stays not ready
				w.minReady = true
				return w
			}(), events: toB,
		},
		{
			name: "leaving", about: "four nodes, maxUnavailable 1; n1 and n4 take no new pods",
			world: mark(newWorld(4, rollout.Strategy{MaxUnavailable: 1}), leaving, 1, 4), events: toB,
		},
		{
			name: "leaving_with_surge", about: "four nodes, maxSurge 1; n1 and n4 take no new pods, n2 is not ready",
			world: broken(mark(mark(newWorld(4, rollout.Strategy{MaxSurge: 1}), leaving, 1, 4), unready, 2), "A"), events: toB,
		},
		{
			name: "held", about: "four ordinals from the top, the lower two held (a partition), then one",
			world: mark(func() *world {
				w := newWorld(4, rollout.Strategy{MaxUnavailable: 1})
				slices.Reverse(w.places)
				return w
			}(), func(p *place) { p.held = true }, 3, 4),
			events: map[int]event{1: edit("B"), 5: {"the partition goes down by one", func(w *world) { w.places[2].held = false }}},
			stuck:  "n1 is held",
		},
		{
			name: "ordered", about: "five ordinals from the top, one after the other, maxUnavailable 2; n4 is not ready, n2 has to stay for a while",
			world: broken(mark(mark(func() *world {
				w := newWorld(5, rollout.Strategy{MaxUnavailable: 2, Ordered: true})
				slices.Reverse(w.places)
				return w
			}(), unready, 2), func(p *place) { p.stays = "it is busy" }, 4), "A"),
			events: map[int]event{1: edit("B"), 6: {"it is not busy any more", func(w *world) { w.places[3].stays = "" }}},
		},
		{
			name: "crowded", about: "three nodes, maxUnavailable 1; somebody made a second pod on n2",
			world:  mark(newWorld(3, rollout.Strategy{MaxUnavailable: 1}), func(p *place) { p.pods = append(p.pods, &pod{name: "stray", rev: "A"}) }, 2),
			events: toB,
		},
		{
			name: "paused", about: "three nodes, maxUnavailable 1, paused in the middle while n3 breaks",
			world: newWorld(3, rollout.Strategy{MaxUnavailable: 1}),
			events: map[int]event{
				1: edit("B"),
				2: {"pause, and n3 breaks", func(w *world) { w.strategy.Paused = true; w.broken["A"] = true; unready(w.places[2]) }},
				4: {"resume", func(w *world) { w.strategy.Paused = false }},
			},
		},
		{
			name: "fix_forward", about: "four nodes, maxUnavailable 2; B never becomes ready, C repairs it",
			world:  broken(newWorld(4, rollout.Strategy{MaxUnavailable: 2}), "B"),
			events: map[int]event{1: edit("B"), 5: edit("C")},
		},
		{
			name: "fix_forward_with_surge", about: "three nodes, maxSurge 1; B never becomes ready, C repairs it",
			world:  broken(newWorld(3, rollout.Strategy{MaxSurge: 1}), "B"),
			events: map[int]event{1: edit("B"), 4: edit("C")},
		},
		{
			name: "broken_revision", about: "four nodes, maxUnavailable 1; B never becomes ready and nobody does anything",
			world: broken(newWorld(4, rollout.Strategy{MaxUnavailable: 1}), "B"), events: toB, stuck: "B is broken",
		},
		{
			name: "revert", about: "four nodes, maxUnavailable 1, back to A in the middle",
			world: newWorld(4, rollout.Strategy{MaxUnavailable: 1}), events: map[int]event{1: edit("B"), 4: edit("A")},
		},
		{
			name: "revert_with_surge", about: "three nodes, maxSurge 1, back to A in the middle",
			world: newWorld(3, rollout.Strategy{MaxSurge: 1}), events: map[int]event{1: edit("B"), 4: edit("A")},
		},
	}
}

func broken(w *world, rev string) *world {
	w.broken[rev] = true
	return w
}

func TestGoldenRollouts(t *testing.T) {
	known := map[string]bool{}
	for _, s := range stories() {
		known[s.name+".golden"] = true
		t.Run(s.name, func(t *testing.T) {
			file := filepath.Join("testdata", s.name+".golden")
			got := s.tell(t)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-golden +got), -update takes it over\n%s", diff)
			}
		})
	}
	files, err := filepath.Glob("testdata/*.golden")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !known[filepath.Base(file)] {
			t.Errorf("%s belongs to no story", file)
		}
	}
}

// tell plays a story until nothing changes any more, and returns what there was to see.
func (s story) tell(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	fmt.Fprintf(&out, "# %s\n", s.about)
	w, last := s.world, ""
	for tick := 1; tick < 30; tick++ {
		w.grow()
		if e, ok := s.events[tick]; ok {
			fmt.Fprintf(&out, "\n== %s\n", e.about)
			e.do(w)
		}
		plan, picture := w.plan(), w.picture()
		fmt.Fprintf(&out, "\n%s\n", picture)
		fmt.Fprintf(&out, "  %d of %d updated, %d available\n", plan.Updated, plan.Total, plan.Available)
		show(&out, plan)
		w.thin()
		for _, step := range plan.Steps {
			if err := w.do(step); err != nil {
				t.Error(err)
			}
		}
		w.fill()
		if len(plan.Steps) == 0 && picture == last && picture == w.picture() && s.over(tick) {
			break
		}
		last = picture
	}
	switch err := w.settled(); {
	case s.stuck == "" && (err != nil || !w.plan().Complete()):
		t.Errorf("it did not end: %v", err)
	case s.stuck != "" && w.plan().Complete():
		t.Errorf("it ended, although %s", s.stuck)
	case s.stuck != "":
		fmt.Fprintf(&out, "\n== and so it stays: %s\n", s.stuck)
	default:
		fmt.Fprint(&out, "\n== complete\n")
	}
	return out.String()
}

// over reports whether no event is left.
func (s story) over(tick int) bool {
	for at := range s.events {
		if at > tick {
			return false
		}
	}
	return true
}

// show prints steps and waits; neighbours that wait for the same thing share a line.
func show(out *strings.Builder, plan rollout.Plan) {
	for _, step := range plan.Steps {
		fmt.Fprintf(out, "  %s %s: %s\n", strings.ToLower(string(step.Verb)), strings.TrimSpace(step.Unit+" "+step.Instance), step.Reason)
	}
	for i := 0; i < len(plan.Waiting); {
		reason, who := plan.Waiting[i].Reason, []string{}
		for ; i < len(plan.Waiting) && plan.Waiting[i].Reason == reason; i++ {
			who = append(who, plan.Waiting[i].Unit)
		}
		fmt.Fprintf(out, "  wait %s: %s\n", strings.Join(who, " "), reason)
	}
}
