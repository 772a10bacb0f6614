package fault_test

import (
	"cmp"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// This file is a webhook as it is in a cluster, with TLS: it refuses with another text each time, or takes its time.

// reviewer answers the API server's questions about writes, for the namespaces that have asked for something.
type reviewer struct {
	*httptest.Server

	mu    sync.Mutex
	rules map[string]review
}

// review is what it does in one namespace.
type review struct {
	// verb and resource narrow it: CREATE of pods.
	verb     registrationv1.OperationType
	resource string
	// slow is how long it thinks.
	slow time.Duration
	// timeout is how long the API server waits, in seconds; zero means ten.
	timeout int32
	// deny has it refuse.
	deny bool
}

func startReviewer(t *testing.T) *reviewer {
	t.Helper()
	r := &reviewer{rules: map[string]review{}}
	r.Server = httptest.NewTLSServer(r)
	t.Cleanup(func() {
		r.CloseClientConnections()
		r.Close()
	})
	return r
}

// ServeHTTP answers one review. What it says is never the same twice, as with most policy engines, which put a
// request's id into their answer.
func (r *reviewer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var in admissionv1.AdmissionReview
	if err := json.NewDecoder(req.Body).Decode(&in); err != nil || in.Request == nil {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	rule := r.rules[in.Request.Namespace]
	r.mu.Unlock()
	select {
	case <-time.After(rule.slow):
	case <-req.Context().Done():
	}
	in.Response = &admissionv1.AdmissionResponse{UID: in.Request.UID, Allowed: !rule.deny}
	if rule.deny {
		in.Response.Result = &metav1.Status{Code: http.StatusForbidden, Message: fmt.Sprintf("policy engine is down (request %s)", in.Request.UID)}
	}
	in.Request = nil
	_ = json.NewEncoder(w).Encode(in) //nolint:errchkjson // it came as JSON
}

// review puts the webhook in front of what the namespace writes, until the test ends or the function is called that it
// returns. It is in force when review returns.
func (l *lab) review(rule review) (lift func()) {
	l.Helper()
	name := l.namespace + ".example.com"
	l.hook.mu.Lock()
	l.hook.rules[l.namespace] = rule
	l.hook.mu.Unlock()
	timeout := cmp.Or(rule.timeout, 10)
	url, none, fail := l.hook.URL, registrationv1.SideEffectClassNone, registrationv1.Fail
	config := &registrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []registrationv1.ValidatingWebhook{{
			Name: name, AdmissionReviewVersions: []string{"v1"}, SideEffects: &none, FailurePolicy: &fail, TimeoutSeconds: &timeout,
			ClientConfig: registrationv1.WebhookClientConfig{
				URL: &url, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: l.hook.Certificate().Raw}),
			},
			NamespaceSelector: l.selector(),
			Rules:             []registrationv1.RuleWithOperations{ruleFor(rule.verb, rule.resource)},
		}},
	}
	all := l.client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	if _, err := all.Create(l.Context(), config, metav1.CreateOptions{}); err != nil {
		l.Fatal(err)
	}
	lift = sync.OnceFunc(func() {
		if err := all.Delete(l.Context(), name, metav1.DeleteOptions{}); err != nil {
			l.Error(err)
		}
	})
	l.Cleanup(func() { // the namespace goes, and nobody asks this webhook any more
		_ = all.Delete(context.WithoutCancel(l.Context()), name, metav1.DeleteOptions{})
	})
	l.until("the webhook is in force", func() error {
		began := time.Now()
		err := l.probe(rule.verb, rule.resource)
		if rule.deny && (err == nil || !strings.Contains(err.Error(), "policy engine")) || time.Since(began) < min(rule.slow, time.Duration(timeout)*time.Second) {
			return errors.Join(fmt.Errorf("%s of %s is answered after %s", rule.verb, rule.resource, time.Since(began)), err)
		}
		return nil
	})
	return lift
}

// selector picks the lab's namespace.
func (l *lab) selector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: l.namespace}}
}

func ruleFor(verb registrationv1.OperationType, resource string) registrationv1.RuleWithOperations {
	return registrationv1.RuleWithOperations{
		Operations: []registrationv1.OperationType{verb},
		Rule:       registrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{resource}},
	}
}

// probe does something that a policy may be about, as a dry run.
func (l *lab) probe(verb registrationv1.OperationType, resource string) error {
	dry := []string{metav1.DryRunAll}
	pods := l.client.CoreV1().Pods(l.namespace)
	if verb == registrationv1.Create && resource == "pods" {
		_, err := pods.Create(l.Context(), l.pod("probe", nil), metav1.CreateOptions{DryRun: dry})
		return err
	}
	if resource == "controllerrevisions" {
		r := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "probe"}, Revision: 1, Data: runtime.RawExtension{Raw: []byte("{}")}}
		_, err := l.client.AppsV1().ControllerRevisions(l.namespace).Create(l.Context(), r, metav1.CreateOptions{DryRun: dry})
		return err
	}
	list, err := pods.List(l.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) == 0 {
		return errors.Join(errors.New("there is no pod to try it on"), err)
	}
	name := list.Items[0].Name
	if verb == registrationv1.Delete {
		return pods.Delete(l.Context(), name, metav1.DeleteOptions{DryRun: dry})
	}
	_, err = pods.Patch(l.Context(), name, types.MergePatchType, []byte(`{"metadata":{"annotations":{"probe":"1"}}}`), metav1.PatchOptions{DryRun: dry})
	return err
}

// pod is a pod of nobody's.
func (l *lab) pod(name string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: l.namespace, Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "app:1"}}},
	}
}
