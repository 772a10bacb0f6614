package fault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// This file runs a scenario once without faults, and then once for each fault.

// patience is how long one run may take.
const patience = time.Minute

// Scenario is what a user does with a controller, and how one sees that the controller has done its part.
type Scenario struct {
	// Name is for reports.
	Name string
	// Drive acts as the user. It may wait for the controller in between, and stop and start the manager. It must use
	// nothing that another run uses at the same time.
	Drive func(context.Context, *Env) error
	// Ended returns nil once the end condition holds. It is called again and again after Drive.
	Ended func(context.Context, *Env) error
}

// Sweep is what a scenario is run against.
type Sweep struct {
	// User is the administrator's configuration: for the scenario, and to make namespaces.
	User *rest.Config
	// Config is what the manager runs with: its rights are those that are shipped.
	Config *rest.Config
	// Manager runs a manager until its context ends. It is called again, in the same process, after each kill, and has to
	// build everything afresh, caches included.
	Manager func(context.Context, *rest.Config) error
	// Namespaced are the resources that the manager watches in all namespaces; in a run it sees those of the run only.
	Namespaced []string

	// Modes are the ways to fail; nil means all, an empty list none.
	Modes []Mode
	// Points picks which of k requests fail, from 1 to k; nil means all.
	Points func(k int) []int
	// Refusals make one run each.
	Refusals []Refusal
	// Parallel is how many runs there are at once; zero means one.
	Parallel int
	// Patience bounds one run. Zero means a minute.
	Patience time.Duration

	// Observe, if not nil, is called before the manager and the scenario start, so that it can watch the namespace from
	// its beginning. The function that it returns is called once the end condition holds, with the manager still running,
	// or when the run has failed; its error is a failure of the run.
	Observe func(context.Context, *Env) (check func(context.Context) error, err error)
	// Progress, if not nil, gets a line after each run, from several goroutines if runs are parallel.
	Progress func(line string)
}

// trial is one run: a fault, a refusal, or neither.
type trial struct {
	scenario string
	fault    Fault
	refusal  *Refusal
}

func (t trial) String() string {
	switch {
	case t.refusal != nil:
		return fmt.Sprintf("%s, %s", t.scenario, t.refusal)
	case t.fault.At > 0:
		return fmt.Sprintf("%s, %s, k=%d", t.scenario, t.fault.Mode, t.fault.At)
	}
	return t.scenario + ", no fault"
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

// Run runs the scenario without faults, then with each fault in turn. What the runs find is in the report. An error means
// that there is no report: the clean run failed already, or the context ended.
func (s *Sweep) Run(ctx context.Context, scenario Scenario) (*Report, error) {
	clean, err := s.once(ctx, scenario, trial{scenario: scenario.Name})
	if err != nil {
		return nil, err
	}
	if clean.failure != nil {
		return nil, fmt.Errorf("the clean run of %s: %w\nall requests:\n%s", scenario.Name, clean.failure.Err, clean.failure.Log)
	}
	report := &Report{Scenario: scenario.Name, Requests: clean.requests}
	trials := s.trials(scenario.Name, clean.requests)
	outcomes := make([]outcome, len(trials))
	errs := make([]error, len(trials))

	var running sync.WaitGroup
	slots := make(chan struct{}, max(1, s.Parallel))
	for i, t := range trials {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			outcomes[i], errs[i] = s.once(ctx, scenario, t)
			if s.Progress != nil {
				s.Progress(fmt.Sprintf("%s: %s", t, outcomes[i]))
			}
		})
	}
	running.Wait()
	for _, o := range outcomes {
		report.add(o)
	}
	return report, errors.Join(errs...)
}

// trials lists the runs with faults. The request comes first, so that a sweep that is cut short has tried every mode.
func (s *Sweep) trials(scenario string, k int) []trial {
	modes, points := s.Modes, s.Points
	if modes == nil {
		modes = Modes()
	}
	if points == nil {
		points = All
	}
	var out []trial
	for _, at := range points(k) {
		for _, mode := range modes {
			out = append(out, trial{scenario: scenario, fault: Fault{At: at, Mode: mode}})
		}
	}
	for i := range s.Refusals {
		out = append(out, trial{scenario: scenario, refusal: &s.Refusals[i]})
	}
	return out
}

// once is one run. Its error is about the surroundings, never about the manager.
func (s *Sweep) once(ctx context.Context, scenario Scenario, t trial) (out outcome, err error) {
	c, err := kubernetes.NewForConfig(s.User)
	if err != nil {
		return out, err
	}
	limit := s.Patience
	if limit == 0 {
		limit = patience
	}
	ctx, done := context.WithTimeout(ctx, limit)
	defer done()
	namespace, err := makeNamespace(ctx, c, t.String())
	defer func() { err = errors.Join(err, dropNamespace(ctx, c, namespace)) }()
	if err != nil {
		return out, err
	}

	ctx, failed := context.WithCancelCause(ctx)
	defer failed(nil)
	e := &Env{
		Namespace: namespace, User: s.User, Faults: New(ctx, t.plan(namespace)),
		manager: s.config(namespace), run: s.Manager, failed: failed,
	}
	check := func(context.Context) error { return nil }
	if s.Observe != nil {
		if check, err = s.Observe(ctx, e); err != nil {
			return out, fmt.Errorf("observe %s: %w", t, err)
		}
	}
	e.Start(ctx)
	defer e.Stop()
	driven := drive(ctx, scenario, e)
	// A run that took too long is checked as well: what it did until then may say why.
	checking, enough := context.WithTimeout(context.WithoutCancel(ctx), cleanup)
	defer enough()
	return newOutcome(t, e.Faults, errors.Join(driven, check(checking))), nil
}

// drive lets the user act and waits for the end.
func drive(ctx context.Context, scenario Scenario, e *Env) error {
	if err := scenario.Drive(ctx, e); err != nil {
		return fmt.Errorf("drive: %w", err)
	}
	return e.Until(ctx, "the end condition", func(ctx context.Context) error { return scenario.Ended(ctx, e) })
}

// plan makes a plan of a trial. Only what happens in the run's namespace counts.
func (t trial) plan(namespace string) Plan {
	plan := Plan{Count: func(r Request) bool { return r.Namespace == namespace && Counted(r) }}
	if t.fault.At > 0 {
		plan.Faults = []Fault{t.fault}
	}
	if t.refusal != nil {
		plan.Refusals = []Refusal{*t.refusal}
	}
	return plan
}

// config is the manager's configuration, narrowed to a namespace.
func (s *Sweep) config(namespace string) *rest.Config {
	cfg := rest.CopyConfig(s.Config)
	cfg.Wrap(Within(namespace, s.Namespaced...))
	return cfg
}
