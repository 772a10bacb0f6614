package sandbox

// This file tells a caller of every request that the API server answers. It is the server's audit, so nobody is missed:
// neither another process nor a client that counts wrongly.

import (
	"k8s.io/apiserver/pkg/apis/audit"
	auditing "k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Request is one request that the API server has answered, or, of a watch, has begun to answer.
type Request struct {
	// User is whose request it is; of one who impersonates somebody, that somebody.
	User string
	// Verb is Kubernetes' (get, list, watch, create, update, patch, delete, deletecollection), or, where there is no
	// resource, that of HTTP in lower case.
	Verb string
	// Group, Resource and Subresource say of what. They are empty for a path such as /healthz or /apis.
	Group, Resource, Subresource string
	Namespace, Name              string
	// Path is the request's URI.
	Path string
	// Code is the HTTP status of the answer.
	Code int32
}

// requestLog is an audit backend that hands requests to a function, and the policy that has it do so for all of them.
type requestLog func(Request)

var (
	_ auditing.Backend             = requestLog(nil)
	_ auditing.PolicyRuleEvaluator = requestLog(nil)
)

// EvaluatePolicyRule asks for who, what and the answer's status, without bodies, and not for a request's arrival.
func (requestLog) EvaluatePolicyRule(authorizer.Attributes) auditing.RequestAuditConfig {
	return auditing.RequestAuditConfig{Level: audit.LevelMetadata, OmitStages: []audit.Stage{audit.StageRequestReceived}}
}

// ProcessEvents hands out a watch when it begins and everything else when it is over.
func (l requestLog) ProcessEvents(events ...*audit.Event) bool {
	for _, e := range events {
		if (e.Stage == audit.StageResponseStarted) == (e.Verb == "watch") {
			l(requestOf(e))
		}
	}
	return true
}

func requestOf(e *audit.Event) Request {
	r := Request{User: e.User.Username, Verb: e.Verb, Path: e.RequestURI}
	if e.ImpersonatedUser != nil {
		r.User = e.ImpersonatedUser.Username
	}
	if o := e.ObjectRef; o != nil {
		r.Group, r.Resource, r.Subresource, r.Namespace, r.Name = o.APIGroup, o.Resource, o.Subresource, o.Namespace, o.Name
	}
	if e.ResponseStatus != nil {
		r.Code = e.ResponseStatus.Code
	}
	return r
}

// Run has nothing to start.
func (requestLog) Run(<-chan struct{}) error { return nil }

// Shutdown has nothing to stop: ProcessEvents hands out as it goes.
func (requestLog) Shutdown() {}

func (requestLog) String() string { return "sandbox" }
