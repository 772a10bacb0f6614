package e2e

// The next apply after an undo leaves exactly its manifest (kubernetes#94698). No container or variable of the restored
// revision stays. The same for client-side and server-side apply.

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	exit "github.com/cairn-dev/cairn/internal/cli/env"
)

func TestApplyAfterUndo(t *testing.T) {
	for name, how := range map[string][]string{
		"client":  {"apply"},
		"server":  {"apply", "--server-side"},
		"flux":    {"apply", "--server-side", "--force-conflicts", "--field-manager=kustomize-controller"},
		"argo":    {"apply", "--server-side", "--force-conflicts", "--field-manager=argocd-controller"},
		"helm-v4": {"apply", "--server-side", "--field-manager=helm"},
	} {
		t.Run(name, func(t *testing.T) {
			a := &asking{newEnv(t), t.TempDir()}
			a.upstreamOf("replicaset")
			web := a.deployment(name, "app:1", 1)
			apply := func(container, image, variable string) {
				t.Helper()
				file := filepath.Join(t.TempDir(), "web.yaml")
				must(t, os.WriteFile(file, fmt.Appendf(nil, `apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: 1
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: %[2]s, image: %[3]q, env: [{name: %[4]s, value: "1"}]}]}
`, name, container, image, variable), 0o600))
				a.must(a.kubectl(append(how, "-f", file)...))
				a.deployed(web)
			}
			is := func(want string) {
				t.Helper()
				must(t, a.Get(t.Context(), client.ObjectKeyFromObject(web), web))
				var got []string
				for _, c := range web.Spec.Template.Spec.Containers {
					text := c.Name + "=" + c.Image
					for _, v := range c.Env {
						text += "," + v.Name
					}
					got = append(got, text)
				}
				if strings.Join(got, " ") != want {
					t.Fatalf("the containers are %s, want %s", got, want)
				}
			}
			apply("a", "app:1", "OLD")
			apply("b", "app:2", "NEW")
			a.says(exit.OK, "undo --yes deploy/"+name, "rolled back to revision 1", "takes this undo back, as a whole")
			a.deployed(web)
			is("a=app:1,OLD")
			apply("b", "app:3", "NEW")
			is("b=app:3,NEW")

			// The same within a container, and the manifest of the restored revision changes nothing.
			apply("b", "app:4", "NEWER")
			a.says(exit.OK, "undo --yes deploy/"+name, "rolled back to revision")
			is("b=app:3,NEW")
			before := web.Generation
			apply("b", "app:3", "NEW")
			if web.Generation != before {
				t.Errorf("the manifest of the restored revision makes generation %d of %d", web.Generation, before)
			}
			apply("b", "app:5", "NEWER")
			is("b=app:5,NEWER")
		})
	}
}
