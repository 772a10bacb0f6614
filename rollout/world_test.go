package rollout_test

// A small world to roll out in: places with pods, a controller that does what the planner asks and fills what is empty,
// and checks, at each step, of what may never happen.

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cairn-dev/cairn/rollout"
)

type pod struct {
	name, rev        string
	ready, available bool
	young            bool // made in this tick, so it does not grow in it
}

type place struct {
	key  string
	pods []*pod
	// going is for how many ticks a deleted pod still blocks the place.
	going int
	// dead places never make a pod ready.
	dead, held, leaving bool
	stays               string
}

func (p *place) available() bool {
	return slices.ContainsFunc(p.pods, func(p *pod) bool { return p.available })
}

// world is the set, and what the controller was told.
type world struct {
	places   []*place
	strategy rollout.Strategy
	// target is what is to be rolled out, held what held places are filled with.
	target, held string
	// broken revisions never become ready. With minReady, a pod is ready for one tick before it is available.
	broken   map[string]bool
	minReady bool
	// linger is for how many ticks a deleted pod blocks its place.
	linger int
	made   map[string]int
}

// newWorld has n places that serve revision A.
func newWorld(n int, s rollout.Strategy) *world {
	w := &world{strategy: s, target: "A", held: "A", broken: map[string]bool{}, made: map[string]int{}}
	for i := range n {
		p := &place{key: fmt.Sprintf("n%d", i+1)}
		w.places = append(w.places, p)
		w.create(p, "A")
		*p.pods[0] = pod{name: p.pods[0].name, rev: "A", ready: true, available: true}
	}
	return w
}

func (w *world) create(p *place, rev string) {
	name := p.key + "-" + strings.ToLower(rev)
	w.made[name]++
	if n := w.made[name]; n > 1 {
		name += strconv.Itoa(n)
	}
	p.pods = append(p.pods, &pod{name: name, rev: rev, young: true})
}

// units is the picture that a controller takes of the world.
func (w *world) units() []rollout.Unit {
	var units []rollout.Unit
	for _, p := range w.places {
		u := rollout.Unit{Key: p.key, Held: p.held, Leaving: p.leaving, Stays: p.stays}
		for _, pod := range p.pods {
			side := &u.Old
			if pod.rev == w.target {
				side = &u.New
			}
			if *side != nil {
				u.Crowded = true
				continue
			}
			*side = &rollout.Instance{Name: pod.name, Revision: pod.rev, Ready: pod.ready, Available: pod.available}
		}
		units = append(units, u)
	}
	return units
}

func (w *world) plan() rollout.Plan { return rollout.New(w.units(), w.strategy) }

// unavailable counts the places of the set that do not serve.
func (w *world) unavailable() (n int) {
	for _, p := range w.places {
		if !p.leaving && !p.available() {
			n++
		}
	}
	return n
}

// do carries a step out. It returns what the step breaks, judged by the world as it is at that moment.
func (w *world) do(step rollout.Step) error {
	p := w.places[slices.IndexFunc(w.places, func(p *place) bool { return p.key == step.Unit })]
	if step.Verb == rollout.Create {
		w.create(p, w.target)
		surging := 0
		for _, p := range w.places {
			if len(p.pods) > 1 {
				surging++
			}
		}
		if surging > w.strategy.MaxSurge {
			return fmt.Errorf("R2: %d places surge after %+v", surging, step)
		}
		return nil
	}
	i := slices.IndexFunc(p.pods, func(pod *pod) bool { return pod.name == step.Instance })
	if i < 0 {
		return fmt.Errorf("there is no such pod: %+v", step)
	}
	if p.pods[i].rev == w.target {
		return fmt.Errorf("P3: a conforming pod is deleted: %+v", step)
	}
	served, before := p.available(), w.unavailable()
	p.pods = slices.Delete(p.pods, i, i+1)
	p.going = w.linger
	if served && !p.available() && !p.leaving && before >= w.strategy.MaxUnavailable {
		return fmt.Errorf("R1: %d were unavailable before %+v", before, step)
	}
	return nil
}

// thin removes the surplus of crowded places: of several old pods, or several new ones, the one that serves best stays.
func (w *world) thin() {
	for _, p := range w.places {
		for _, isNew := range []bool{false, true} {
			var best *pod
			p.pods = slices.DeleteFunc(slices.Clone(p.pods), func(pod *pod) bool {
				if (pod.rev == w.target) == isNew && (best == nil || rank(pod) > rank(best)) {
					best = pod
				}
				return false
			})
			p.pods = slices.DeleteFunc(p.pods, func(pod *pod) bool { return (pod.rev == w.target) == isNew && pod != best })
		}
	}
}

func rank(p *pod) int {
	switch {
	case p.available:
		return 2
	case p.ready:
		return 1
	default:
		return 0
	}
}

// fill gives every place that has nothing, and wants something, what it is to have.
func (w *world) fill() {
	for _, p := range w.places {
		switch {
		case p.going > 0:
			p.going--
		case len(p.pods) > 0 || p.leaving:
		case p.held:
			w.create(p, w.held)
		default:
			w.create(p, w.target)
		}
	}
}

// grow makes every pod a little older.
func (w *world) grow() {
	for _, p := range w.places {
		for _, pod := range p.pods {
			switch {
			case pod.young:
				pod.young = false
			case p.dead || w.broken[pod.rev]:
			default:
				pod.available = pod.ready || !w.minReady
				pod.ready = true
			}
		}
	}
}

// settled reports whether all is as it was asked: what is not held is at the target, what is leaving has nothing old.
func (w *world) settled() error {
	for _, p := range w.places {
		switch {
		case p.held && !slices.ContainsFunc(p.pods, func(pod *pod) bool { return pod.rev == w.target }) && len(p.pods) == 1:
		case p.leaving && len(p.pods) == 0:
		case len(p.pods) == 1 && p.pods[0].rev == w.target:
		default:
			return fmt.Errorf("%s is not done", w.picture())
		}
	}
	return nil
}

// picture shows the world in one line: B+ serves, B~ is ready but not available, B- is neither, "." is nothing.
func (w *world) picture() string {
	var out []string
	for _, p := range w.places {
		var pods []string
		for _, pod := range p.pods {
			pods = append(pods, pod.rev+[]string{"-", "~", "+"}[rank(pod)])
		}
		if len(pods) == 0 {
			pods = []string{"."}
		}
		var words []string
		for word, is := range map[string]bool{"held": p.held, "leaving": p.leaving, "dead": p.dead} {
			if is {
				words = append(words, word)
			}
		}
		slices.Sort(words)
		out = append(out, strings.Join(append(words, p.key, strings.Join(pods, "")), " "))
	}
	return strings.Join(out, " | ")
}
