package fault

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// This file reads what an HTTP request to the API server is about, from its path, its query and, where the path says
// too little, its body.

// Request is one mutating request of the manager, as the log of an [Injector] keeps it.
type Request struct {
	schema.GroupResource
	// Index is its number among the requests that are counted, from 1; 0 if it is not counted.
	Index int
	// Verb is create, update, patch, delete or deletecollection.
	Verb string
	// Method is the HTTP method.
	Method string
	// Subresource, Namespace and Name are empty where there is none. A create has the name that it asks for.
	Subresource, Namespace, Name string
	// DryRun is true if the server is asked to store nothing.
	DryRun bool
	// Fault says what was done to it; empty if nothing.
	Fault string
	// Answer is what the server said, such as "201 Created"; empty if it was not asked or did not say.
	Answer string
}

// String is the request's line in reports.
func (r Request) String() string {
	resource := r.GroupResource.String()
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	name := r.Name
	if r.Namespace != "" {
		name = r.Namespace + "/" + r.Name
	}
	text := fmt.Sprintf("%3d %s %s %s", r.Index, r.Verb, resource, name)
	if r.DryRun {
		text += " (dry run)"
	}
	if r.Answer != "" {
		text += ": " + r.Answer
	}
	if r.Fault != "" {
		text += " [" + r.Fault + "]"
	}
	return text
}

var requestInfo = &request.RequestInfoFactory{
	APIPrefixes:          sets.NewString("api", "apis"),
	GrouplessAPIPrefixes: sets.NewString("api"),
}

// describe reads a request to the API server. It is false for a request that is not about a resource. The body of a
// mutating request is read, so a request with the same body comes back to be sent instead.
func describe(req *http.Request) (*http.Request, *request.RequestInfo, Request, bool) {
	info, err := requestInfo.NewRequestInfo(req)
	if err != nil || !info.IsResourceRequest {
		return req, info, Request{}, false
	}
	r := Request{
		GroupResource: schema.GroupResource{Group: info.APIGroup, Resource: info.Resource},
		Verb:          info.Verb, Method: req.Method,
		Subresource: info.Subresource, Namespace: info.Namespace, Name: info.Name,
		DryRun: req.URL.Query().Has("dryRun"),
	}
	if !mutating(req.Method) || req.Body == nil {
		return req, info, r, true
	}
	body, err := io.ReadAll(req.Body)
	_ = req.Body.Close()
	same := req.Clone(req.Context())
	same.Body = io.NopCloser(bytes.NewReader(body))
	if err != nil {
		same.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), failing{err}))
	}
	fromBody(&r, body)
	return same, info, r, true
}

// fromBody takes the name of what is created, and whether a delete is a dry run, from the body.
func fromBody(r *Request, body []byte) {
	if r.Name != "" && r.Method != http.MethodDelete {
		return
	}
	object, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if options, ok := object.(*metav1.DeleteOptions); err == nil && ok {
		r.DryRun = r.DryRun || len(options.DryRun) > 0
		return
	}
	if r.Method != http.MethodPost {
		return
	}
	if accessor, accessErr := meta.Accessor(object); err == nil && accessErr == nil {
		r.Name = nameOr(accessor.GetName(), accessor.GetGenerateName())
		return
	}
	var custom metav1.PartialObjectMetadata
	if json.Unmarshal(body, &custom) == nil {
		r.Name = nameOr(custom.Name, custom.GenerateName)
	}
}

// nameOr is the name, or the beginning that the server completes.
func nameOr(name, generate string) string {
	if name == "" && generate != "" {
		return generate + "*"
	}
	return name
}

// failing is a reader that fails.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
