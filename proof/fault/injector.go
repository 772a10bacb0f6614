package fault

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// This file keeps the books of one run: which requests there were, which one is next to fail, which process is alive.

// ErrDead is what every request of a process that was killed ends with.
var ErrDead = errors.New("the process was killed")

// errInjected is in the text of every error that this package makes up, so that nobody looks for the cause elsewhere.
var errInjected = errors.New("injected by the test")

// Injector makes the requests of one manager fail as a plan says. The manager may be stopped and started again: each
// life is a [Process], and the count goes on. An Injector can be used by several goroutines.
type Injector struct {
	plan    Plan
	streams streams

	mu      sync.Mutex
	count   int
	log     []*Request
	hits    int
	faults  []armed
	refused []int // by refusal, how many requests matched
	process *Process
	blinds  []*blind
	// under is how many requests are under way by what was done to them: they hang, or are to be sent again later.
	under int
	// watched are the resources that any of its processes has watched.
	watched map[schema.GroupResource]bool
	// until is the end of the last wait that a process has spoken of.
	until time.Time
}

// armed is a fault and how many requests were its business so far.
type armed struct {
	Fault

	seen int
}

// New returns an injector for a plan. Its first process lives until the first call of [Injector.Start], and no longer
// than ctx.
func New(ctx context.Context, plan Plan) *Injector {
	if plan.Count == nil {
		plan.Count = Counted
	}
	if plan.HangFor == 0 {
		plan.HangFor = defaultHang
	}
	if plan.RetryAfter == 0 {
		plan.RetryAfter = defaultRetryAfter
	}
	if plan.HoldFor == 0 {
		plan.HoldFor = defaultHold
	}
	in := &Injector{plan: plan, refused: make([]int, len(plan.Refusals)), watched: map[schema.GroupResource]bool{}}
	for _, f := range plan.Faults {
		in.faults = append(in.faults, armed{Fault: f})
	}
	in.Start(ctx)
	return in
}

// Process is one life of a manager, from its start to its end or to the fault that kills it.
type Process struct {
	in     *Injector
	ctx    context.Context //nolint:containedctx // a process is a thing that ends: this is its life, not a call's context
	cancel context.CancelCauseFunc
	// watched are the resources of which it has opened a watch. wrote is true once it has written.
	watched map[schema.GroupResource]bool
	wrote   bool
}

// Start begins a new life, which ends with ctx at the latest. A life that is not over is killed.
func (in *Injector) Start(ctx context.Context) *Process {
	p := &Process{in: in, watched: map[schema.GroupResource]bool{}}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	in.mu.Lock()
	before := in.process
	in.process = p
	in.mu.Unlock()
	if before != nil {
		before.Kill()
	}
	return p
}

// Wrap puts the injector in front of a transport, for rest.Config.Wrap. The requests belong to the process that was
// started last.
func (in *Injector) Wrap(next http.RoundTripper) http.RoundTripper {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.process.Wrap(next)
}

// Wrap is [Injector.Wrap] for this process, dead or alive.
func (p *Process) Wrap(next http.RoundTripper) http.RoundTripper {
	return &transport{in: p.in, process: p, next: next}
}

// Config returns a copy of cfg whose requests belong to this process.
func (p *Process) Config(cfg *rest.Config) *rest.Config {
	out := rest.CopyConfig(cfg)
	out.Wrap(p.Wrap)
	return out
}

// Context ends when the process is killed. The manager runs with it.
func (p *Process) Context() context.Context { return p.ctx }

// Kill ends the process as SIGKILL would: its context ends, and no request reaches the server any more.
func (p *Process) Kill() { p.cancel(ErrDead) }

// Killed reports whether the process was killed, by a fault or by Kill. A context that ended earlier is no kill.
func (p *Process) Killed() bool { return errors.Is(context.Cause(p.ctx), ErrDead) }

// Starts reports whether the process of now was killed, or does not watch yet what the ones before it did, so that it
// asks for nothing whatever there is to do. A manager that never watches has started when it writes.
func (in *Injector) Starts() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.process.Killed() || len(in.process.watched) < len(in.watched) || len(in.watched) == 0 && !in.process.wrote
}

// watches notes that a process has opened a watch.
func (in *Injector) watches(p *Process, resource schema.GroupResource) {
	in.mu.Lock()
	defer in.mu.Unlock()
	p.watched[resource], in.watched[resource] = true, true
}

// writes notes that a process has written.
func (in *Injector) writes(p *Process) {
	in.mu.Lock()
	defer in.mu.Unlock()
	p.wrote = true
}

// waits notes that a process tries again after so long.
func (in *Injector) waits(after time.Duration) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if until := time.Now().Add(after); until.After(in.until) {
		in.until = until
	}
}

// busy notes a request that is under way until the function that it returns is called.
func (in *Injector) busy() (done func()) {
	add := func(n int) {
		in.mu.Lock()
		defer in.mu.Unlock()
		in.under += n
	}
	add(1)
	return func() { add(-1) }
}

// Busy reports whether a request is under way that nothing is to be seen of: it hangs, or was told to come again later;
// or whether caches are kept from what has happened; or whether a pass waits for its caches ([Process.Logger]). What
// looks like rest until then is none.
func (in *Injector) Busy() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.under > 0 || time.Now().Before(in.until) || slices.ContainsFunc(in.blinds, (*blind).lasts)
}

// admit gives a request its number, writes it to the log and says what is to happen to it: a mode, a status code to
// refuse it with, or neither.
func (in *Injector) admit(r *Request) (Mode, int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.log = append(in.log, r)
	if in.plan.Count(*r) {
		in.count++
		r.Index = in.count
	}
	if mode := in.struck(*r); mode != 0 {
		r.Fault = mode.String()
		in.hits++
		return mode, 0
	}
	for i, refusal := range in.plan.Refusals {
		if refusal.Resource.Empty() || !refusal.target().matches(*r) {
			continue
		}
		in.refused[i]++
		n := in.refused[i] - refusal.After
		if n < 1 || (refusal.Times > 0 && n > refusal.Times) {
			continue
		}
		r.Fault = fmt.Sprintf("refused with %d", refusal.Status)
		in.hits++
		return 0, refusal.Status
	}
	return 0, 0
}

// struck counts a request for each fault whose business it is, and returns the mode of the first that is due, 0 if none
// is.
func (in *Injector) struck(r Request) (mode Mode) {
	for i := range in.faults {
		f := &in.faults[i]
		if f.Resource.Empty() && r.Index == 0 || !f.Resource.Empty() && !f.target().matches(r) {
			continue
		}
		f.seen++
		if mode == 0 && f.hits(f.seen) {
			mode = f.Mode
		}
	}
	return mode
}

// Inject adds a fault while the manager runs. Requests from now on are its business; those before do not count.
func (in *Injector) Inject(f Fault) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.faults = append(in.faults, armed{Fault: f})
}

// answered notes what the server said.
func (in *Injector) answered(r *Request, resp *http.Response, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case err != nil:
		r.Answer = err.Error()
	case resp != nil:
		r.Answer = resp.Status
	}
	in.repeated(*r)
}

// Refuse adds a refusal while the manager runs, and returns the function that ends it.
func (in *Injector) Refuse(r Refusal) (allow func()) {
	in.mu.Lock()
	defer in.mu.Unlock()
	i := len(in.plan.Refusals)
	// A fresh list: the plan's belongs to the caller.
	in.plan.Refusals = append(append([]Refusal(nil), in.plan.Refusals...), r)
	in.refused = append(in.refused, 0)
	return func() {
		in.mu.Lock()
		defer in.mu.Unlock()
		in.plan.Refusals[i] = Refusal{} // matches nothing
	}
}

// Count returns how many requests were counted so far.
func (in *Injector) Count() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.count
}

// Hits returns how many requests were made to fail so far.
func (in *Injector) Hits() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.hits
}

// Requests returns the mutating requests so far, in the order in which they were sent, those included that are not
// counted.
func (in *Injector) Requests() []Request {
	in.mu.Lock()
	defer in.mu.Unlock()
	out := make([]Request, len(in.log))
	for i, r := range in.log {
		out[i] = *r
	}
	return out
}

// Log is the counted requests as text, one on a line.
func (in *Injector) Log() string {
	var b strings.Builder
	for _, r := range in.Requests() {
		if r.Index > 0 {
			b.WriteString(r.String() + "\n")
		}
	}
	return b.String()
}

// Kill ends the process that was started last, as SIGKILL would.
func (in *Injector) Kill() {
	in.mu.Lock()
	p := in.process
	in.mu.Unlock()
	p.Kill()
}
