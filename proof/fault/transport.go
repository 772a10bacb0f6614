package fault

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"
)

// This file is the transport: every request of the manager passes here, and does what its mode says.

// errRefused is what a client gets for a request that nobody received.
var errRefused = &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}

// errTimeout is a timeout as package net knows it.
var errTimeout = &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}

type transport struct {
	in      *Injector
	process *Process
	next    http.RoundTripper
}

// WrappedRoundTripper is for client-go, which looks for the transport underneath.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip sends the request, or not.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.process.Killed() {
		return t.drop(req, ErrDead)
	}
	req, info, r, ok := describe(req)
	switch {
	case !ok:
		return t.next.RoundTrip(req)
	case info.Verb == "watch":
		return t.watch(req, r)
	case info.Verb == "list":
		return t.list(req, r)
	case !mutating(req.Method):
		return t.next.RoundTrip(req)
	}
	t.in.writes(t.process)
	mode, refuse := t.in.admit(&r)
	if refuse != 0 {
		return answer(req, statusOf(refuse, r), nil)
	}
	return t.fail(req, &r, mode)
}

// fail does to a mutating request what the mode says.
func (t *transport) fail(req *http.Request, r *Request, mode Mode) (*http.Response, error) {
	switch mode {
	case RequestLost:
		return t.drop(req, errRefused)
	case Conflict:
		return answer(req, statusOf(http.StatusConflict, *r), nil)
	case Throttled:
		seconds := int((t.in.plan.RetryAfter + time.Second - 1) / time.Second)
		time.AfterFunc(time.Duration(seconds)*time.Second, t.in.busy())
		return answer(req, statusOf(http.StatusTooManyRequests, *r), retryAfter(seconds))
	case Rejected:
		return answer(req, statusOf(http.StatusTooManyRequests, *r), nil)
	case ServerError:
		return answer(req, statusOf(http.StatusInternalServerError, *r), nil)
	case Hang:
		return t.drop(req, t.hang(req.Context()))
	case KillBefore:
		t.process.Kill()
		return t.drop(req, ErrDead)
	case ResponseLost:
		if err := t.applied(req, r); err != nil {
			return nil, err
		}
		return nil, io.ErrUnexpectedEOF
	case KillAfter:
		err := t.applied(req, r)
		t.process.Kill()
		return nil, errors.Join(ErrDead, err)
	case Unseen:
		release := t.in.Hold(r.GroupResource)
		err := t.applied(req, r)
		t.in.blindfold(t.process.ctx, r, release) //nolint:contextcheck // it lasts as long as the process, not as the request
		return nil, cmp.Or(err, io.ErrUnexpectedEOF)
	case KillStale:
		version, err := t.now(req, r)
		if err == nil {
			err = t.applied(req, r)
		}
		t.in.restartAt(r, version)
		t.process.Kill()
		return nil, errors.Join(ErrDead, err)
	}
	resp, err := t.next.RoundTrip(req)
	t.in.answered(r, resp, err)
	return resp, err
}

// applied sends a request and reads the answer to its end, so that whatever it does is done. The caller's context does
// not end it: the fault is that the answer is lost, not that the request is.
func (t *transport) applied(req *http.Request, r *Request) error {
	resp, err := t.next.RoundTrip(req.Clone(context.WithoutCancel(req.Context())))
	t.in.answered(r, resp, err)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}

// hang waits for the end of the request, of the process or of patience, and says how it ended.
func (t *transport) hang(ctx context.Context) error {
	done := t.in.busy()
	defer done()
	bound, cancel := context.WithTimeout(t.process.ctx, t.in.plan.HangFor)
	defer cancel()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-bound.Done():
		return errTimeout
	}
}

// drop answers with an error and sends nothing. The error is not wrapped: package net and client-go look at its type.
func (*transport) drop(req *http.Request, err error) (*http.Response, error) {
	if req.Body != nil {
		_ = req.Body.Close() // a RoundTripper closes the body, always
	}
	return nil, err
}
