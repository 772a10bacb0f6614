package main

// This file runs test packages of proof, and counts what passes.

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

// suites are the packages of proof that are run, in the order of the columns.
var suites = []string{"e2e", "e2e/composite", "e2e/install", "fault"}

// handover are the tests in which the other controllers and cairn take over from each other.
var handover = regexp.MustCompile(`Handover`)

// results are the tests of a package and how each ended: pass, fail or skip.
type results map[string]string

func (r results) failed() (n int) {
	for _, how := range r {
		if how == "fail" {
			n++
		}
	}
	return n
}

// only returns the results of the tests whose names match.
func (r results) only(names *regexp.Regexp) results {
	out := maps.Clone(r)
	maps.DeleteFunc(out, func(name, _ string) bool { return !names.MatchString(name) })
	return out
}

// cell says how many passed, and which failed. No test at all is a failure.
func (r results) cell() string {
	count := map[string]int{}
	var failed []string
	for _, name := range slices.Sorted(maps.Keys(r)) {
		count[r[name]]++
		if r[name] == "fail" {
			failed = append(failed, name)
		}
	}
	text := fmt.Sprintf("%d passed", count["pass"])
	if count["skip"] > 0 {
		text += fmt.Sprintf(", %d skipped", count["skip"])
	}
	if len(failed) > 0 || len(r) == 0 {
		text = "**" + text + ", failed: " + strings.Join(failed, ", ") + "**"
	}
	return text
}

// event is what go test -json prints of a test, or of a package if Test is empty.
type event struct {
	Action  string `json:"Action"`
	Package string `json:"Package"`
	Test    string `json:"Test"`
	Output  string `json:"Output"`
}

// test runs the suites with more in the environment. Output of tests that fail goes to out.
func test(ctx context.Context, out io.Writer, env []string) (map[string]results, error) {
	args := []string{"test", "-json", "-count=1", "-timeout", "40m", "-ldflags", "-s -w"}
	found := map[string]results{}
	for _, suite := range suites {
		args, found[suite] = append(args, "./"+suite), results{}
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = "proof"
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = out
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	said, start := map[string]string{}, time.Now()
	for lines := bufio.NewReader(stdout); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var e event
		if json.Unmarshal(line, &e) != nil {
			continue // what go itself prints
		}
		suite := strings.TrimPrefix(e.Package, "github.com/cairn-dev/cairn/proof/")
		if e.Test == "" && e.ended() {
			fmt.Fprintf(out, "compat: %s: %s after %s\n", suite, e.Action, time.Since(start).Round(time.Second))
		}
		found[suite].note(out, e, said)
	}
	if err := cmd.Wait(); err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return found, nil // that a test has failed is in them
}

func (e event) ended() bool { return slices.Contains([]string{"pass", "fail", "skip"}, e.Action) }

// note adds what an event says. said is what tests have printed that run.
func (r results) note(out io.Writer, e event, said map[string]string) {
	key := e.Package + " " + e.Test
	if e.Action == "output" {
		said[key] += e.Output
	}
	if !e.ended() {
		return
	}
	switch {
	case e.Test != "" && !strings.Contains(e.Test, "/"):
		r[e.Test] = e.Action
	case e.Test == "" && e.Action == "fail" && r.failed() == 0:
		r["the package"] = e.Action
	}
	if e.Action == "fail" {
		fmt.Fprint(out, said[key])
	}
	delete(said, key)
}
