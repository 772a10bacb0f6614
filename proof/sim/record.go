package sim

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/check/recording"
	"github.com/cairn-dev/cairn/proof/sim/model"
)

// This file takes down what happens: requests, and what each of them changed, as package check wants to know it.

// do sends a request to the server, and takes down what it changed, who did it, and in which pass. c is the manager's
// call, nil if somebody else asks.
func (w *world) do(r model.Request, c *call) model.Response {
	response := w.server.Do(r)
	entry := entryOf(r, response)
	entry.At = w.clock.Now()
	if c != nil {
		entry.Pass, entry.Late, entry.Sent = c.pass, c.late, c.sent
		if c.from.clock != nil {
			entry.Clock = c.from.clock.shown()
		}
	}
	if isManager(entry) {
		w.history.Requests = append(w.history.Requests, entry)
		if entry.Code >= http.StatusBadRequest && c != nil && c.writes() {
			w.history.Refused = append(w.history.Refused, check.Refused{Entry: *entry, After: w.server.ResourceVersion(), Why: response.Err.Error()})
		}
		w.called(c, recording.Request)
	}
	events := w.server.Events()
	for _, e := range events[w.seen:] {
		shown := e
		shown.Object = w.view(e.Resource, e.Object)
		w.events[e.Resource] = append(w.events[e.Resource], shown)
		w.shelves[e.Resource].put(e)
		w.history.Events = append(w.history.Events, eventOf(e, entry))
		w.history.Complete = e.RV
		w.prints = append(w.prints, fingerprint(e.Object))
	}
	w.seen = len(events)
	return response
}

// refused takes down a request that was refused before the server saw it.
func (w *world) refused(c *call, code int) {
	entry := entryOf(c.request, model.Response{})
	entry.Code, entry.At, entry.Pass = code, w.clock.Now(), c.pass
	w.history.Refused = append(w.history.Refused, check.Refused{Entry: *entry, After: w.server.ResourceVersion(), Injected: true})
	w.called(c, recording.Request)
}

// called takes down what a request costs, and for which parent it was made.
func (w *world) called(c *call, sort recording.Sort) {
	one := recording.Call{Sort: sort, At: w.clock.Now(), After: w.server.ResourceVersion()}
	if c != nil {
		one.What = fmt.Sprintf("%s %s %s", c.request.Verb, c.request.Resource.Resource, c.request.Subresource)
	}
	if c != nil && c.pass != nil {
		one.For = c.pass.For
	}
	w.history.Calls = append(w.history.Calls, one)
}

func entryOf(r model.Request, response model.Response) *check.Entry {
	e := &check.Entry{
		User: r.User, Verb: r.Verb, Group: r.Resource.Group, Resource: r.Resource.Resource,
		Namespace: r.Namespace, Name: objectName(r, response), Subresource: r.Subresource, Code: http.StatusOK,
		Labels: r.LabelSelector,
	}
	if response.Err != nil {
		e.Code = int(statusOf(response.Err))
	}
	if response.Err == nil {
		e.RV = response.ResourceVersion
	}
	if response.Object != nil {
		e.UID = response.Object.GetUID()
	}
	if r.Preconditions != nil && r.Preconditions.UID != nil {
		e.Precondition = *r.Preconditions.UID
	}
	if r.Preconditions != nil && r.Preconditions.ResourceVersion != nil {
		e.PreconditionRV = *r.Preconditions.ResourceVersion
	}
	return e
}

func statusOf(err error) int32 {
	if status, ok := err.(apierrors.APIStatus); ok {
		return status.Status().Code
	}
	return http.StatusInternalServerError
}

func objectName(r model.Request, response model.Response) string {
	switch {
	case r.Name != "":
		return r.Name
	case response.Object != nil:
		return response.Object.GetName()
	case r.Object != nil:
		return r.Object.GetName()
	default:
		return ""
	}
}

func eventOf(e model.Event, by *check.Entry) check.Event {
	out := check.Event{RV: e.RV, Type: check.Modified, Key: recording.KeyOf(e.Resource, e.Object), Old: e.Old, New: e.Object, By: by}
	switch e.Type {
	case addedEvent:
		out.Type, out.Old = check.Added, nil
	case deletedEvent:
		out.Type, out.New = check.Deleted, nil
	default:
	}
	return out
}
