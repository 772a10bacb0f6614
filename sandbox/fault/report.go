package fault

import (
	"fmt"
	"strings"
)

// This file is what a sweep found, as values and as text.

// Report is what a sweep of one scenario found.
type Report struct {
	// Scenario is its name.
	Scenario string
	// Requests is how many mutating requests the run without faults took.
	Requests int
	// Runs is how many runs with faults there were, and Injected how many requests were made to fail in them.
	Runs, Injected int
	// Missed are the runs that ended before their fault was due: statuses are coalesced differently each time, so not
	// every run takes the same number of requests.
	Missed []string
	// Failures are the runs that went wrong, in the order of the runs.
	Failures []Failure
}

// Failure is a run that went wrong.
type Failure struct {
	// Scenario is its name; Mode and At say which fault there was, if Refusal is nil.
	Scenario string
	Mode     Mode
	At       int
	// Refusal is what was refused instead.
	Refusal *Refusal
	// Request is the line of the first request that was made to fail; empty if none was.
	Request string
	// Err is what went wrong.
	Err error
	// Log is the mutating requests of the run, one on a line.
	Log string
}

// String says what went wrong, after which fault, and which requests there were.
func (f *Failure) String() string {
	t := trial{scenario: f.Scenario, fault: Fault{At: f.At, Mode: f.Mode}, refusal: f.Refusal}
	return fmt.Sprintf("%s: %v\nthe fault:    %s\nall requests:\n%s", t, f.Err, f.Request, f.Log)
}

// outcome is what one run came to.
type outcome struct {
	trial    trial
	requests int
	hits     int
	failure  *Failure
}

func newOutcome(t trial, in *Injector, err error) outcome {
	o := outcome{trial: t, requests: in.Count(), hits: in.Hits()}
	if err == nil {
		return o
	}
	o.failure = &Failure{Scenario: t.scenario, Mode: t.fault.Mode, At: t.fault.At, Refusal: t.refusal, Err: err, Log: in.Log()}
	for _, r := range in.Requests() {
		if r.Fault != "" {
			o.failure.Request = r.String()
			break
		}
	}
	return o
}

// String says it in one line.
func (o outcome) String() string {
	switch {
	case o.failure != nil:
		return "FAILED: " + o.failure.Err.Error()
	case o.hits == 0:
		return fmt.Sprintf("ended after %d requests, before the fault", o.requests)
	}
	return fmt.Sprintf("ok, %d requests", o.requests)
}

func (r *Report) add(o outcome) {
	r.Runs++
	r.Injected += o.hits
	if o.hits == 0 {
		r.Missed = append(r.Missed, o.trial.String())
	}
	if o.failure != nil {
		r.Failures = append(r.Failures, *o.failure)
	}
}

// String is the report as text: one line, and more for each failure.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d requests without faults; %d runs, %d faults injected, %d runs ended before their fault, %d failures\n",
		r.Scenario, r.Requests, r.Runs, r.Injected, len(r.Missed), len(r.Failures))
	for i := range r.Failures {
		fmt.Fprintf(&b, "\n%v\n", &r.Failures[i])
	}
	return b.String()
}
