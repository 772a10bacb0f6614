package mutants

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// This file breaks the code once for each mutant, and sees that the simulation finds it.

const (
	// parallel is how many mutants are built and run at once.
	parallel = 2
	// patience is how many seeds may pass until a mutant is caught. make check runs many times more.
	patience = 1000
	// sample is the mutant that runs where not all do. Every world shows it.
	sample = "delete-by-name"
)

// load reads the mutants of testdata, by name.
func load(t *testing.T) []*Mutant {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out []*Mutant
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := Parse(strings.TrimSuffix(filepath.Base(file), ".txt"), data)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, m)
	}
	return out
}

// root is the root of the repository.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// each runs a test for every mutant, some at once, and returns when all are over.
func each(t *testing.T, mutants []*Mutant, test func(t *testing.T, m *Mutant)) {
	t.Helper()
	slots := make(chan struct{}, parallel)
	t.Run("mutants", func(t *testing.T) {
		for _, m := range mutants {
			t.Run(m.Name, func(t *testing.T) {
				t.Parallel()
				slots <- struct{}{}
				defer func() { <-slots }()
				test(t, m)
			})
		}
	})
}

// TestMutantsApply shows that every mutant applies to the current code and compiles. One process checks all of them: a
// "go build" for each took 200 seconds.
func TestMutantsApply(t *testing.T) {
	mutants := load(t)
	c := newCompiler(t, mutants)
	for _, m := range mutants {
		t.Run(m.Name, func(t *testing.T) {
			mutated, err := m.Apply(func(file string) ([]byte, error) { return os.ReadFile(filepath.Join(root(t), file)) })
			if err != nil {
				t.Fatal(err)
			}
			for _, dir := range m.Packages() {
				if err := c.check(dir, mutated); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// caught says how a mutant was found.
type caught struct {
	find

	took time.Duration
}

// TestMutantsAreCaught builds this very binary again with each mutant in it, and lets it run TestSeeds until that sees
// one of the promises broken that the mutant breaks. On the same seeds, the code as it is keeps all of them.
func TestMutantsAreCaught(t *testing.T) {
	mutants := load(t)
	all := len(mutants)
	if os.Getenv("CAIRN_CHECK") != "full" {
		mutants = slices.DeleteFunc(mutants, func(m *Mutant) bool { return m.Name != sample })
	}
	results := make([]caught, len(mutants))
	start := time.Now()
	each(t, mutants, func(t *testing.T, m *Mutant) {
		t.Helper()
		results[slices.Index(mutants, m)] = hunt(t, m)
	})
	caught, last := lastSeeds(mutants, results)
	healthy(t, mutants, last)
	_, _ = fmt.Fprintf(os.Stdout, "check: mutants: %d of %d run were caught (there are %d), by seed %d at the latest, in %.0f s\n",
		caught, len(mutants), all, slices.Max(append(slices.Collect(maps.Values(last)), 0)), time.Since(start).Seconds())
}

// hunt builds a mutated binary and runs seeds until one breaks a promise that the mutant breaks.
func hunt(t *testing.T, m *Mutant) caught {
	t.Helper()
	start := time.Now()
	dir := t.TempDir()
	overlay, err := m.Overlay(root(t), dir)
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "mutant.test")
	if _, err := run(t.Context(), ".", "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, "."); err != nil {
		t.Fatal(err)
	}
	out, err := run(t.Context(), ".", binary, append(m.arguments(t, dir), "-until="+strings.Join(m.Expect, " "))...)
	c := caught{took: time.Since(start)}
	defer func() { c.print(m) }()
	if err == nil {
		t.Errorf("%s\nNothing shows it: no violation of any of %v:\n%s", m.Sentence, m.Expect, out)
		return c
	}
	_, line, ok := strings.Cut(out, found)
	if !ok {
		t.Fatalf("%s\nIt ended without a find: %v", m.Sentence, err)
	}
	if err := json.NewDecoder(strings.NewReader(line)).Decode(&c.find); err != nil {
		t.Fatalf("the find in %q: %v", line, err)
	}
	return c
}

// arguments are those of a test binary that is to look for a mutant.
func (m *Mutant) arguments(t *testing.T, dir string) []string {
	t.Helper()
	args := []string{"-test.v", "-test.run=^TestSeeds$"}
	if m.Script == "" {
		return append(args, fmt.Sprintf("-seeds=%d", patience), "-world="+m.World, "-trouble="+m.Trouble)
	}
	script := filepath.Join(dir, "script.txt")
	if err := os.WriteFile(script, []byte(m.Script), 0o600); err != nil {
		t.Fatal(err)
	}
	return append(args, "-script="+script)
}

// healthy runs the code as it is: each scenario, and each kind of world, with each trouble, up to the seed at which its
// last mutant was caught.
func healthy(t *testing.T, mutants []*Mutant, last map[string]uint64) {
	t.Helper()
	var runs [][]string
	for _, m := range mutants {
		if m.Script != "" {
			runs = append(runs, m.arguments(t, t.TempDir()))
		}
	}
	for _, where := range slices.Sorted(maps.Keys(last)) {
		world, trouble, _ := strings.Cut(where, "/")
		runs = append(runs, []string{"-test.run=^TestSeeds$", fmt.Sprintf("-seeds=%d", last[where]), "-world=" + world, "-trouble=" + trouble})
	}
	for _, args := range runs {
		if _, err := run(t.Context(), ".", os.Args[0], args...); err != nil {
			t.Errorf("what catches the mutants finds fault with the code as it is: %v", err)
		}
	}
}

// print prints the line of a mutant immediately, so that a run that times out has printed the results before.
func (c *caught) print(m *Mutant) {
	if len(c.Broken) == 0 {
		_, _ = fmt.Printf("%-44s NOT CAUGHT in %.0f s\n", m.Name, c.took.Seconds())
		return
	}
	by := "scenario"
	if m.Script == "" {
		by = fmt.Sprintf("seed %d", c.Seed)
	}
	_, _ = fmt.Printf("%-44s %-10s %-9s %4.0f s  %.120s\n",
		m.Name, strings.Join(c.Broken, " "), by, c.took.Seconds(), strings.TrimSpace(c.Sentence))
}

// lastSeeds returns how many mutants were caught, and the last seed that it took in each world. The key of a world is
// its name, a slash and its trouble.
func lastSeeds(mutants []*Mutant, results []caught) (number int, last map[string]uint64) {
	last = map[string]uint64{}
	for i, m := range mutants {
		c := results[i]
		if len(c.Broken) == 0 {
			continue // or go test -run has left it out
		}
		number++
		if m.Script == "" {
			last[m.World+"/"+m.Trouble] = max(last[m.World+"/"+m.Trouble], c.Seed)
		}
	}
	return number, last
}

// run runs a program. Its output is in the error, too.
func run(ctx context.Context, dir, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return string(out), nil
}
