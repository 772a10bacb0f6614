package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/proof/check"
)

// This file is what goes wrong in a world for longer than one request takes: an admission policy that refuses, a
// webhook that changes pods, clocks that differ. A world has at most one such trouble. It comes and goes while the
// world is wild; then the world has to live with it for a while in which nothing else goes wrong (endure.go).
//
// All choices come from a stream of their own, so that a world without trouble is the same as ever.

// The troubles there are. AnyTrouble lets the seed choose: half of the worlds have none.
const (
	AnyTrouble = "any"
	NoTrouble  = ""
)

// trouble is what goes wrong, and what it needs for that.
type trouble struct {
	name string
	// chance makes its choices.
	chance *rand.Rand
	// on is whether it is there now.
	on bool
	// about says what it is, for the trace.
	about string

	denial *denial
	slow   *slow
	inject *injection
	// hook is the way in which the hook answers, nil if it answers well.
	hook *badAnswer
	// author is the way in which the function of an author fails, empty if it does not.
	author string
	// guards lets the user go for revisions that hold children back.
	guards bool
	// planted are the names under which the user has made revisions.
	planted map[string]bool
	// rejects says that kubelets reject the pods of an image.
	rejects bool
	// skew is how far the clocks of the kubelets are off.
	skew map[string]time.Duration
}

// troubles are all there are, and how to make each in a world: false if it has no place there.
var troubles = []struct {
	name   string
	weight int
	make   func(*trouble, *world) bool
}{
	{"deny", 6, (*trouble).makeDenial},
	{"quota", 2, (*trouble).makeQuota},
	{"slow", 1, (*trouble).makeSlow},
	{"mutate", 3, (*trouble).makeInjection},
	{"guards", 3, (*trouble).makeGuards},
	{"hook", 2, (*trouble).makeHook},
	{"clocks", 1, (*trouble).makeClocks},
	{"reject", 2, (*trouble).makeRejection},
}

// Troubles are the names of all troubles.
func Troubles() []string {
	var out []string
	for _, t := range troubles {
		out = append(out, t.name)
	}
	return out
}

// newTrouble chooses what goes wrong in the world of a seed; nil if nothing does.
func newTrouble(w *world, seed uint64, name string) *trouble {
	if name == NoTrouble {
		return nil
	}
	t := &trouble{chance: rand.New(rand.NewPCG(seed, 0x74726f75626c65))} //nolint:gosec // a simulation is repeatable on purpose
	plain := t.chance.IntN(2) == 0
	if name == AnyTrouble && plain {
		return nil
	}
	for range 20 { // not every trouble has a place in every world
		made := t.draw(name)
		if made != nil && made(t, w) {
			return t
		}
	}
	return nil
}

// draw draws a trouble of that name, or any; nil if there is none.
func (t *trouble) draw(name string) func(*trouble, *world) bool {
	total := 0
	for _, choice := range troubles {
		total += choice.weight
	}
	n := t.chance.IntN(total)
	for _, choice := range troubles {
		n -= choice.weight
		if choice.name == name || name == AnyTrouble && n < 0 {
			t.name = choice.name
			return choice.make
		}
	}
	return nil
}

// flip lets the trouble come or go, now and then.
func (w *world) flip() {
	if w.troubled().guards {
		w.attack()
	}
	if w.trouble == nil || w.trouble.chance.IntN(3) > 0 {
		return
	}
	w.setTrouble(!w.trouble.on)
}

func (w *world) setTrouble(on bool) {
	if w.trouble == nil || w.trouble.on == on {
		return
	}
	w.trouble.on = on
	if d := w.trouble.denial; d != nil {
		d.refused, d.other = 0, false
	}
	if on {
		w.stats.count("trouble " + w.trouble.name)
		w.tracef("trouble: %s", w.trouble.about)
	} else {
		w.tracef("the trouble is over: %s", w.trouble.about)
		if w.trouble.guards {
			w.repair()
		}
	}
}

// troubled returns what goes wrong now, an empty trouble if nothing does.
func (w *world) troubled() *trouble {
	if w.trouble == nil || !w.trouble.on {
		return &trouble{}
	}
	return w.trouble
}

func pick[T any](chance *rand.Rand, of ...T) T { return of[chance.IntN(len(of))] }

func (t *trouble) aboutf(format string, args ...any) { t.about = fmt.Sprintf(format, args...) }

// childResources are the resources of children in a world, each once.
func (w *world) childResources() []schema.GroupVersionResource {
	var out []schema.GroupVersionResource
	for _, k := range w.kinds {
		for _, r := range k.rules() {
			if !r.Children.Empty() && !slices.Contains(out, r.Children) {
				out = append(out, r.Children)
			}
		}
	}
	return out
}

func (w *world) checkKinds() []check.Kind {
	kinds := make([]check.Kind, 0, len(w.kinds))
	for _, k := range w.kinds {
		kinds = append(kinds, k.rules()...)
	}
	return kinds
}

// slow is an admission webhook that takes its time over the writes to one resource.
type slow struct {
	resource schema.GroupVersionResource
	takes    time.Duration
}

func (t *trouble) makeSlow(w *world) bool {
	resources := w.childResources()
	for _, k := range w.kinds {
		if k.hasRevisions() {
			resources = append(resources, k.Check.Revisions)
		}
	}
	t.slow = &slow{pick(t.chance, resources...), pick(t.chance, time.Second, 8*time.Second, 25*time.Second)}
	t.aboutf("writes to %s take %s", t.slow.resource.Resource, t.slow.takes)
	return true
}

// due reports whether a request may be served now: one that a slow webhook looks at waits.
func (w *world) dueNow(c *call) bool {
	s := w.troubled().slow
	if s == nil || !c.writes() || c.late || c.request.Resource != s.resource {
		return true
	}
	if c.due.IsZero() {
		c.due = w.clock.Now().Add(s.takes)
	}
	return !w.clock.Now().Before(c.due)
}

// nextDue is how long at most nothing happens until a slow request is served, or something becomes of a Job.
func (w *world) nextDue(most time.Duration) time.Duration {
	for _, c := range w.calls {
		if !w.dueNow(c) {
			most = min(most, c.due.Sub(w.clock.Now()))
		}
	}
	return w.nextJob(most)
}

func (t *trouble) makeHook(w *world) bool {
	if len(w.kinds) > 0 && w.kinds[0].Check.Controller == "" && w.kinds[0].Add != nil && w.kinds[0].hasChildren() {
		t.author = pick(t.chance, authorFails, authorPanics)
		t.aboutf("%s", t.author)
		return true
	}
	if !w.hosts() {
		return false
	}
	for t.hook == nil || t.hook.name == comeLater {
		t.hook = &badAnswers[t.chance.IntN(len(badAnswers))]
	}
	t.aboutf("the hook answers: %s", t.hook.name)
	return true
}

func (t *trouble) makeClocks(_ *world) bool {
	t.skew = map[string]time.Duration{}
	for n := range maxMachines {
		t.skew[fmt.Sprintf("node-%d", n)] = time.Duration(t.chance.IntN(20*60)-10*60) * time.Second
	}
	t.aboutf("the clocks of the nodes are off: %v", t.skew)
	return true
}

// kubeletClock is what time it is on a node.
func (w *world) kubeletClock(node string) time.Time {
	return w.clock.Now().Add(w.troubled().skew[node]).Truncate(time.Second)
}
