package env

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// TestExplain: errors of libraries name the thing to correct.
func TestExplain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	const config = `{apiVersion: v1, kind: Config, current-context: prod, clusters: [{name: c, cluster: {server: "https://c"}}],
contexts: [{name: prod, context: {cluster: c}}, {name: dev, context: {cluster: c}}]}`
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	_, unitless := time.ParseDuration("5")
	other := errors.New("something else")
	for _, c := range []struct {
		context string
		err     error
		want    string
	}{
		{"nope", nil, `the kubeconfig has no context "nope"; available: dev, prod`},
		{"", apierrors.NewUnauthorized("no"), `the API server rejected the credentials of context "prod"; they may have expired: no`},
		{"", unitless, `time: missing unit in duration "5"; write 5s for 5 seconds`},
		{"", other, "something else"},
	} {
		e := New(genericiooptions.NewTestIOStreamsDiscard(), "test")
		*e.Cluster.KubeConfig, *e.Cluster.Context = file, c.context
		if c.err == nil {
			_, _, c.err = e.Connect()
		}
		if got := e.Explain(c.err).Error(); got != c.want {
			t.Errorf("%v: %s, want %s", c.err, got, c.want)
		}
	}
}
