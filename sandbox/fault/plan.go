package fault

import (
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// This file says what is to fail: single requests by their number, or all requests to one resource.

// Any stands for every verb in a [Refusal].
const Any = "*"

const (
	defaultHang       = 300 * time.Millisecond
	defaultRetryAfter = time.Second
)

// Plan says which requests fail and how. The zero value lets everything pass and only counts.
type Plan struct {
	// Faults act on single requests by their number. There is at most one for each number.
	Faults []Fault
	// Refusals act on all requests of a kind, those included that are not counted. A request that is refused has a number
	// as well, and a Fault with that number comes first.
	Refusals []Refusal
	// Count says which mutating requests have a number; nil means [Counted].
	Count func(Request) bool
	// HangFor bounds [Hang]. Zero means 300 ms.
	HangFor time.Duration
	// RetryAfter is what [Throttled] asks for, in whole seconds, rounded up. Zero means 1 s.
	RetryAfter time.Duration
}

// Fault makes one request fail.
type Fault struct {
	// At is the number of the request, from 1.
	At int
	// Mode is how it fails.
	Mode Mode
}

// Refusal answers requests to one resource with an error, without sending them, as missing rights (403) or a strict
// admission webhook (422) would.
type Refusal struct {
	// Resource is the resource, such as {Group: "apps", Resource: "controllerrevisions"}.
	Resource schema.GroupResource
	// Subresource is "status" and the like; empty means the object itself.
	Subresource string
	// Verb is create, update, patch, delete or deletecollection; empty or [Any] means all of them.
	Verb string
	// Status is 403, 422, or any other status code.
	Status int
	// After is how many requests pass before the first one is refused.
	After int
	// Times is how many are refused before all pass again. Zero means that this never ends.
	Times int
}

// String says the refusal as reports do.
func (r Refusal) String() string {
	resource := r.Resource.String()
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	text := fmt.Sprintf("refuse %s %s with %d", r.verb(), resource, r.Status)
	if r.Times > 0 {
		text += fmt.Sprintf(", %d times", r.Times)
	}
	if r.After > 0 {
		text += fmt.Sprintf(", after %d", r.After)
	}
	return text
}

func (r Refusal) verb() string {
	if r.Verb == "" {
		return Any
	}
	return r.Verb
}

func (r Refusal) matches(req Request) bool {
	return r.Resource == req.GroupResource && r.Subresource == req.Subresource && (r.verb() == Any || r.Verb == req.Verb)
}

// uncounted are resources that no promise is about.
var uncounted = map[schema.GroupResource]bool{
	{Resource: "events"}:                         true,
	{Group: "events.k8s.io", Resource: "events"}: true,

	{Group: "coordination.k8s.io", Resource: "leases"}:                     true,
	{Group: "authentication.k8s.io", Resource: "tokenreviews"}:             true,
	{Group: "authentication.k8s.io", Resource: "selfsubjectreviews"}:       true,
	{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"}:      true,
	{Group: "authorization.k8s.io", Resource: "localsubjectaccessreviews"}: true,
	{Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"}:  true,
	{Group: "authorization.k8s.io", Resource: "selfsubjectrulesreviews"}:   true,
}

// Counted is what is counted unless a plan says otherwise: every mutating request that is no dry run and not about
// events, leases or reviews of tokens and access.
func Counted(r Request) bool { return !r.DryRun && !uncounted[r.GroupResource] }

// mutating reports whether a request may change something.
func mutating(method string) bool {
	switch method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return true
	}
	return false
}
