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
