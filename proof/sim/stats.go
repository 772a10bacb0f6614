package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Stats counts what happened, by name. A situation that no seed reaches is a defect of the simulation.
type Stats map[string]int

func (s Stats) count(what string) { s[what]++ }

// faults is how many faults were injected: requests that failed, managers that ended or were started beside another
// one, and caches that were cut, or filled from an old list.
func (s Stats) faults() int {
	n := s["kills between requests"] + s["late requests"] + s["old lists"] + s["relists"] + s["two managers"]
	for what, times := range s {
		if strings.HasPrefix(what, "fault ") {
			n += times
		}
	}
	return n
}

// Add adds up.
func (s Stats) Add(other Stats) {
	for what, n := range other {
		s[what] += n
	}
}

// String is one line for each name.
func (s Stats) String() string {
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(s)) {
		fmt.Fprintf(&b, "%10d %s\n", s[what], what)
	}
	return b.String()
}
