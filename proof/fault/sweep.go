package fault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/check/recording"
)

// This file runs scenarios once without faults, and then once for each fault.

// patience is how long one run may take. On an idle machine it takes a few seconds, and on a busy one as many minutes.
const patience = 8 * time.Minute

// Scenario is what a user does with a controller, and how one sees that the controller has done its part.
type Scenario struct {
	// Name is for reports.
	Name string
	// Drive acts as the user. It may wait for the controller in between, stop and start the manager, and inject faults of
	// its own. It must use nothing that another run uses at the same time.
	Drive func(context.Context, *Env) error
	// Ended returns nil once the end condition holds. It is called again and again after Drive.
	Ended func(context.Context, *Env) error
	// AtRest, if not nil, is called once, when the managers have come to rest after the end. Its error is a failure.
	AtRest func(context.Context, *Env) error
	// Managers is how many run at once; zero means one. The sweep's faults are for the first.
	Managers int
	// Points, if not nil, picks the requests that fail in this scenario, instead of the sweep's.
	Points func(k int) []int
	// Share spreads the ways to fail over the requests of a long scenario: each request that is picked fails in every
	// Share-th way, the next one in those after them. Zero means that each fails in all.
	Share int
	// Unaimed leaves out the sweep's aimed faults and refusals.
	Unaimed bool
	// Once leaves the scenario out of the sweep: it brings its own faults, and is run just as it is.
	Once bool
}

// Sweep is what scenarios are run against.
type Sweep struct {
	// User is the administrator's configuration: for the scenario, to make namespaces, and to record.
	User *rest.Config
	// Config is what the manager runs with: its rights are those that are shipped.
	Config *rest.Config
	// Manager runs a manager until its context ends. It is called again, in the same process, after each kill, and has to
	// build everything afresh, caches included. [NamespaceOf] its context is that of the run, and it logs to the logger of
	// its context.
	Manager func(context.Context, *rest.Config) error
	// Namespaced are the resources that the manager watches in all namespaces; in a run it sees those of the run only.
	Namespaced []string
	// Kinds say what the runs are judged by, and Scopes are the resources that these rules read.
	Kinds  []check.Kind
	Scopes []check.Scope
	// Notes, if not nil, returns what was noted of a run, by its namespace, by whoever plays the hooks of its controllers.
	Notes func(namespace string) []check.Note

	// Modes are the ways to fail; nil means all, an empty list none.
	Modes []Mode
	// Pairs are ways in which a request and the one after it fail. Each request that is picked gets one of them, in turn.
	Pairs [][2]Mode
	// Points picks which of k requests fail, from 1 to k; nil means all.
	Points func(k int) []int
	// Aimed and Refusals make one run each.
	Aimed    []Fault
	Refusals []Refusal
	// Part, if not nil, picks runs with faults by their names; nil means all.
	Part func(run string) bool
	// Slots bounds how many runs there are at once, of all sweeps that have the same channel, by its capacity; nil means
	// one. Runs mostly wait.
	Slots chan struct{}
	// Patience bounds one run. Zero means eight minutes.
	Patience time.Duration

	// Only, if not empty, is the name of the one run to do, as reports give it. [Sweep.Run] fails if there is none.
	Only string
	// Replay, if not nil, says by which command a run is done again.
	Replay func(run string) string
	// Progress, if not nil, gets a line after each run, from several goroutines if runs are parallel.
	Progress func(line string)
}

// run is a sweep that is under way.
type run struct {
	*Sweep

	client   kubernetes.Interface
	recorder *recording.Recorder
}

// Run runs each scenario without faults, then with each fault in turn, and has every run judged at every resource
// version. What the runs find is in the report. An error means that there is no report: the recording has a gap, the
// cluster does not answer, or the context ended.
func (s *Sweep) Run(ctx context.Context, scenarios ...Scenario) (*Report, error) {
	began := time.Now()
	r := &run{Sweep: s}
	var err error
	if r.client, err = kubernetes.NewForConfig(s.User); err != nil {
		return nil, err
	}
	if r.recorder, err = s.record(ctx); err != nil {
		return nil, fmt.Errorf("record the sweep: %w", err)
	}
	defer r.recorder.Stop()
	outcomes, err := r.outcomes(ctx, scenarios)
	if err != nil {
		return nil, err
	}
	if err := r.judge(ctx, outcomes); err != nil {
		return nil, err
	}
	report := &Report{Requests: map[string]int{}}
	for _, o := range outcomes {
		report.add(o, s.Replay)
	}
	report.Took = time.Since(began)
	return report, nil
}

// outcomes does the runs: the one that is asked for, or each scenario without faults and then with each of its faults.
func (r *run) outcomes(ctx context.Context, scenarios []Scenario) ([]*outcome, error) {
	if r.Only != "" {
		one, err := r.named(r.Only, scenarios)
		if err != nil {
			return nil, err
		}
		return r.all(ctx, []trial{one})
	}
	var trials []trial
	for i := range scenarios {
		trials = append(trials, trial{scenario: &scenarios[i]})
	}
	clean, err := r.all(ctx, trials)
	if err != nil {
		return nil, err
	}
	trials = nil
	for _, o := range clean {
		if !o.trial.scenario.Once && o.err == nil {
			trials = append(trials, r.trials(o.trial.scenario, o.count)...)
		}
	}
	if r.Part != nil {
		trials = slices.DeleteFunc(trials, func(t trial) bool { return !r.Part(t.String()) })
	}
	faulty, err := r.all(ctx, trials)
	return slices.Concat(clean, faulty), err
}

// all runs trials, a few at once.
func (r *run) all(ctx context.Context, trials []trial) ([]*outcome, error) {
	outcomes := make([]*outcome, len(trials))
	errs := make([]error, len(trials))
	var running sync.WaitGroup
	slots := r.Slots
	if slots == nil {
		slots = make(chan struct{}, 1)
	}
	for i, t := range trials {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			var err error
			if outcomes[i], err = r.answered(ctx, t); err != nil {
				errs[i] = fmt.Errorf("%s: %w", t, err)
			}
			if r.Progress != nil {
				r.Progress(fmt.Sprintf("%s: %s", t, outcomes[i]))
			}
		})
	}
	running.Wait()
	return outcomes, errors.Join(errs...)
}

// answered is one run. It is repeated twice at most if etcd did not answer the API server in time, as on a machine that
// was suspended.
func (r *run) answered(ctx context.Context, t trial) (o *outcome, err error) {
	for range 3 {
		o, err = r.once(ctx, t)
		if why := errors.Join(err, o.err); why == nil || !strings.Contains(why.Error(), "etcdserver: request timed out") {
			break
		}
	}
	return o, err
}

// once is one run. Its error is about the surroundings, never about the manager.
func (r *run) once(ctx context.Context, t trial) (o *outcome, err error) {
	o = &outcome{trial: t}
	ctx, done := patient(ctx, cmp.Or(r.Patience, patience))
	defer done()
	if o.namespace, err = makeNamespace(ctx, r.client, t.String()); err != nil {
		return o, err
	}
	ctx, failed := context.WithCancelCause(ctx)
	defer failed(nil)
	e := r.env(ctx, t, o.namespace, failed)
	e.Start(ctx)
	o.err = o.drive(ctx, e)
	e.Stop()
	// A run that took too long is judged as well: what it did until then may say why.
	ctx, enough := context.WithTimeout(context.WithoutCancel(ctx), cleanup)
	defer enough()
	if o.end == 0 {
		if o.end, err = now(ctx, e); err != nil {
			return o, err
		}
	}
	o.take(e)
	return o, emptyNamespace(ctx, r.client, o.namespace)
}

// drive lets the user act and waits for the end, and for the rest after it.
func (o *outcome) drive(ctx context.Context, e *Env) error {
	scenario := o.trial.scenario
	if err := scenario.Drive(ctx, e); err != nil {
		return fmt.Errorf("drive: %w", err)
	}
	end := func(ctx context.Context) error { return scenario.Ended(ctx, e) }
	for {
		if err := e.Until(ctx, "the end condition", end); err != nil {
			return err
		}
		if err := settle(ctx, e); err != nil {
			return err
		}
		if end(ctx) == nil { // or what looked like the end was the moment before something began
			break
		}
	}
	// It is noted after that look: what was written before it belongs to what had begun.
	var err error
	if o.rest, err = now(ctx, e); err != nil {
		return err
	}
	pause(ctx, still)
	if o.end, err = now(ctx, e); err != nil || scenario.AtRest == nil {
		return err
	}
	return scenario.AtRest(ctx, e)
}

// env is what a run needs. The managers' requests pass the faults; then events are answered, and what is left is
// narrowed to the namespace and logged.
func (r *run) env(ctx context.Context, t trial, namespace string, failed context.CancelCauseFunc) *Env {
	e := &Env{
		Namespace: namespace, User: r.User, Client: r.client, wire: &recording.Wire{User: "manager"},
		changed: func() <-chan struct{} { return r.recorder.Changed(namespace) },
	}
	for i := range max(1, t.scenario.Managers) {
		plan := trial{}.plan(namespace)
		if i == 0 {
			plan = t.plan(namespace)
		}
		cfg := rest.CopyConfig(r.Config)
		cfg.UserAgent = fmt.Sprintf("manager-%d", i+1) // the checker tells them by that
		cfg.Wrap(e.wire.Wrap)
		cfg.Wrap(Within(namespace, r.Namespaced...))
		cfg.Wrap(WithoutEvents)
		e.managers = append(e.managers, &Keeper{Faults: New(ctx, plan), Config: cfg, Run: r.managerIn(namespace), Failed: failed})
	}
	e.Faults = e.managers[0].Faults
	return e
}
