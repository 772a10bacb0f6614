package manager

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

const me, other = "me", "other"

// counting is an API server that counts the requests that came whole.
type counting struct{ came atomic.Int32 }

func (s *counting) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		if _, err := io.ReadAll(req.Body); err != nil {
			return nil, err
		}
	}
	s.came.Add(1)
	return httptest.NewRecorder().Result(), nil
}

// deskLock is a lease on this desk.
type deskLock struct {
	resourcelock.Interface

	record resourcelock.LeaderElectionRecord
	err    error
	writes int
}

func (l *deskLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record := l.record
	return &record, nil, l.err
}

func (l *deskLock) Create(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Update(context.Background(), record)
}

func (l *deskLock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	l.writes++
	if l.err == nil {
		l.record = record
	}
	return l.err
}

// office is a term with its lease, and a server that takes what the guard lets through.
type office struct {
	*testing.T

	term  *term
	desk  *deskLock
	lock  *observedLock
	guard http.RoundTripper
	to    *counting
}

func newOffice(t *testing.T, log logr.Logger) *office {
	t.Helper()
	o := &office{T: t, term: newTerm("system", "lease", me, 10*time.Second, log), desk: &deskLock{}, to: &counting{}}
	o.lock = &observedLock{Interface: o.desk, term: o.term}
	o.guard = o.term.guard(o.to)
	return o
}

// pass lets time go by.
func (*office) pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // time is that of the bubble
}

func (o *office) renew() {
	o.Helper()
	if err := o.lock.Update(o.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: me}); err != nil {
		o.Fatal(err)
	}
}

func (o *office) send(method, path, body string) error {
	o.Helper()
	req, err := http.NewRequestWithContext(o.Context(), method, "https://server"+path, strings.NewReader(body))
	if err != nil {
		o.Fatal(err)
	}
	resp, err := o.guard.RoundTrip(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	return err
}

func (o *office) sends(want int32, what string, err error) {
	o.Helper()
	if got := o.to.came.Load(); got != want {
		o.Errorf("%s: %d requests came, want %d (%v)", what, got, want, err)
	}
}

const pods = "/api/v1/namespaces/team/pods"

func TestGuardLetsALeaderWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, logr.Discard())
		err := o.send(http.MethodPost, pods, "{}")
		o.sends(0, "a write of a manager that never led", err)
		if err == nil || !strings.Contains(err.Error(), "does not hold lease system/lease") {
			t.Error(err)
		}
		o.renew()
		o.sends(1, "a write of the leader", o.send(http.MethodPost, pods, "{}"))
		o.pass(9 * time.Second)
		o.sends(2, "a write before the lease lapses", o.send(http.MethodDelete, pods+"/p", ""))
	})
}

// TestGuardHoldsBackWhatMayBeTooLate: a lease that was not renewed in time may be another's.
func TestGuardHoldsBackWhatMayBeTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, logr.Discard())
		o.renew()
		o.pass(30 * time.Second) // the process was stopped
		o.sends(1, "a read", o.send(http.MethodGet, pods, ""))
		o.sends(2, "an event", o.send(http.MethodPost, "/api/v1/namespaces/team/events", "{}"))
		o.sends(3, "a newer event", o.send(http.MethodPatch, "/apis/events.k8s.io/v1/namespaces/team/events/e", "{}"))

		sent := make(chan error)
		go func() { sent <- o.send(http.MethodPost, pods, "{}") }()
		synctest.Wait()
		o.sends(3, "a write that waits", nil)
		o.renew() // nobody took it meanwhile
		o.sends(4, "a write after the renewal", <-sent)

		o.pass(30 * time.Second)
		go func() { sent <- o.send(http.MethodPost, pods, "{}") }()
		synctest.Wait()
		o.desk.record.HolderIdentity = other
		if _, _, err := o.lock.Get(t.Context()); err != nil {
			t.Fatal(err)
		}
		err := <-sent
		o.sends(4, "a write of one that leads no more", err)
		if lost, ok := errors.AsType[*LostError](err); !ok || lost.Holder != other || lost.Lease != "system/lease" {
			t.Error(err)
		}
		if err := o.term.Start(t.Context()); !errors.Is(err, error(o.term.lost)) {
			t.Errorf("the manager ends with %v", err)
		}

		// Nothing brings it back, and the lease of the other is not touched.
		writes := o.desk.writes
		for _, holder := range []string{me, ""} {
			if err := o.lock.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: holder}); err == nil || o.desk.writes != writes {
				t.Errorf("it wrote holder %q into the lease of another", holder)
			}
		}
		o.sends(4, "a write after the end", o.send(http.MethodPost, pods, "{}"))
	})
}

// TestGuardGivesUp: a write that waits for a renewal does not wait for ever.
func TestGuardGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, logr.Discard())
		o.renew()
		o.pass(30 * time.Second)
		err := o.send(http.MethodPost, pods, "{}")
		o.sends(0, "a write without a renewal", err)
		if err == nil || !strings.Contains(err.Error(), "last renewed 30s ago") {
			t.Error(err)
		}
	})
}

// TestGuardLooksAgainAtTheBody: a process may be stopped after the guard has looked and before the request has left.
func TestGuardLooksAgainAtTheBody(t *testing.T) {
	o := newOffice(t, logr.Discard())
	at := now()
	o.term.now = func() moment { return at }
	o.renew()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, pods, nil)
	req.Body = readFunc(func([]byte) (int, error) {
		at.wall = at.wall.Add(30 * time.Second)
		return 0, io.EOF
	})
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(nil)), nil }
	o.guard = o.term.guard(o.to)
	resp, err := o.guard.RoundTrip(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	o.sends(0, "a request that was under way", err)
	if err == nil {
		t.Error("it was sent")
	}
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }
func (readFunc) Close() error                 { return nil }

// TestRetriesAreGuarded: the transport sends a request again by itself, from a copy of its body.
func TestRetriesAreGuarded(t *testing.T) {
	o := newOffice(t, logr.Discard())
	o.renew()
	later := now()
	later.process = later.process.Add(time.Minute)
	var again io.ReadCloser
	o.guard = o.term.guard(roundTripper(func(req *http.Request) (*http.Response, error) {
		var err error
		again, err = req.GetBody()
		return httptest.NewRecorder().Result(), err
	}))
	if err := o.send(http.MethodPost, pods, "{}"); err != nil {
		t.Fatal(err)
	}
	o.term.now = func() moment { return later }
	if _, err := io.ReadAll(again); err == nil {
		t.Error("the copy can be sent after the lease has lapsed")
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestNothingFollowsTheRelease: a manager that gives up its lease writes no more, whatever is still in hand.
func TestNothingFollowsTheRelease(t *testing.T) {
	o := newOffice(t, logr.Discard())
	o.renew()
	if err := o.lock.Update(t.Context(), resourcelock.LeaderElectionRecord{}); err != nil {
		t.Fatal(err)
	}
	err := o.send(http.MethodPost, pods, "{}")
	o.sends(0, "a write after the release", err)
	if _, ok := errors.AsType[*LostError](err); !ok {
		t.Error(err)
	}
}

func TestMoments(t *testing.T) {
	from := now()
	for _, c := range []struct{ process, wall, want time.Duration }{
		{time.Second, time.Second, time.Second},
		{time.Second, time.Hour, time.Hour},    // the machine slept
		{time.Second, -time.Hour, time.Second}, // somebody set the clock back
	} {
		to := moment{process: from.process.Add(c.process), wall: from.wall.Add(c.wall)}
		if got := to.since(from); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
	if now().since(moment{}) < time.Hour {
		t.Error("a term that never began has not lapsed")
	}
}

// TestLeaseProblems: what somebody has to do something about is said at once, as an error, and makes the manager
// unready.
func TestLeaseProblems(t *testing.T) {
	leases := schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	for name, c := range map[string]struct {
		err         error
		ready, said string
	}{
		"no namespace": {
			apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "system"),
			`namespace "system", where lease system/lease should be, does not exist`, "--leader-elect-namespace",
		},
		"refused": {
			apierrors.NewForbidden(leases, "lease", errors.New("no role")),
			"it may not create lease system/lease", "grant it get, create and update of leases",
		},
		"unreachable":     {errors.New("connection refused"), "create lease system/lease: connection refused", ""},
		"somebody's else": {apierrors.NewAlreadyExists(leases, "lease"), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var logged []string
			o := newOffice(t, funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{}))
			o.desk.err = c.err
			for range 3 {
				if err := o.lock.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: me}); err == nil {
					t.Fatal("no error")
				}
			}
			ready := o.term.ready()
			if (ready == nil) != (c.ready == "") || ready != nil && !strings.Contains(ready.Error(), c.ready) {
				t.Errorf("ready: %v, want %q", ready, c.ready)
			}
			switch {
			case c.said == "" && len(logged) > 0, c.said != "" && len(logged) != 1:
				t.Errorf("said: %v", logged)
			case c.said != "" && (!strings.Contains(logged[0], c.said) || !strings.Contains(logged[0], `"error"=`)):
				t.Errorf("said: %s", logged[0])
			}
			o.desk.err = nil
			o.renew()
			if err := o.term.ready(); err != nil {
				t.Errorf("after it was mended: %v", err)
			}
		})
	}
}
