package fault

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// This file writes answers that the API server did not give, in the form and the encoding in which it would have given
// them: a client must not be able to tell.

// answer is a response with a Status as its body, in the media type that the request asks for.
func answer(req *http.Request, status metav1.Status, header map[string]string) (*http.Response, error) {
	info := negotiate(req.Header.Get("Accept"))
	status.TypeMeta = metav1.TypeMeta{}
	body, err := runtime.Encode(clientgoscheme.Codecs.EncoderForVersion(info.Serializer, metav1.Unversioned), &status)
	if err != nil {
		return nil, fmt.Errorf("encode %q as %s: %w", status.Message, info.MediaType, err)
	}
	if req.Body != nil {
		_ = req.Body.Close() // a RoundTripper closes the body, always
	}
	code := int(status.Code)
	resp := &http.Response{
		Status:     fmt.Sprintf("%d %s", code, http.StatusText(code)),
		StatusCode: code,
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Content-Type": {info.MediaType}},
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
		Request:       req,
	}
	for key, value := range header {
		resp.Header.Set(key, value)
	}
	return resp, nil
}

// negotiate picks the first media type of an Accept header that Kubernetes speaks, and JSON if there is none.
func negotiate(accept string) runtime.SerializerInfo {
	supported := clientgoscheme.Codecs.SupportedMediaTypes()
	for one := range strings.SplitSeq(accept, ",") {
		mediaType, _, err := mime.ParseMediaType(strings.TrimSpace(one))
		if err != nil {
			continue
		}
		if info, ok := runtime.SerializerInfoForMediaType(supported, mediaType); ok {
			return info
		}
	}
	info, _ := runtime.SerializerInfoForMediaType(supported, runtime.ContentTypeJSON)
	return info
}

// statusOf is the error that the server would give for a status code.
func statusOf(code int, r Request) metav1.Status {
	switch code {
	case http.StatusConflict:
		return apierrors.NewConflict(r.GroupResource, r.Name, errInjected).ErrStatus
	case http.StatusTooManyRequests:
		return apierrors.NewTooManyRequestsError(errInjected.Error()).ErrStatus
	case http.StatusInternalServerError:
		return apierrors.NewInternalError(errInjected).ErrStatus
	case http.StatusForbidden:
		return apierrors.NewForbidden(r.GroupResource, r.Name, errInjected).ErrStatus
	case http.StatusUnprocessableEntity:
		// What NewInvalid makes, without the kind, which no request names.
		return metav1.Status{
			Status: metav1.StatusFailure, Code: int32(code), Reason: metav1.StatusReasonInvalid,
			Details: &metav1.StatusDetails{Group: r.Group, Kind: r.Resource, Name: r.Name},
			Message: fmt.Sprintf("%s %q is invalid: %v", r.GroupResource, r.Name, errInjected),
		}
	}
	return apierrors.NewGenericServerResponse(code, r.Verb, r.GroupResource, r.Name, errInjected.Error(), 0, true).ErrStatus
}

// retryAfter is the header that makes a client wait before it sends a request again.
func retryAfter(seconds int) map[string]string {
	return map[string]string{"Retry-After": strconv.Itoa(seconds)}
}
