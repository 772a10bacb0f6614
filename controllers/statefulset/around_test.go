package statefulset

// What source.go asks of the other slots is summed up once for a plan. Here it is compared with the same questions
// answered the slow way, one walk over the set for each slot, and measured.

import (
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

// reachedSlowly is what [planner.reached] means.
func reachedSlowly(p *planner, i int) bool {
	down, gone := 0, 0
	someOld := slices.ContainsFunc(p.slots, func(s slot) bool { return s.alive && !s.conforms })
	for _, s := range p.slots[i+1:] {
		switch {
		case s.vacant:
			continue
		case !s.alive:
			gone++
			if s.pod != nil && going(s.pod) && !p.ordered && someOld {
				down, gone = down+gone, 0
			}
			continue
		case !s.conforms:
			return false
		case !s.available:
			down++
		}
		down, gone = down+gone, 0
	}
	return down < p.budget
}

// holdsUpSlowly is what [planner.holdsUp] means.
func holdsUpSlowly(p *planner, i int) bool {
	down := 1
	var begun, proven, unproven, gap, missing, before, serving bool
	for j, s := range p.slots {
		old := s.alive && !s.conforms
		serving = serving || old && s.available
		proven = proven || s.conforms && s.available
		if j == i || s.vacant {
			continue
		}
		begun = begun || s.conforms
		unproven = unproven || s.conforms && s.unproven(p.now)
		gap = gap || j > i && !s.alive
		missing = missing || j > i && s.pod == nil
		before = before || j > i && old && !s.available
		if !s.available {
			down++
		}
	}
	if p.ordered {
		return !begun && !gap
	}
	return (!missing && !before && (proven || !unproven) || !serving) && down >= p.budget
}

// upSlowly is the lowest slot with an available pod above one without.
func upSlowly(p *planner) int {
	down := false
	for i, s := range p.slots {
		if down && s.available {
			return i
		}
		down = down || !s.available && !s.vacant
	}
	return len(p.slots)
}

func TestSumsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, err := newPlanner(situations().Draw(t, "facts"))
		if err != nil {
			t.Fatal(err)
		}
		if fast, slow := p.around.up, upSlowly(p); fast != slow {
			t.Fatalf("slot %d is available above one that is down, and by walking %d", fast, slow)
		}
		for i, s := range p.slots {
			if s.vacant {
				continue
			}
			if fast, slow := p.reached(i), reachedSlowly(p, i); fast != slow {
				t.Fatalf("%s reached: %v, and by walking %v", s.name, fast, slow)
			}
			if fast, slow := p.holdsUp(i), holdsUpSlowly(p, i); fast != slow {
				t.Fatalf("%s holds up: %v, and by walking %v", s.name, fast, slow)
			}
		}
	})
}

// BenchmarkPlan plans for sets in the middle of a rollout. The time for each pod does not depend on how many there are.
func BenchmarkPlan(b *testing.B) {
	for _, n := range []int{500, 2000, 8000} {
		var pods []*corev1.Pod
		for i := range n {
			rev := "a"
			if i > n/2 {
				rev = "b"
			}
			pods = append(pods, pod(int64(i), rev))
		}
		for name, policy := range map[string]setOption{"OrderedReady": func(*appsv1.StatefulSet) {}, "Parallel": parallel} {
			f := given(web(replicas(int32(n)), policy, atOnce("10%")), pods...)
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				for b.Loop() {
					mustPlan(b, f)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/pod")
			})
		}
	}
}
