package fault

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// This file says what is to fail: single requests by their number, or all requests to one resource.

// Any stands for every verb in a [Fault] or a [Refusal].
const Any = "*"

const (
	defaultHang       = 300 * time.Millisecond
	defaultRetryAfter = time.Second
	defaultHold       = 500 * time.Millisecond
)

// Plan says which requests fail and how. The zero value lets everything pass and only counts.
type Plan struct {
	// Faults act on single requests by their number. If several are for one request, the first of them does.
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
	// HoldFor bounds the time for which [Unseen] and [KillStale] keep events from the caches. Zero means 500 ms.
	HoldFor time.Duration
}

// Fault makes one request fail, or a few in a row.
type Fault struct {
	// At is the number of the request, from 1: among those that are counted or, if a resource is given, among those that
	// match.
	At int
	// Mode is how it fails.
	Mode Mode
	// Resource, Subresource and Verb say which requests match. The zero resource means every request that is counted, and
	// the other two are ignored then.
	Resource    schema.GroupResource
	Subresource string
	Verb        string
	// Times is how many fail, from number At on. Zero means one.
	Times int
}

// String says the fault as reports do.
func (f Fault) String() string {
	text := fmt.Sprintf("%s, k=%d", f.Mode, f.At)
	if f.Resource != (schema.GroupResource{}) {
		text = fmt.Sprintf("%s, %s %d", f.Mode, f.target(), f.At)
	}
	if f.Times > 1 {
		text += fmt.Sprintf(", %d times", f.Times)
	}
	return text
}

func (f Fault) target() target { return target{f.Resource, f.Subresource, f.Verb} }

// hits reports whether the n-th request that is the fault's business is to fail.
func (f Fault) hits(n int) bool { return n >= f.At && n < f.At+max(1, f.Times) }

// target picks requests by what they are about.
type target struct {
	resource          schema.GroupResource
	subresource, verb string
}

// String names the verb and the resource.
func (t target) String() string {
	resource := t.resource.String()
	if t.subresource != "" {
		resource += "/" + t.subresource
	}
	return cmp.Or(t.verb, Any) + " " + resource
}

func (t target) matches(r Request) bool {
	verb := cmp.Or(t.verb, Any)
	return t.resource == r.GroupResource && t.subresource == r.Subresource && (verb == Any || verb == r.Verb)
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
	text := fmt.Sprintf("refuse %s with %d", r.target(), r.Status)
	if r.Times > 0 {
		text += fmt.Sprintf(", %d times", r.Times)
	}
	if r.After > 0 {
		text += fmt.Sprintf(", after %d", r.After)
	}
	return text
}

func (r Refusal) target() target { return target{r.Resource, r.Subresource, r.Verb} }

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
