package layout_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// This file sees that what CI runs can be run by anybody: a step of a workflow calls a target of the Makefile, and
// nothing else.

var (
	targetLine = regexp.MustCompile(`(?m)^([a-z-]+):(?:[^=]|$)`)
	makeLine   = regexp.MustCompile(`^make ([a-z-]+)$`)
)

func TestWorkflowsCallMake(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	targets := targetsOf(string(makefile))
	names, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*.y*ml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(names) < 2 {
		t.Fatalf("%d workflows are too few: the test looks past them", len(names))
	}
	for _, name := range names {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		report(t, checkWorkflow(filepath.Base(name), src, targets))
	}
}

// targetsOf returns the targets of a Makefile.
func targetsOf(makefile string) []string {
	var out []string
	for _, found := range targetLine.FindAllStringSubmatch(makefile, -1) {
		out = append(out, found[1])
	}
	return out
}

// checkWorkflow finds the lines of a workflow that call something else than a target, and jobs that run nothing.
func checkWorkflow(name string, src []byte, targets []string) (broken []string) {
	var workflow struct {
		Jobs map[string]struct {
			Steps []struct {
				Run string `json:"run"`
			} `json:"steps"`
		} `json:"jobs"`
	}
	if err := yaml.Unmarshal(src, &workflow); err != nil {
		return []string{name + ": " + err.Error()}
	}
	if len(workflow.Jobs) == 0 {
		broken = append(broken, name+": there is no job")
	}
	for id, job := range workflow.Jobs {
		lines := 0
		for _, step := range job.Steps {
			for line := range strings.Lines(step.Run) {
				lines++
				line = strings.TrimSpace(line)
				switch called := makeLine.FindStringSubmatch(line); {
				case called == nil:
					broken = append(broken, fmt.Sprintf("%s: job %s runs %q: only make TARGET is allowed", name, id, line))
				case !slices.Contains(targets, called[1]):
					broken = append(broken, fmt.Sprintf("%s: job %s runs %q: the Makefile has no such target", name, id, line))
				}
			}
		}
		if lines == 0 {
			broken = append(broken, fmt.Sprintf("%s: job %s runs nothing", name, id))
		}
	}
	return broken
}

func TestCheckWorkflow(t *testing.T) {
	targets := targetsOf("BIN   := bin\ntest: build ## run\n.PHONY: lint\nlint:\nx:=1\n")
	if want := []string{"test", "lint"}; !slices.Equal(targets, want) {
		t.Fatalf("targets are %q, not %q", targets, want)
	}
	for _, c := range []struct{ run, want string }{
		{"run: make test", ""},
		{"run: |\n          make lint\n          make test", ""},
		{"run: make nothing", "no such target"},
		{"run: go test ./...", "only make"},
		{"run: make test && rm -rf /", "only make"},
		{"run: |\n          make test\n          echo", "only make"},
		{"uses: actions/checkout@v6", "runs nothing"},
	} {
		got := checkWorkflow("ci.yml", []byte("jobs:\n  a:\n    steps:\n      - "+c.run+"\n"), targets)
		switch {
		case c.want == "" && len(got) > 0, c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)):
			t.Errorf("%s: %q, want %q", c.run, got, c.want)
		}
	}
	if got := checkWorkflow("ci.yml", []byte("name: ci\n"), targets); len(got) != 1 {
		t.Errorf("a workflow without jobs: %q", got)
	}
}
