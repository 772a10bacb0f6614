package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/cairn-dev/cairn/proof/fault"
	"github.com/cairn-dev/cairn/proof/sim/model"
)

// This file serves the requests of managers, or lets them fail.

const (
	addedEvent   = watch.Added
	deletedEvent = watch.Deleted
)

// errKilled is what a process that is dead gets for its requests. Nobody hears of it.
var errKilled = errors.New("the process was killed")

// The ways in which requests fail by chance. Throttled is not among them: client-go asks again by itself, and what the
// controller sees of it is a slow request.
var (
	writeModes = []fault.Mode{
		fault.RequestLost, fault.ResponseLost, fault.ResponseLost, fault.Conflict, fault.Rejected, fault.ServerError, fault.Hang,
		fault.KillBefore, fault.KillAfter,
	}
	readModes = []fault.Mode{fault.RequestLost, fault.Rejected, fault.ServerError, fault.Hang, fault.KillBefore}
)

// clean is no mode: the request does what it should.
const clean fault.Mode = 0

// outage is a time in which all writes to a resource are refused.
type outage struct {
	resource schema.GroupVersionResource
	verb     string
	code     int
}

func (o *outage) hits(r model.Request) bool {
	return o != nil && o.resource == r.Resource && (o.verb == "" || o.verb == r.Verb)
}

// serve acts on one request and answers it.
func (w *world) serve(c *call, mode fault.Mode) {
	if c.question != nil {
		w.serveHook(c, mode)
		return
	}
	if code := w.refuses(c); code != 0 {
		w.tracef("%s: refused, %d", c, code)
		w.stats.count(fmt.Sprintf("fault outage %d", code))
		c.reply(model.Response{}, refusal(code, c.request))
		w.refused(c, code)
		return
	}
	if err := w.denies(c); err != nil {
		w.tracef("%s: denied: %.200v", c, err)
		w.stats.count(fmt.Sprintf("fault denied %d", statusOf(err)))
		c.reply(model.Response{}, err)
		w.refused(c, int(statusOf(err)))
		return
	}
	w.injects(c)
	var response model.Response
	done := "not sent"
	if mode == clean || mode.Sends() {
		response = w.act(c)
		done = outcome(response)
	}
	if mode != clean {
		w.stats.count("fault " + mode.String())
	}
	switch {
	case c.late:
		w.stats.count("late requests")
		w.tracef("%s: late, %s", c, done)
	case mode == clean:
		w.tracef("%s: %s", c, done)
		c.reply(response, response.Err)
	case mode.Kills():
		w.tracef("%s: %s; %s", c, done, mode)
		w.kill(c.from)
		c.reply(model.Response{}, errKilled) // it reads this when it is dead
	default:
		w.tracef("%s: %s; %s", c, done, mode)
		c.reply(model.Response{}, w.failure(mode, c.request))
		if mode == fault.Hang && w.temper.late && c.writes() {
			c.late = true
			w.calls = append(w.calls, c)
		}
	}
}

// refuses is the status with which a request is answered, zero if it is served.
func (w *world) refuses(c *call) int {
	if w.outage.hits(c.request) && c.writes() {
		return w.outage.code
	}
	return w.staged.refuses(c)
}

// act lets the server do what a manager asks.
func (w *world) act(c *call) model.Response {
	response := w.do(c.request, c)
	if apierrors.IsAlreadyExists(response.Err) {
		w.stats.count("AlreadyExists")
	}
	if apierrors.IsConflict(response.Err) {
		w.stats.count("conflicts")
	}
	return response
}

func outcome(r model.Response) string {
	if r.Err != nil {
		return r.Err.Error()
	}
	return fmt.Sprintf("ok %d", r.ResourceVersion)
}

// failure is what a client gets for a request that failed this way.
func (w *world) failure(mode fault.Mode, r model.Request) error {
	switch mode {
	case fault.RequestLost:
		return transportError(r, syscall.ECONNREFUSED)
	case fault.ResponseLost:
		return transportError(r, io.ErrUnexpectedEOF)
	case fault.Hang:
		return transportError(r, context.DeadlineExceeded)
	case fault.Conflict:
		return refusal(http.StatusConflict, r)
	case fault.Rejected:
		return refusal(http.StatusTooManyRequests, r)
	default:
		return refusal(http.StatusInternalServerError, r)
	}
}

func transportError(r model.Request, err error) error {
	return &url.Error{Op: strings.ToUpper(r.Verb[:1]) + r.Verb[1:], URL: "https://sim/" + r.Resource.Resource + "/" + r.Name, Err: err}
}

// refusal is the API server's answer with that status to a request that it does not act on.
func refusal(code int, r model.Request) error {
	resource := r.Resource.GroupResource()
	reason := errors.New("the simulation refuses it")
	switch code {
	case http.StatusForbidden:
		return apierrors.NewForbidden(resource, r.Name, reason)
	case http.StatusConflict:
		return apierrors.NewConflict(resource, r.Name, reason)
	case http.StatusUnprocessableEntity:
		return apierrors.NewInvalid(schema.GroupKind{Group: r.Resource.Group, Kind: r.Resource.Resource}, r.Name, nil)
	case http.StatusTooManyRequests:
		return apierrors.NewTooManyRequestsError(reason.Error())
	case http.StatusInternalServerError:
		return apierrors.NewInternalError(reason)
	default:
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: int32(code), Message: reason.Error(),
		}}
	}
}

func isPanic(text string) bool {
	return strings.HasPrefix(text, "panic: ") && strings.HasSuffix(text, "[recovered]")
}
