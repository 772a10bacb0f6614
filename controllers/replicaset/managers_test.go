package replicaset

// Several managers act on one ReplicaSet at once, each on a view of its own age. The plans are the real ones; the
// store, the caches and the requests are a model: a history of what is there, and a place in it for each manager.

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// store is the linear history of one ReplicaSet's pods.
type store struct {
	history  []map[string]*corev1.Pod
	replicas []int32 // of the parent, another history
	freed    []int   // when names became free, and when orphans were adopted
	creates  []struct{ at, view int }
	uids     int
}

func (s *store) now() map[string]*corev1.Pod { return s.history[len(s.history)-1] }
func (s *store) at() int                     { return len(s.history) - 1 }

func (s *store) write(change func(map[string]*corev1.Pod)) {
	next := maps.Clone(s.now())
	change(next)
	s.history = append(s.history, next)
}

func (s *store) alive() (out []string) {
	for name, p := range s.now() {
		if active(p) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// copilot is one of the managers: what it sees, what it wrote last, and the requests of the pass that it is in.
type copilot struct {
	view, parent, wrote int
	plan                *plan
	acted               int // the view that plan was made from
}

func (m *copilot) decide(s *store) {
	if m.plan != nil || m.view < m.wrote {
		return // in a pass, or waiting for its own writes
	}
	view := s.history[m.view]
	f := factsOf(web(s.replicas[m.parent]), slices.Collect(maps.Values(view))...)
	m.plan, m.acted = makePlan(f), m.view
}

// request sends the next request of the pass.
func (m *copilot) request(s *store) {
	switch {
	case m.plan == nil:
	case len(m.plan.Creates) > 0:
		name := m.plan.Creates[0].name
		m.plan.Creates = m.plan.Creates[1:]
		if found, ok := s.now()[name]; ok {
			if !active(found) {
				m.plan = nil // taken: the pass is dropped
				return
			}
			m.wrote = max(m.wrote, s.since(name))
			return
		}
		s.uids++
		made := pod(name, func(p *corev1.Pod) { p.UID = types.UID(fmt.Sprintf("%06d", s.uids)) })
		s.write(func(pods map[string]*corev1.Pod) { pods[name] = made })
		m.wrote = s.at()
		s.creates = append(s.creates, struct{ at, view int }{s.at(), m.acted})
	case len(m.plan.Deletes) > 0:
		doomed := m.plan.Deletes[0].pod
		m.plan.Deletes = m.plan.Deletes[1:]
		if found, ok := s.now()[doomed.Name]; ok && found == doomed { // the version that was looked at
			s.remove(doomed.Name)
			m.wrote = s.at()
		}
	default:
		m.plan = nil
	}
}

// since is when the pod of that name came to be as it is.
func (s *store) since(name string) int {
	for i := s.at(); i > 0; i-- {
		if s.history[i-1][name] != s.history[i][name] {
			return i
		}
	}
	return 0
}

func (s *store) remove(name string) {
	s.write(func(pods map[string]*corev1.Pod) {
		p := pods[name].DeepCopy()
		going(p)
		pods[name] = p
	})
}

func (s *store) vanish(name string) {
	s.write(func(pods map[string]*corev1.Pod) { delete(pods, name) })
	s.freed = append(s.freed, s.at())
}

// adopt is a manager that gives a parent an orphan, under a name that is not of its sequence.
func (s *store) adopt() {
	s.uids++
	name := fmt.Sprint("orphan-", s.uids)
	orphan := pod(name, func(p *corev1.Pod) { p.UID = types.UID(fmt.Sprintf("%06d", s.uids)) })
	s.write(func(pods map[string]*corev1.Pod) { pods[name] = orphan })
	s.freed = append(s.freed, s.at())
}

// oldest is the oldest view of which an effect is not in view.
func (s *store) oldest(view int) int {
	for changed := true; changed; {
		changed = false
		for _, c := range s.creates {
			if c.at > view && c.view < view {
				view, changed = c.view, true
			}
		}
	}
	return view
}

// bound fails if more pods are alive than may be, after a manager made one. A manager alone makes none too many.
func (s *store) bound(t *rapid.T, m *copilot, managers int) {
	oldest, freed := s.oldest(m.acted), 0
	for _, at := range s.freed {
		if at > oldest && managers > 1 {
			freed++
		}
	}
	if most := int(slices.Max(s.replicas)); len(s.alive()) > most+freed {
		t.Fatalf("%d pods are alive, %d wanted at most, and %d names became free since the oldest view: %v", len(s.alive()), most, freed, s.alive())
	}
}

// TestTwoManagers: whatever the views of two or three managers, and whoever deletes pods and scales meanwhile, the
// bound of the package comment holds after each create, and once all is quiet just as many pods are there as asked for.
// Where no name became free, that is the bound itself: no pod too many, ever.
func TestTwoManagers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &store{history: []map[string]*corev1.Pod{{}}, replicas: []int32{rapid.Int32Range(0, 5).Draw(t, "replicas")}}
		team := make([]*copilot, rapid.IntRange(1, 3).Draw(t, "managers"))
		for i := range team {
			team[i] = &copilot{}
		}
		one := func() *copilot { return rapid.SampledFrom(team).Draw(t, "manager") }
		request := func(m *copilot) {
			before := len(s.creates)
			m.request(s)
			if len(s.creates) > before {
				s.bound(t, m, len(team))
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"see":     func(t *rapid.T) { m := one(); m.view = rapid.IntRange(m.view, s.at()).Draw(t, "view") },
			"see all": func(*rapid.T) { m := one(); m.view, m.parent = s.at(), len(s.replicas)-1 },
			"decide":  func(*rapid.T) { one().decide(s) },
			"request": func(*rapid.T) { request(one()) },
			"pass":    func(*rapid.T) { passOf(one(), s, request) },
			"scale": func(t *rapid.T) {
				s.replicas = append(s.replicas, rapid.Int32Range(0, 5).Draw(t, "replicas"))
			},
			"kill": func(t *rapid.T) {
				if alive := s.alive(); len(alive) > 0 {
					s.remove(rapid.SampledFrom(alive).Draw(t, "pod"))
				}
			},
			"adopt": func(*rapid.T) {
				if len(team) > 1 { // by one of the others
					s.adopt()
				}
			},
			"vanish": func(t *rapid.T) {
				if names := slices.Sorted(maps.Keys(s.now())); len(names) > 0 {
					if name := rapid.SampledFrom(names).Draw(t, "pod"); !active(s.now()[name]) {
						s.vanish(name)
					}
				}
			},
		})
		for range 4 { // quiet: everybody sees all, and acts
			for _, m := range team {
				for m.plan != nil {
					request(m)
				}
				m.view, m.parent = s.at(), len(s.replicas)-1
				passOf(m, s, request)
			}
		}
		if want := int(s.replicas[len(s.replicas)-1]); len(s.alive()) != want {
			t.Fatalf("%v are alive, want %d", s.alive(), want)
		}
	})
}

func passOf(m *copilot, s *store, request func(*copilot)) {
	m.decide(s)
	for m.plan != nil {
		request(m)
	}
}
