package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	exit "github.com/cairn-dev/cairn/internal/cli/env"
)

// This file asks the command line about several objects at once, as kubectl finds them.

func TestSeveralObjects(t *testing.T) {
	a := &asking{newEnv(t), t.TempDir()}
	a.upstream()
	web, api := a.daemonSet("web", "web:1"), a.daemonSet("api", "api:1")
	a.create(web)
	a.create(api)
	a.settled(web)
	a.settled(api)
	a.image(web, "web:2")
	a.settled(web)
	web.SetLabels(map[string]string{"team": "shop"})
	must(t, a.Update(t.Context(), web))
	const columns = " -o custom-columns=OF:.parent.name,REV:.revision,CURRENT:.current"
	for command, want := range map[string]string{
		"history ds" + columns:                                "OF REV CURRENT api 1 true web 1 false web 2 true",
		"history ds api web" + columns:                        "OF REV CURRENT api 1 true web 1 false web 2 true",
		"history ds/web -l team=shop":                         "error: -l and -A select among the objects of a TYPE, so that none can be named (see cairn history --help)",
		"history ds -l team=shop" + columns:                   "OF REV CURRENT web 1 false web 2 true",
		"history ds -l team=none":                             "No resources found in " + a.namespace + " namespace.",
		"history -f " + a.manifests() + columns:               "OF REV CURRENT api 1 true web 1 false web 2 true",
		"history ds/web -o jsonpath={.revisions[*].revision}": "1 2",
		"diff ds -l team=shop -o changes":                     `daemonset.apps/web: containers[name="main"].image: web:1 → web:2`,
		// By its full name: other tests have kinds with the same short one, of which kubectl's mapper warns.
		"status ds,statefulsets.apps -o custom-columns=N:.parent.name,S:.state": "N S api Done web Done",
	} {
		out, _ := a.ask(command)
		if got := strings.Join(strings.Fields(out), " "); got != want {
			t.Errorf("%s:\n%s\nwant %s", command, out, want)
		}
	}
	a.says(exit.OK, "status ds -A -l team=shop", "NAMESPACE", a.namespace+"   daemonset.apps/web   Done")
	a.says(exit.OK, "status ds/web ds/api --watch --timeout 1m", "daemonset.apps/web rolled out", "daemonset.apps/api rolled out")
	a.says(exit.OK, "tree ds -l team=shop", "pod/web-")
	a.says(exit.Failed, "history ds web gone", "daemonset.apps/web", `"gone" not found`)
}

// manifests returns a directory with manifests of both, as users write them: only what the name needs.
func (a *asking) manifests() string {
	a.Helper()
	dir := a.TempDir()
	for _, name := range []string{"web", "api"} {
		text := "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: " + name + "}\n"
		must(a, os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600))
	}
	return dir
}
