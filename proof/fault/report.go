package fault

import (
	"fmt"
	"strings"
	"time"

	"github.com/cairn-dev/cairn/proof/check"
)

// This file is what a sweep found, as values and as text.

// Report is what a sweep found.
type Report struct {
	// Requests is how many mutating requests each scenario took without faults, by its name.
	Requests map[string]int
	// Runs is how many runs there were, and Injected how many requests were made to fail in them.
	Runs, Injected int
	// States is how many states of the cluster were checked: the writes of all runs.
	States int
	// Violations is how many promises were broken. A run that did not come to its end broke one, if no other.
	Violations int
	// Missed are the runs that ended before their fault was due: statuses are coalesced differently each time, so not
	// every run takes the same number of requests.
	Missed []string
	// Failures are the runs that went wrong, in the order of the runs.
	Failures []Failure
	// Took is the time for all of it.
	Took time.Duration
}

// Failure is a run that went wrong.
type Failure struct {
	// Run names it: its scenario and its faults.
	Run string
	// Request is the line of the first request that was made to fail; empty if none was.
	Request string
	// Err is what went wrong in the run, nil if it came to its end.
	Err error
	// Violations are the promises that it broke.
	Violations []check.Violation
	// Log is the mutating requests of the run, one on a line.
	Log string
	// Replay is how to run it again.
	Replay string
}

// String says what went wrong, after which fault, which requests there were, and how to see it again.
func (f *Failure) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:", f.Run)
	if f.Err != nil {
		fmt.Fprintf(&b, " %v", f.Err)
	}
	for _, v := range f.Violations {
		fmt.Fprintf(&b, "\n%s", v)
	}
	if f.Request != "" {
		fmt.Fprintf(&b, "\nthe fault:    %s", f.Request)
	}
	if f.Replay != "" {
		fmt.Fprintf(&b, "\nrun it again: %s", f.Replay)
	}
	fmt.Fprintf(&b, "\nall requests:\n%s", f.Log)
	return b.String()
}

// outcome is what one run came to.
type outcome struct {
	trial     trial
	namespace string
	// rest and end are the versions at which the run had come to its end, and at which it was left. rest is zero, and
	// err set, if it did not get there.
	rest, end uint64
	err       error
	entries   []check.Entry
	requests  []Request
	log       string
	count     int
	hits      int
	// What the checker says, later.
	states     int
	violations []check.Violation
}

// take keeps what the injector and the wire know.
func (o *outcome) take(e *Env) {
	o.entries, o.requests, o.log = e.wire.Entries(), e.Faults.Requests(), e.Faults.Log()
	o.count, o.hits = e.Faults.Count(), e.Faults.Hits()
}

// String says it in one line, before the checker has looked.
func (o *outcome) String() string {
	switch {
	case o.err != nil:
		return "FAILED: " + o.err.Error()
	case o.hits == 0 && o.trial.what != "":
		return fmt.Sprintf("ended after %d requests, before the fault", o.count)
	}
	return fmt.Sprintf("ended, %d requests", o.count)
}

func (o *outcome) failure(replay func(string) string) Failure {
	f := Failure{Run: o.trial.String(), Err: o.err, Violations: o.violations, Log: o.log}
	if replay != nil {
		f.Replay = replay(f.Run)
	}
	for _, r := range o.requests {
		if r.Fault != "" {
			f.Request = r.String()
			break
		}
	}
	return f
}

func (r *Report) add(o *outcome, replay func(string) string) {
	r.Runs++
	r.Injected += o.hits
	r.States += o.states
	if o.trial.what == "" {
		r.Requests[o.trial.scenario.Name] = o.count
	} else if o.hits == 0 {
		r.Missed = append(r.Missed, o.trial.String())
	}
	if o.err == nil && len(o.violations) == 0 {
		return
	}
	r.Violations += max(1, len(o.violations))
	r.Failures = append(r.Failures, o.failure(replay))
}

// Summary is the report in one line.
func (r *Report) Summary() string {
	return fmt.Sprintf("%d faults injected, %d states checked, %d violations, %.0f s", r.Injected, r.States, r.Violations, r.Took.Seconds())
}

// String is the report as text: one line, and more for each failure.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d scenarios, %d runs, %d of them ended before their fault, %d went wrong: %s\n",
		len(r.Requests), r.Runs, len(r.Missed), len(r.Failures), r.Summary())
	for i := range r.Failures {
		fmt.Fprintf(&b, "\n%v\n", &r.Failures[i])
	}
	return b.String()
}
