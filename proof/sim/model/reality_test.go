package model_test

// This file speaks to the real API server in the model's words.

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/sim/model"
)

// reality is the real API server.
type reality struct {
	host   string
	client *http.Client
}

func newReality(cfg *rest.Config) (*reality, error) {
	c, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, err
	}
	return &reality{host: cfg.Host, client: c}, nil
}

// reply is an answer of the real API server.
type reply struct {
	status metav1.Status  // zero if it is an object
	body   map[string]any // the object or the list
}

// methods are the HTTP methods of the verbs.
var methods = map[string]string{
	model.VerbGet: http.MethodGet, model.VerbList: http.MethodGet, model.VerbCreate: http.MethodPost,
	model.VerbUpdate: http.MethodPut, model.VerbPatch: http.MethodPatch, model.VerbDelete: http.MethodDelete,
	model.VerbDeleteCollection: http.MethodDelete,
}

// do sends a request. Its body has been translated already. A server that says "not yet", as it does about a kind that
// is new, is asked again.
func (a *reality) do(ctx context.Context, r model.Request, body []byte) (answer reply, err error) {
	err = wait.PollUntilContextTimeout(ctx, pollInterval, collectorPatience, true, func(ctx context.Context) (bool, error) {
		answer, err = a.once(ctx, r, body)
		return answer.status.Code != http.StatusTooManyRequests, err
	})
	return answer, err
}

// once sends a request once.
func (a *reality) once(ctx context.Context, r model.Request, body []byte) (reply, error) {
	request, err := http.NewRequestWithContext(ctx, methods[r.Verb], a.host+pathOf(r)+"?"+queryOf(r).Encode(), bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Content-Type", "application/json")
	if r.Verb == model.VerbPatch {
		request.Header.Set("Content-Type", string(r.PatchType))
	}
	response, err := a.client.Do(request)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return reply{}, err
	}
	var answer reply
	if response.StatusCode >= http.StatusBadRequest {
		if json.Unmarshal(data, &answer.status) != nil || answer.status.Kind != "Status" {
			answer.status = metav1.Status{Status: metav1.StatusFailure, Code: int32(response.StatusCode), Message: string(data)}
		}
		return answer, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&answer.body); err != nil {
		return reply{}, fmt.Errorf("%s %s: %w", request.Method, request.URL, err)
	}
	return answer, nil
}

func pathOf(r model.Request) string {
	parts := []string{"/apis", r.Resource.Group, r.Resource.Version}
	if r.Resource.Group == "" {
		parts = []string{"/api", r.Resource.Version}
	}
	if r.Namespace != "" {
		parts = append(parts, "namespaces", r.Namespace)
	}
	parts = append(parts, r.Resource.Resource)
	if r.Name != "" {
		parts = append(parts, r.Name)
	}
	if r.Subresource != "" {
		parts = append(parts, r.Subresource)
	}
	return strings.Join(parts, "/")
}

func queryOf(r model.Request) url.Values {
	q := url.Values{}
	if r.DryRun {
		q.Set("dryRun", metav1.DryRunAll)
	}
	if r.LabelSelector != nil {
		q.Set("labelSelector", r.LabelSelector.String())
	}
	if r.FieldSelector != nil {
		q.Set("fieldSelector", r.FieldSelector.String())
	}
	return q
}

// bodyOf is the body of a request in JSON, in the model's UIDs and resource versions.
func bodyOf(r model.Request, kind model.Kind) ([]byte, error) {
	switch r.Verb {
	case model.VerbCreate, model.VerbUpdate:
		object := r.Object.DeepCopyObject().(client.Object)
		if r.Subresource != "binding" {
			object.GetObjectKind().SetGroupVersionKind(kind.Kind)
		}
		return json.Marshal(object)
	case model.VerbPatch:
		return r.Patch, nil
	case model.VerbDelete, model.VerbDeleteCollection:
		o := metav1.DeleteOptions{
			Preconditions: r.Preconditions, PropagationPolicy: r.Propagation, GracePeriodSeconds: r.GracePeriodSeconds,
		}
		o.Kind, o.APIVersion = "DeleteOptions", "v1"
		if r.DryRun {
			o.DryRun = []string{metav1.DryRunAll}
		}
		return json.Marshal(o)
	default:
		return nil, nil
	}
}
