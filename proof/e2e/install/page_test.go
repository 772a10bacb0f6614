package install

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var errorf = fmt.Errorf

// thePageIsReal runs every command of docs/install.md that is in a block of its own, in the order of the page, on a
// cluster without cairn. After the last one nothing of it is left.
func thePageIsReal(t *testing.T) {
	cluster(t)
	page, err := os.ReadFile(filepath.Join(root(), "docs", "install.md"))
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	for _, block := range regexp.MustCompile("(?s)```\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		commands = append(commands, strings.Split(strings.TrimSpace(block[1]), "\n")...)
	}
	if len(commands) < 8 {
		t.Fatalf("the page has %d commands: %q", len(commands), commands)
	}
	for _, command := range commands {
		out := must(t, command)
		switch {
		case strings.Contains(command, "get deploy"):
			must(t, "kubectl -n cairn-system rollout status deployment/cairn-manager --timeout=60s")
			if !strings.Contains(out, "deployment.apps/cairn-manager") || !strings.Contains(out, "poddisruptionbudget.policy/cairn-manager") {
				t.Errorf("%s:\n%s", command, out)
			}
		case strings.HasPrefix(command, "helm upgrade"):
			runs(t, command, second)
		case strings.HasPrefix(command, "helm rollback"):
			runs(t, command, first)
		}
	}
	for _, kinds := range []string{
		"clusterroles,clusterrolebindings", "crds", "validatingadmissionpolicies,validatingadmissionpolicybindings",
		"deployments,services,poddisruptionbudgets,networkpolicies,roles -A",
	} {
		for line := range strings.Lines(must(t, "kubectl get -o name "+kinds)) {
			if strings.Contains(line, "cairn") && !strings.Contains(line, "prometheus-reads-cairn") { // which people have made
				t.Errorf("after the last command there is still %s", line)
			}
		}
	}
}

// runs fails the test unless the Deployment asks for the image of a version, and is rolled out.
func runs(t *testing.T, command, version string) {
	t.Helper()
	must(t, "kubectl -n cairn-system rollout status deployment/cairn-manager --timeout=60s")
	if image := must(t, "kubectl -n cairn-system get deployment cairn-manager -o jsonpath={.spec.template.spec.containers[0].image}"); !strings.HasSuffix(image, ":"+version) {
		t.Errorf("after %s the image is %s", command, image)
	}
}
