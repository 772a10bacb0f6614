package e2e

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/cairn-dev/cairn/deploy"
	"github.com/cairn-dev/cairn/sandbox/install"
)

// TestMetricsAreForThoseWhoMayReadThem: over TLS, with the shipped roles and real tokens, also from a manager that
// waits for the lease.
func TestMetricsAreForThoseWhoMayReadThem(t *testing.T) {
	e := newLonelyEnv(t) // its managers are processes
	root, kubeconfig := e.installed()
	if err := install.Apply(t.Context(), e.sandbox.Config(), deploy.Metrics()); err != nil {
		t.Fatal(err)
	}
	reader, other := e.account("prometheus"), e.account("other")
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: e.namespace + "-reads-metrics"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: deploy.MetricsReader},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "prometheus", Namespace: e.namespace}},
	}
	e.create(binding)
	for _, p := range []*process{e.manager(root, kubeconfig, "--metrics-secure"), e.manager(root, kubeconfig, "--metrics-secure")} {
		url := "https://" + p.address("metrics") + "/metrics"
		e.eventually("read the metrics with the right to", func() error {
			if status, body := e.scrape(url, reader.BearerToken); status != http.StatusOK || !strings.Contains(body, "rest_client_requests_total") {
				return fmt.Errorf("%d %.200s\n%s", status, body, p.text())
			}
			return nil
		})
		for token, want := range map[string]int{other.BearerToken: http.StatusForbidden, "made-up": http.StatusUnauthorized, "": http.StatusUnauthorized} {
			if status, body := e.scrape(url, token); status != want || strings.Contains(body, "rest_client") {
				t.Errorf("with %.10q: %d %.200s", token, status, body)
			}
		}
	}
}

// account makes a service account and returns a configuration with its token.
func (e *env) account(name string) *rest.Config {
	e.Helper()
	e.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: name}})
	cfg, err := e.sandbox.ServiceAccountConfig(e.Context(), e.namespace, name)
	if err != nil {
		e.Fatal(err)
	}
	return cfg
}

// scrape gets a page with a token.
func (e *env) scrape(url, token string) (status int, body string) {
	e.Helper()
	req, err := http.NewRequestWithContext(e.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		e.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		e.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	page, err := io.ReadAll(resp.Body)
	if err != nil {
		e.Fatal(err)
	}
	return resp.StatusCode, string(page)
}
