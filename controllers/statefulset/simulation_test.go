package statefulset

// Whole rollouts as golden files: makePlan in a loop over pods in memory. A pod that is deleted goes one tick later;
// one that is created runs after a tick and is ready after another, or crashes if its revision is broken. Between the
// ticks people edit the template, lose pods, scale.

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/cairn-dev/cairn/pass"
	"github.com/cairn-dev/cairn/revision"
)

// simulation is one set with its pods.
type simulation struct {
	set  *appsv1.StatefulSet
	pods []*corev1.Pod
	// target and current are the revisions as status names them, broken those that never become ready.
	target, current string
	broken          map[string]bool
	// events happen before a tick, and say what.
	events map[int]func(*simulation) string
	out    strings.Builder
}

const maxTicks = 40

// run goes on until all that happens has happened and nothing is left to do. The budget is checked at every tick.
func (s *simulation) run(t *testing.T) string {
	t.Helper()
	last, quiet := "", 0
	for tick := range maxTicks {
		if event, ok := s.events[tick]; ok {
			fmt.Fprintf(&s.out, "== %s\n", event(s))
			last, quiet = "", 0
		}
		p := mustPlan(t, s.facts())
		if picture := s.line(p); picture != last {
			fmt.Fprintf(&s.out, "%2d  %s", tick, picture)
			last, quiet = picture, 0
		} else if quiet++; quiet > 2 && !s.moreAfter(tick) {
			return s.out.String()
		}
		s.check(t, tick, p)
		s.tick(p)
	}
	t.Fatalf("no end after %d ticks:\n%s", maxTicks, s.out.String())
	return ""
}

func (s *simulation) facts() facts {
	f := given(s.set, s.pods...)
	f.update, f.current = revisionNamed(s.target), revisionNamed(s.current)
	return f
}

func (s *simulation) moreAfter(tick int) bool {
	for at := range s.events {
		if at > tick {
			return true
		}
	}
	return false
}

// line shows each pod, lowest first, as revision and state: + available, . not yet, ! was ready, x going; then the
// condition, then what is done.
func (s *simulation) line(p *plan) string {
	var cells []string
	for _, pod := range s.pods {
		sign := "."
		switch {
		case going(pod):
			sign = "x"
		case isReady(pod):
			sign = "+"
		case !neverReady(pod):
			sign = "!"
		}
		ordinal, _ := ordinalOf(s.set, pod.Name)
		cells = append(cells, fmt.Sprintf("%d:%s%s", ordinal, strings.TrimPrefix(revisionOf(pod), "web-"), sign))
	}
	slices.Sort(cells)
	rep := report{plan: p, recorded: &pass.Recorded{Update: &revision.Revision{Name: "web-" + s.target}}}
	c := rep.rollout(s.set, now).Updated
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n    current %s, %d of them; updated %d, available %d; Updated=%s %s: %s\n",
		strings.Join(cells, " "), s.current, p.counts.current, p.counts.updated, p.counts.available, c.Status, c.Reason, c.Message)
	for _, create := range p.Creates {
		fmt.Fprintf(&b, "    create %s: %s\n", podName(s.set, create.ordinal), create.reason)
	}
	for _, d := range p.Deletes {
		fmt.Fprintf(&b, "    delete %s: %s\n", d.pod.Name, d.reason)
	}
	if p.promote && s.current != s.target {
		fmt.Fprintf(&b, "    promote %s\n", s.target)
	}
	return b.String()
}

// check fails if a plan takes more away than it may (R1), touches a conforming pod that it should leave alone (P3), or
// makes a pod below the partition from anything but the current revision (P5).
func (s *simulation) check(t *testing.T, tick int, p *plan) {
	t.Helper()
	up, taken := int64(0), int64(0)
	for _, pod := range s.pods {
		if ordinal, _ := ordinalOf(s.set, pod.Name); alive(pod) && isReady(pod) && inRange(s.set, ordinal) {
			up++
		}
	}
	for _, d := range p.Deletes {
		ordinal, _ := ordinalOf(s.set, d.pod.Name)
		if !inRange(s.set, ordinal) {
			continue
		}
		if isReady(d.pod) {
			taken++
		}
		if revisionOf(d.pod) == "web-"+s.target {
			t.Errorf("tick %d: %s conforms and is deleted", tick, d.pod.Name)
		}
	}
	partition, budget, _ := strategyOf(s.set)
	if _, count := ordinals(s.set); taken > 0 && count-up+taken > int64(budget) {
		t.Errorf("tick %d: %d of %d serve, and %d go", tick, up, count, taken)
	}
	for _, c := range p.Creates {
		start, _ := ordinals(s.set)
		if c.ordinal-start < int64(partition) && c.from.name != "web-"+s.current {
			t.Errorf("tick %d: web-%d is below the partition and comes from %s", tick, c.ordinal, c.from.name)
		}
	}
}

// tick lets time pass, and then carries a plan out.
func (s *simulation) tick(p *plan) {
	s.pods = slices.DeleteFunc(s.pods, going)
	for _, pod := range s.pods {
		switch {
		case pod.Status.Phase == corev1.PodPending:
			pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &pod.CreationTimestamp
			stuck(pod)
		case !neverReady(pod) || !alive(pod):
		case s.broken[strings.TrimPrefix(revisionOf(pod), "web-")]:
			crashing(pod)
		default:
			ready(time.Minute)(pod)
		}
	}
	for _, c := range p.Creates {
		s.pods = append(s.pods, pod(c.ordinal, strings.TrimPrefix(c.from.name, "web-"), pending))
	}
	for _, d := range p.Deletes {
		terminating(d.pod)
	}
	if p.promote {
		s.current = s.target
	}
}

func (s *simulation) pod(ordinal int64) *corev1.Pod {
	i := slices.IndexFunc(s.pods, func(p *corev1.Pod) bool { return p.Name == podName(s.set, ordinal) })
	return s.pods[i]
}

// What can happen between two ticks.

func edits(rev string) func(*simulation) string {
	return func(s *simulation) string {
		s.target = rev
		return "the template changes to " + rev
	}
}

func loses(ordinals ...int64) func(*simulation) string {
	return func(s *simulation) string {
		for _, o := range ordinals {
			terminating(s.pod(o))
		}
		return fmt.Sprintf("lost: %v", ordinals)
	}
}

func crashes(ordinals ...int64) func(*simulation) string {
	return func(s *simulation) string {
		for _, o := range ordinals {
			unready(s.pod(o))
		}
		return fmt.Sprintf("not ready any more, and it stays so: %v", ordinals)
	}
}

func sets(what string, option setOption) func(*simulation) string {
	return func(s *simulation) string {
		option(s.set)
		return what
	}
}

func TestSimulatedRollouts(t *testing.T) {
	type events = map[int]func(*simulation) string
	abc, aba := events{0: edits("b"), 5: edits("c")}, events{0: edits("b"), 5: edits("a")}
	deletingAll := func(more events) events {
		for i := range 4 {
			more[7+4*i] = loses(int64(3 - i))
		}
		return more
	}
	for name, c := range map[string]struct {
		set    []setOption
		broken string
		start  int // how many pods are there; less than none means all four
		events events
	}{
		"ordered-abc":        {nil, "", -1, abc},
		"ordered-aba":        {nil, "", -1, aba},
		"parallel-abc":       {[]setOption{parallel}, "", -1, abc},
		"parallel-aba":       {[]setOption{parallel}, "", -1, aba},
		"two-at-once-abc":    {[]setOption{atOnce(2)}, "", -1, abc},
		"two-at-once-aba":    {[]setOption{atOnce(2)}, "", -1, aba},
		"parallel-two-abc":   {[]setOption{parallel, atOnce(2)}, "", -1, abc},
		"parallel-two-aba":   {[]setOption{parallel, atOnce(2)}, "", -1, aba},
		"partition-abc":      {[]setOption{partition(2)}, "", -1, abc},
		"partition-aba":      {[]setOption{partition(2)}, "", -1, aba},
		"partition-lowered":  {[]setOption{partition(3)}, "", -1, events{0: edits("b"), 6: loses(1), 12: sets("the partition is 0", partition(0))}},
		"partition-raised":   {[]setOption{partition(2)}, "b", -1, events{0: edits("b"), 6: sets("the partition is 4", partition(4)), 8: loses(3)}},
		"on-delete-abc":      {[]setOption{onDelete}, "", -1, deletingAll(events{0: edits("b"), 2: loses(3), 5: edits("c")})},
		"on-delete-aba":      {[]setOption{onDelete}, "", -1, deletingAll(events{0: edits("b"), 2: loses(3), 5: edits("a")})},
		"broken-then-fixed":  {nil, "b", -1, events{0: edits("b"), 6: edits("c")}},
		"broken-then-undone": {nil, "b", -1, events{0: edits("b"), 6: edits("a")}},
		"broken-kept":        {[]setOption{keepsNeverReady}, "b", -1, events{0: edits("b"), 6: edits("a"), 12: loses(3)}},
		"broken-parallel":    {[]setOption{parallel}, "b", -1, events{0: edits("b"), 6: edits("a")}},
		"broken-from-birth":  {nil, "a", 0, events{4: edits("b")}},
		"born-broken-para":   {[]setOption{parallel}, "a", 0, events{4: edits("b")}},
		"lost-on-the-way":    {nil, "", -1, events{0: edits("b"), 6: loses(0, 1)}},
		"lost-broken":        {[]setOption{parallel}, "b", -1, events{0: edits("b"), 5: loses(0), 9: edits("a")}},
		"crashed-ordered":    {nil, "", -1, events{0: crashes(0), 1: edits("b"), 3: loses(0)}},
		"crashed-parallel":   {[]setOption{parallel}, "", -1, events{0: crashes(0), 1: edits("b")}},
		"scaled-on-the-way":  {nil, "", -1, events{0: edits("b"), 5: sets("scaled to 5", replicas(5)), 16: sets("scaled to 2", replicas(2))}},
		"scaled-parallel":    {[]setOption{parallel}, "", -1, events{0: edits("b"), 5: sets("scaled to 6", replicas(6))}},
		"moved":              {nil, "", -1, events{0: sets("ordinals start at 2", startAt(2))}},
		"to-nothing":         {nil, "", -1, events{0: sets("scaled to 0", replicas(0)), 7: edits("b"), 9: sets("scaled to 2", replicas(2))}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &simulation{set: web(append([]setOption{replicas(4)}, c.set...)...), target: "a", current: "a", events: c.events, broken: map[string]bool{c.broken: true}}
			for i := range 4 {
				if c.start < 0 {
					s.pods = append(s.pods, pod(int64(i), "a"))
				}
			}
			golden(t, name+".golden", s.run(t))
		})
	}
}
