package recording

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check/content"
)

// This file says who wrote what: requests, and which event of a history each of them made.

// Entry is one request that the API server took.
type Entry struct {
	User, UserAgent string
	// Verb is create, update, patch, delete or deletecollection; or, of a read past every cache, get or list.
	Verb string
	// Resource and Group, Namespace and Name say of what; Subresource is "status" or the like.
	Group, Resource, Namespace, Name, Subresource string
	// Code is the HTTP status of the response, zero if none came.
	Code int
	// UID and RV are those of the object in the response, empty and zero if the response did not hold it. RV of a list is
	// the list's.
	UID types.UID
	RV  uint64
	// Labels select what a list has shown, nil if it has shown all.
	Labels labels.Selector
	// Precondition is the UID that a delete insisted on, PreconditionRV the resource version; empty if it did not. Unread
	// is true if the body of the request is not known.
	Precondition   types.UID
	PreconditionRV string
	Unread         bool
	// At is when the server answered, zero if nobody knows.
	At time.Time
	// Clock is the latest time that the clock by which its author goes has shown until then, zero if nobody knows.
	Clock time.Time
	// Pass is the pass of a controller that made the request, nil if nobody knows.
	Pass *Pass
	// Late is true if its author had given it up before the server acted on it: what it read meanwhile it did not know
	// when it asked.
	Late bool
	// Sent is what was sent, if admission changed that before it was stored; nil if it did not, or if nobody knows.
	Sent client.Object
	// Negative says which counters of a status that was sent are below zero: "currentReplicas is -1".
	Negative string
}

// Refused is a request that the server did not take.
type Refused struct {
	Entry

	// After is the resource version of the last write before it that the entries tell of.
	After uint64
	// Why is what the server said, empty if nobody knows. Injected is true if somebody played the part of the server, or
	// of a policy, to refuse it: it may have been a good request.
	Why      string
	Injected bool
}

func (e *Entry) who() string {
	if e.UserAgent == "" {
		return e.User
	}
	agent, _, _ := strings.Cut(e.UserAgent, " ")
	return e.User + ", " + agent
}

// Reads reports whether the request changed nothing and was not meant to.
func (e *Entry) Reads() bool { return e.Verb == "get" || e.Verb == "list" }

// Succeeded reports whether the server did what was asked.
func (e *Entry) Succeeded() bool { return e.Code >= 200 && e.Code < 300 }

// ParseAudit reads an audit log of the API server, one JSON event a line. The policy should log writes of the resources
// involved at level RequestResponse. Reads, and stages other than ResponseComplete, are left out.
func ParseAudit(r io.Reader) ([]Entry, error) {
	var out []Entry
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 1 {
			var event auditv1.Event
			if err := json.Unmarshal(line, &event); err != nil {
				return nil, fmt.Errorf("audit event %d: %w", len(out)+1, err)
			}
			if entry, ok := entryOf(event); ok {
				out = append(out, entry)
			}
		}
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
	}
}

func entryOf(event auditv1.Event) (Entry, bool) {
	switch event.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
	default:
		return Entry{}, false
	}
	if event.Stage != auditv1.StageResponseComplete || event.ObjectRef == nil {
		return Entry{}, false
	}
	e := Entry{
		User: event.User.Username, UserAgent: event.UserAgent, Verb: event.Verb,
		Group: event.ObjectRef.APIGroup, Resource: event.ObjectRef.Resource, Namespace: event.ObjectRef.Namespace,
		Name: event.ObjectRef.Name, Subresource: event.ObjectRef.Subresource, Unread: event.RequestObject == nil,
	}
	if event.ImpersonatedUser != nil {
		e.User = event.ImpersonatedUser.Username
	}
	if event.ResponseStatus != nil {
		e.Code = int(event.ResponseStatus.Code)
	}
	if event.RequestObject != nil {
		e.readRequest(event.RequestObject.Raw)
	}
	if event.ResponseObject != nil {
		e.readResponse(event.ResponseObject.Raw)
	}
	return e, true
}

// readRequest takes the precondition from the body of a delete, and what is negative from a status.
func (e *Entry) readRequest(body []byte) {
	var sent map[string]any
	if e.Subresource == "status" && json.Unmarshal(body, &sent) == nil {
		e.Negative = strings.Join(content.Negative("", sent["status"]), " and ")
	}
	var o metav1.DeleteOptions
	if e.Verb != "delete" || json.Unmarshal(body, &o) != nil || o.Preconditions == nil {
		return
	}
	if o.Preconditions.UID != nil {
		e.Precondition = *o.Preconditions.UID
	}
	if o.Preconditions.ResourceVersion != nil {
		e.PreconditionRV = *o.Preconditions.ResourceVersion
	}
}

// readResponse takes name, UID and resource version from the object in a response. A Status names the UID only.
func (e *Entry) readResponse(body []byte) {
	var u unstructured.Unstructured
	if u.UnmarshalJSON(body) != nil {
		return
	}
	if u.GetKind() == "Status" {
		uid, _, _ := unstructured.NestedString(u.Object, "details", "uid")
		e.UID = types.UID(uid)
		return
	}
	e.readObject(&u)
}

func (e *Entry) readObject(o metav1.Object) {
	e.UID = o.GetUID()
	if e.Name == "" { // of an object whose name the server made
		e.Name = o.GetName()
	}
	e.RV, _ = parseVersion(o.GetResourceVersion())
}

// Attach says for every event of h who did it. manager tells which entries are the controllers'. The entries must hold
// at least every write of theirs: what has none is taken for somebody else's. It returns the successful writes that
// match no event: no-ops, objects that are not recorded, and requests from before the history. Entries are in the order
// in which the requests were made: of several with one resource version the first one wrote, and the others changed
// nothing. A write that changed nothing after one by somebody who is not in the entries cannot be told from it, unless
// it could not have made that change.
func (h *History) Attach(entries []Entry, manager func(*Entry) bool) []Entry {
	h.Audited, h.Manager = true, manager
	byVersion := map[uint64]int{}
	for i, e := range h.Events {
		byVersion[e.RV] = i
	}
	h.Requests, h.Refused = nil, nil
	last := h.Origin
	var lost []Entry
	var deletes []*Entry
	for _, entry := range entries {
		e := &entry
		h.Requests = append(h.Requests, e)
		if e.Reads() {
			h.Reads = true
			continue
		}
		if e.Succeeded() && e.RV <= h.Complete {
			last = max(last, e.RV)
		}
		i, ok := byVersion[e.RV]
		switch {
		case !e.Succeeded():
			h.Refused = append(h.Refused, Refused{Entry: *e, After: last})
		case ok && e.RV != 0 && e.could(h.Events[i]):
			h.Events[i].By = e
		case e.Verb == "delete":
			deletes = append(deletes, e)
		default:
			lost = append(lost, *e)
		}
	}
	for _, e := range deletes {
		if i := h.deletedBy(*e); i >= 0 {
			h.Events[i].By = e
		} else {
			lost = append(lost, *e)
		}
	}
	return lost
}

// Of reports whether a request is about a resource, in that namespace or in all.
func (e *Entry) Of(resource schema.GroupVersionResource, namespace string) bool {
	return e.Resource == resource.Resource && e.Group == resource.Group && (e.Namespace == namespace || e.Namespace == "")
}

// about reports whether an event is about the object that a request names.
func (e *Entry) about(event Event) bool {
	k := event.Key
	return k.Resource.Resource == e.Resource && k.Resource.Group == e.Group && k.Namespace == e.Namespace && k.Name == e.Name
}

// could reports whether a request can have made an event that has its resource version, and that nobody else made.
func (e *Entry) could(event Event) bool {
	if !e.about(event) || event.By != nil {
		return false
	}
	switch {
	case e.Verb == "create":
		return event.Type == Added || e.Subresource != ""
	case e.Verb == "delete":
		return StartsToGo(event)
	case e.Subresource == "status":
		return event.Type == Modified && content.Same(event.Old, event.New, "spec") && content.Same(event.Old, event.New, "metadata", "labels")
	default:
		return true
	}
}

// deletedBy returns the event that a delete without a resource version in its response made: the object's end, or the
// first sign of it. Of several objects of one name the UID tells which; if that is not known either, the first.
func (h *History) deletedBy(e Entry) int {
	for i, event := range h.Events {
		uid := event.Object().GetUID()
		if event.By != nil || !e.about(event) || e.UID != "" && e.UID != uid || e.Precondition != "" && e.Precondition != uid {
			continue
		}
		if StartsToGo(event) {
			return i
		}
	}
	return -1
}

// StartsToGo reports whether an event is the delete of an object as its user sees it: it got its deletion timestamp, or
// it went without one.
func StartsToGo(e Event) bool {
	if e.Old == nil || e.Old.GetDeletionTimestamp() != nil {
		return false
	}
	return e.New == nil || e.New.GetDeletionTimestamp() != nil
}
