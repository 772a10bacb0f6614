package e2e

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/cairn-dev/cairn/deploy"
	"github.com/cairn-dev/cairn/internal/manager"
	"github.com/cairn-dev/cairn/sandbox/install"
)

// TestMetricsAreForThoseWhoMayReadThem: over TLS, with the shipped roles and real tokens, also from a manager that
// waits for the lease.
func TestMetricsAreForThoseWhoMayReadThem(t *testing.T) {
	e := newLonelyEnv(t) // its managers are processes
	root, kubeconfig := e.installed()
	must(t, install.Apply(t.Context(), e.sandbox.Config(), deploy.Metrics()))
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
			status, body := e.scrape(url, reader.BearerToken)
			if status != http.StatusOK || !strings.Contains(body, `leader_election_master_status{name="`+deploy.LeaseName+`"}`) {
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

// TestWhatAlertsAndDashboardName: every metric that they name is there when there is something to say, with the labels
// of the object, and not when the object is gone. The leader's is in the test above, those of hooks in package hook.
func TestWhatAlertsAndDashboardName(t *testing.T) {
	r := newRecorded(t)
	named := regexp.MustCompile(`\b(cairn|workqueue|rest_client|process)_[a-z_]+`)
	var names []string
	for _, file := range []string{"alerts.yaml", "dashboard.json"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "monitoring", file))
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, named.FindAllString(string(text), -1)...)
	}
	policy := r.policy("settings", configMaps)
	r.inside = true
	r.cairnWith(func(*rest.Config) {}, manager.Options{Controllers: []string{"daemonset", "recorder"}, AskServer: true})
	stuck := r.daemonSet("stuck", "app:1")
	r.create(stuck)
	r.rolledOut(stuck)
	r.image(stuck, "broken:1")
	r.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "settings"}, Data: map[string]string{"a": "b"}})
	const critical = "system-node-critical"
	r.create(&corev1.ResourceQuota{ // which leaves the other DaemonSet alone
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "none"},
		Spec: corev1.ResourceQuotaSpec{
			Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")},
			ScopeSelector: &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
				{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{critical}},
			}},
		},
	})
	refused := r.daemonSet("refused", "app:1", func(ds *appsv1.DaemonSet) { ds.Spec.Template.Spec.PriorityClassName = critical })
	r.create(refused)
	r.eventually("every metric is there", func() error {
		for _, name := range names {
			if len(series(t, name, "")) == 0 {
				return errorf("no %s", name)
			}
		}
		for name, want := range map[string]string{
			"cairn_rollout_last_progress_timestamp_seconds": "apps DaemonSet stuck " + r.namespace + " waiting",
			"cairn_retry_delay_seconds":                     "apps DaemonSet refused " + r.namespace,
			"cairn_refused_writes_total":                    "apps DaemonSet Forbidden",
			"cairn_history_policy_objects":                  policy.Name + " recorded",
			"cairn_history_policy_revisions":                policy.Name,
		} {
			if len(series(t, name, want)) == 0 {
				return errorf("of %s there is no %q: %q", name, want, series(t, name, ""))
			}
		}
		return nil
	})
	for _, o := range []client.Object{stuck, refused, policy} {
		must(t, r.Delete(t.Context(), o))
	}
	r.eventually("none is left", func() error {
		for _, name := range names {
			for _, of := range []string{r.namespace, policy.Name} {
				if left := series(t, name, of); len(left) > 0 {
					return errorf("of %s there is still %q", name, left)
				}
			}
		}
		return nil
	})
}

// series returns the label values of each series of a metric that have a text in them.
func series(t *testing.T, metric, text string) (out []string) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != metric {
			continue
		}
		for _, m := range family.GetMetric() {
			var values []string
			for _, label := range m.GetLabel() {
				values = append(values, label.GetValue())
			}
			if s := strings.Join(values, " "); strings.Contains(s, text) {
				out = append(out, s)
			}
		}
	}
	return out
}
