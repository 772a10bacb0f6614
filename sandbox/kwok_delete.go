package sandbox

// This file makes a simulated kubelet delete the pod that it has ended, and no other one of its name.

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// endedOnly wraps the transport of KWOK, which deletes a pod by its name, and now and then twice when it is behind. By
// then the name may belong to the pod's successor. A kubelet names the UID of the pod that it has ended; so does a
// delete that passes here, and one of a pod that is not terminating is taken for one that came too late.
func endedOnly(reader *rest.Config) (func(http.RoundTripper) http.RoundTripper, error) {
	client, err := kubernetes.NewForConfig(reader)
	if err != nil {
		return nil, err
	}
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			// /api/v1/namespaces/NAMESPACE/pods/NAME
			parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
			if req.Method != http.MethodDelete || len(parts) != 6 || parts[4] != "pods" {
				return next.RoundTrip(req)
			}
			pod, err := client.CoreV1().Pods(parts[3]).Get(req.Context(), parts[5], metav1.GetOptions{})
			if err == nil && pod.DeletionTimestamp != nil {
				return next.RoundTrip(ofPod(req, pod.UID))
			}
			if req.Body != nil {
				_ = req.Body.Close()
			}
			if err != nil && !apierrors.IsNotFound(err) {
				return nil, err
			}
			gone := &http.Response{
				Status: "404 Not Found", StatusCode: http.StatusNotFound, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
				Header: http.Header{}, Body: http.NoBody, Request: req,
			}
			return gone, nil
		})
	}, nil
}

// ofPod is a delete of a pod with that UID, at once, and of no other one.
func ofPod(req *http.Request, uid types.UID) *http.Request {
	if req.Body != nil {
		_ = req.Body.Close()
	}
	body := fmt.Sprintf(`{"apiVersion":"v1","kind":"DeleteOptions","gracePeriodSeconds":0,"preconditions":{"uid":%q}}`, uid)
	out := req.Clone(req.Context())
	out.Header.Set("Content-Type", runtime.ContentTypeJSON)
	// A connection that breaks has the request sent again, with a fresh copy of the body.
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(body)), nil }
	out.Body, out.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	return out
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
