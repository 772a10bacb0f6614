package mutants

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// This file looks for the mutants of controllers that are not simulated, in one run of the sweep over the real API server.
// That the same run finds nothing in the code as it is, the sweep shows.

// broken is a line of a report that names an invariant.
var broken = regexp.MustCompile(`(?m)^\s*([A-Z]\d+) at \d+: (.*)$`)

// ofASweep is how long a run may take. Most mutants do not come to the end.
const ofASweep = 40 * time.Second

// sweep builds the sweep with a mutant in it, and does the one run that shows it.
func sweep(t *testing.T, m *Mutant, overlay, dir string) caught {
	t.Helper()
	start := time.Now()
	binary := filepath.Join(dir, "sweep.test")
	if _, err := run(t.Context(), ".", "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, "../fault"); err != nil {
		t.Fatal(err)
	}
	subject, name, ok := strings.Cut(m.Sweep, ": ")
	if !ok {
		t.Fatalf("sweep: %q: want a controller, a colon, and a run", m.Sweep)
	}
	t.Cleanup(func() { _ = os.Remove(binary) }) // it is as large as Kubernetes
	out, err := run(t.Context(), "../fault", "env", "CAIRN_CHECK=full", "CAIRN_FAULT="+name, "CAIRN_PATIENCE="+ofASweep.String(),
		binary, "-test.v", "-test.run=^TestSweep$/^"+subject+"$")
	c := caught{took: time.Since(start)}
	for _, line := range broken.FindAllStringSubmatch(out, -1) {
		if slices.Contains(m.Expect, line[1]) && !slices.Contains(c.Broken, line[1]) {
			c.Broken, c.Sentence = append(c.Broken, line[1]), line[2]
		}
	}
	if len(c.Broken) == 0 {
		t.Errorf("%s\nNothing shows it: no violation of any of %v: %v\n%s", m.Sentence, m.Expect, err, out)
	}
	return c
}
