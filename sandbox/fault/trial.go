package fault

import (
	"cmp"
	"slices"
)

// This file lists the runs of a sweep: which faults each of them has.

// trial is one run: a scenario and what is to fail in it, if anything.
type trial struct {
	scenario *Scenario
	// what says it in words; empty in a clean run.
	what     string
	faults   []Fault
	refusals []Refusal
}

// String names the run, and is what [Sweep.Only] asks for.
func (t trial) String() string { return t.scenario.Name + ", " + cmp.Or(t.what, "no fault") }

// plan makes a plan of a trial. Only what happens in the run's namespace counts.
func (t trial) plan(namespace string) Plan {
	return Plan{
		Faults: t.faults, Refusals: t.refusals,
		Count: func(r Request) bool { return r.Namespace == namespace && Counted(r) },
	}
}

// trials lists the runs with faults of a scenario that takes k requests. The request comes first, so that a sweep that is
// cut short has tried every mode.
func (s *Sweep) trials(scenario *Scenario, k int) []trial {
	modes, points := s.Modes, s.Points
	if modes == nil {
		modes = Modes()
	}
	if scenario.Points != nil {
		points = scenario.Points
	}
	if points == nil {
		points = All
	}
	var out []trial
	share := max(1, scenario.Share)
	for i, at := range points(k) {
		for j, mode := range modes {
			if (i+j)%share != 0 {
				continue // it is the turn of another request
			}
			f := Fault{At: at, Mode: mode}
			out = append(out, trial{scenario: scenario, what: f.String(), faults: []Fault{f}})
		}
		if len(s.Pairs) > 0 && i%share == 0 {
			pair := s.Pairs[i/share%len(s.Pairs)]
			first, then := Fault{At: at, Mode: pair[0]}, Fault{At: at + 1, Mode: pair[1]}
			out = append(out, trial{scenario: scenario, what: first.String() + ", then " + pair[1].String(), faults: []Fault{first, then}})
		}
	}
	if scenario.Unaimed {
		return out
	}
	for _, f := range s.Aimed {
		out = append(out, trial{scenario: scenario, what: f.String(), faults: []Fault{f}})
	}
	for _, r := range s.Refusals {
		out = append(out, trial{scenario: scenario, what: r.String(), refusals: []Refusal{r}})
	}
	return out
}

// only keeps the trial that is asked for, or all of them.
func (s *Sweep) only(trials []trial) []trial {
	return slices.DeleteFunc(trials, func(t trial) bool { return s.Only != "" && s.Only != t.String() })
}

// Few picks the first, the second, the middle and the last request.
func Few(k int) []int {
	var out []int
	for _, at := range []int{1, 2, k / 2, k} {
		if at > 0 && at <= k && !slices.Contains(out, at) {
			out = append(out, at)
		}
	}
	return out
}

// All picks every request.
func All(k int) []int {
	out := make([]int, k)
	for i := range out {
		out[i] = i + 1
	}
	return out
}

// Every picks each n-th request, from the first on.
func Every(n int) func(k int) []int {
	return func(k int) []int {
		return slices.DeleteFunc(All(k), func(at int) bool { return at%n != 1%n })
	}
}
