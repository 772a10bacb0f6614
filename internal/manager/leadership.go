package manager

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// This file knows, without a request, whether this manager may write: since when the lease is known to be its own, and
// whether another manager holds it now. guard.go checks it before each write, lease.go updates it.

// LostError says that a manager may not write any more: another one holds its lease, or it released the lease itself.
type LostError struct {
	// Lease is namespace/name.
	Lease string
	// Holder is the present holder of the lease, empty if there is none.
	Holder string
}

func (e *LostError) Error() string {
	if e.Holder == "" {
		return fmt.Sprintf("this manager gave up lease %s and writes no more", e.Lease)
	}
	return fmt.Sprintf("lease %s is held by %s now, so this manager writes no more; it has to be started again", e.Lease, e.Holder)
}

// lapsedError says that a write was not sent, because the lease was not renewed in time. No other holder is known.
type lapsedError struct {
	lease string
	since time.Duration
}

func (e *lapsedError) Error() string {
	return fmt.Sprintf("not sent: lease %s was last renewed %s ago, and may be another manager's by now",
		e.lease, e.since.Round(time.Millisecond))
}

// term is the time during which this manager leads.
type term struct {
	lease, namespace, identity string
	// valid is for how long after a renewal no other manager can have taken the lease: less than its duration.
	valid time.Duration
	log   logr.Logger
	now   func() moment

	// over is closed when the term has ended. There is no second term: the process is restarted.
	over chan struct{}

	mu sync.Mutex
	// renewed is when the last renewal that succeeded was sent; zero before the term.
	renewed moment
	// again is closed, and replaced, by each renewal.
	again chan struct{}
	// lost is why the term has ended, nil before.
	lost *LostError
	// problem is why the lease cannot be used, nil if it can; warned is when that was last logged.
	problem error
	warned  moment
}

func newTerm(namespace, name, identity string, valid time.Duration, log logr.Logger) *term {
	return &term{
		lease: namespace + "/" + name, namespace: namespace, identity: identity, valid: valid, log: log, now: now,
		over: make(chan struct{}), again: make(chan struct{}),
	}
}

// Start returns the reason if the term ends before ctx does. The manager ends with it.
func (t *term) Start(ctx context.Context) error {
	select {
	case <-t.over:
		return t.may()
	case <-ctx.Done():
		return nil
	}
}

// NeedLeaderElection is false: the term is watched from the start of the process.
func (t *term) NeedLeaderElection() bool { return false }

// may reports whether a write may be sent now: nil, a [*LostError] or a *lapsedError.
func (t *term) may() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mayLocked()
}

func (t *term) mayLocked() error {
	if t.lost != nil {
		return t.lost
	}
	if since := t.now().since(t.renewed); since >= t.valid {
		return &lapsedError{lease: t.lease, since: since}
	}
	return nil
}

// await returns when a write may be sent. A term that has lapsed, for instance because the process was stopped for a
// while, is continued by the next renewal, or ended when the lease is read; both take a moment.
func (t *term) await(ctx context.Context) error {
	patience := time.NewTimer(t.valid)
	defer patience.Stop()
	for {
		t.mu.Lock()
		err, again := t.mayLocked(), t.again
		began := !t.renewed.IsZero()
		t.mu.Unlock()
		if lapsed, ok := err.(*lapsedError); !ok || !began { //nolint:errorlint // made just above
			if ok {
				return fmt.Errorf("not sent: this manager does not hold lease %s", lapsed.lease)
			}
			return err
		}
		select {
		case <-again:
		case <-t.over:
		case <-patience.C:
			return err
		case <-ctx.Done():
			return err
		}
	}
}

// moment is one time by two clocks: the process's clock stands still while the machine sleeps, and the wall clock can
// be set back.
type moment struct{ process, wall time.Time }

func now() moment {
	now := time.Now()
	return moment{process: now, wall: now.Round(0)}
}

// IsZero reports whether it is no moment at all.
func (m moment) IsZero() bool { return m.process.IsZero() }

// since is the longer one of the two times that have passed.
func (m moment) since(from moment) time.Duration {
	return max(m.process.Sub(from.process), m.wall.Sub(from.wall))
}

// renew notes that the lease was this manager's when the request was sent.
func (t *term) renew(sent moment) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lost != nil {
		return
	}
	t.renewed = sent
	close(t.again)
	t.again = make(chan struct{})
}

// saw notes who holds the lease. If another manager holds one that was ours, the term ends.
func (t *term) saw(holder string) {
	t.mu.Lock()
	began := !t.renewed.IsZero()
	t.mu.Unlock()
	if began && holder != t.identity {
		t.end(holder)
	}
}

// end ends the term. After that no write is sent.
func (t *term) end(holder string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lost != nil {
		return
	}
	t.lost = &LostError{Lease: t.lease, Holder: holder}
	close(t.over)
}

// ready is the check of /readyz: a manager that cannot use the lease will never lead.
func (t *term) ready() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.problem
}

// repeat is how often a lasting problem is logged.
const repeat = time.Minute

// noted keeps what is wrong with the lease, and logs what to do if it needs an administrator.
func (t *term) noted(verb string, err error) {
	lasting, problem := t.judge(verb, err)
	t.mu.Lock()
	same := t.problem != nil && problem != nil && t.problem.Error() == problem.Error()
	say := lasting && (!same || t.now().since(t.warned) >= repeat)
	t.problem = problem
	if say {
		t.warned = t.now()
	}
	t.mu.Unlock()
	if say {
		t.log.Error(err, "This manager cannot lead, and does nothing: "+problem.Error())
	}
}

// judge says what an answer about the lease means: the problem, nil if the lease can be used, and whether it lasts
// until an administrator acts.
func (t *term) judge(verb string, err error) (lasting bool, problem error) {
	switch {
	case err == nil, apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err) && verb != "create":
		return false, nil
	case apierrors.IsNotFound(err):
		return true, fmt.Errorf("namespace %q, where lease %s should be, does not exist; create it (kubectl apply -f deploy/manager), or name "+
			"another one with --leader-elect-namespace; a manager that is the only one needs no lease: --leader-elect=false",
			t.namespace, t.lease)
	case apierrors.IsForbidden(err):
		return true, fmt.Errorf("it may not %s lease %s; grant it get, create and update of leases there, as deploy/manager does, or name "+
			"another lease with --leader-elect-namespace and --leader-elect-id", verb, t.lease)
	default:
		return false, fmt.Errorf("%s lease %s: %w", verb, t.lease, err)
	}
}
