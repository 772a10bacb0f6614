package manager

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestDeleteLeavesTheAnswerUnread: the request has the object's path, its preconditions and its propagation; the
// content of the answer is not decoded, and a refusal is.
func TestDeleteLeavesTheAnswerUnread(t *testing.T) {
	var asked, body string
	code, answer := http.StatusOK, "not an object"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, _ := io.ReadAll(r.Body)
		asked, body = r.Method+" "+r.URL.Path, string(content)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	cfg := &rest.Config{Host: server.URL}
	c, err := newClient(cfg, client.Options{HTTPClient: server.Client(), Scheme: clientgoscheme.Scheme, Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-0"}}
	remove := func() error {
		return c.Delete(t.Context(), pod,
			client.Preconditions{UID: new(pod.UID + "a-uid")}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	}
	if err := remove(); err != nil {
		t.Errorf("the answer was read: %v", err)
	}
	if asked != "DELETE /api/v1/namespaces/ns/pods/web-0" ||
		!strings.Contains(body, `"uid":"a-uid"`) || !strings.Contains(body, `"propagationPolicy":"Background"`) {
		t.Errorf("asked %s with %s", asked, body)
	}

	code, answer = http.StatusConflict, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`
	if err := remove(); !apierrors.IsConflict(err) {
		t.Errorf("got %v, want a conflict", err)
	}
}
