// Package monitoring checks the alerts and the dashboard beside it, in a module of its own: nothing else of ours needs
// Prometheus.
package monitoring

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// TestAlerts: Prometheus takes the rules, by the code that it reads them with ("promtool check rules" has no other),
// and each says what it is about and what to do.
func TestAlerts(t *testing.T) {
	groups, errs := rulefmt.ParseFile("alerts.yaml", false)
	for _, err := range errs {
		t.Error(err)
	}
	if t.Failed() {
		t.FailNow()
	}
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			if r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("%s lacks a severity, a summary or a description", r.Alert)
			}
		}
	}
}

// TestDashboard: Grafana's model is JSON, and each query is one of Prometheus'.
func TestDashboard(t *testing.T) {
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(read(t, "dashboard.json"), &board); err != nil {
		t.Fatal(err)
	}
	for _, p := range board.Panels {
		if len(p.Targets) == 0 {
			t.Errorf("%s shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			if _, err := parser.ParseExpr(target.Expr); err != nil {
				t.Errorf("%s: %s: %v", p.Title, target.Expr, err)
			}
		}
	}
	if len(board.Panels) == 0 {
		t.Error("there are no panels")
	}
}

// TestMetricsAreDescribed: docs/metrics.md has each metric of ours that is alerted on or shown.
func TestMetricsAreDescribed(t *testing.T) {
	page := string(read(t, "../../docs/metrics.md"))
	for _, file := range []string{"alerts.yaml", "dashboard.json"} {
		for _, name := range regexp.MustCompile(`\b(cairn|metacontroller)_[a-z_]+`).FindAllString(string(read(t, file)), -1) {
			if name = strings.TrimSuffix(name, "_bucket"); !strings.Contains(page, "`"+name+"`") {
				t.Errorf("docs/metrics.md says nothing of %s", name)
			}
		}
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
