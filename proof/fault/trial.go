package fault

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
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

// trials lists the runs with faults of a scenario that takes k requests. The request comes first, so that a sweep that
// is cut short has tried every mode.
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
			if (i+j)%share == 0 { // otherwise it is the turn of another request
				out = append(out, failAt(scenario, at, mode))
			}
		}
		if len(s.Pairs) > 0 && i%share == 0 {
			pair := s.Pairs[i/share%len(s.Pairs)]
			out = append(out, failAt(scenario, at, pair[:]...))
		}
	}
	if scenario.Unaimed {
		return out
	}
	return append(out, s.aimed(scenario)...)
}

// failAt is the run in which a request fails, and those after it do if there are more modes.
func failAt(scenario *Scenario, at int, modes ...Mode) trial {
	t := trial{scenario: scenario}
	for i, mode := range modes {
		t.faults = append(t.faults, Fault{At: at + i, Mode: mode})
	}
	t.what = t.faults[0].String()
	for _, then := range modes[1:] {
		t.what += ", then " + then.String()
	}
	return t
}

// aimed are the runs of the sweep's aimed faults and refusals.
func (s *Sweep) aimed(scenario *Scenario) (out []trial) {
	for _, f := range s.Aimed {
		out = append(out, trial{scenario: scenario, what: f.String(), faults: []Fault{f}})
	}
	for _, r := range s.Refusals {
		out = append(out, trial{scenario: scenario, what: r.String(), refusals: []Refusal{r}})
	}
	return out
}

// named is the run of that name: just that one, whichever the sweep picks and however many requests a run takes today.
// The error says that there is none.
func (s *Sweep) named(name string, scenarios []Scenario) (trial, error) {
	for i := range scenarios {
		scenario := &scenarios[i]
		what, ok := strings.CutPrefix(name, scenario.Name+", ")
		if !ok {
			continue
		}
		runs := append(s.aimed(scenario), trial{scenario: scenario})
		if at, modes := numbered(what); at > 0 {
			runs = append(runs, failAt(scenario, at, modes...))
		}
		for _, t := range runs {
			if t.String() == name {
				return t, nil
			}
		}
	}
	return trial{}, fmt.Errorf("no scenario of this sweep has a run %q", name)
}

// numbered takes the words of [failAt] apart; zero if they are others.
func numbered(what string) (at int, modes []Mode) {
	head, tail, _ := strings.Cut(what, ", k=")
	number, then, more := strings.Cut(tail, ", then ")
	names := []string{head}
	if more {
		names = append(names, strings.Split(then, ", then ")...)
	}
	for _, name := range names {
		i := slices.IndexFunc(Modes(), func(m Mode) bool { return m.String() == name })
		if i < 0 {
			return 0, nil
		}
		modes = append(modes, Modes()[i])
	}
	at, err := strconv.Atoi(number)
	if err != nil {
		return 0, nil
	}
	return at, modes
}

// OneOf is for [Sweep.Part]: of n parts of about the same size it picks the first, and one of the others, which is
// another one with each turn, so that n-1 turns have them all.
func OneOf(n, turn int) func(run string) bool {
	return func(run string) bool {
		h := fnv.New32a()
		_, _ = h.Write([]byte(run))
		part := int(h.Sum32() % uint32(n))
		return part == 0 || part == 1+turn%(n-1)
	}
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
