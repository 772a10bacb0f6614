package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReplaced: the rows of one system are replaced, those of the others stay, in the order of the systems.
func TestReplaced(t *testing.T) {
	const begin, end = "<!-- compat: begin -->", "<!-- compat: end -->"
	page := "before\n" + begin + "\n| LeaderWorkerSet 0.6.0 `LeaderWorkerSet` | old |\n" +
		"| Argo Rollouts 1.8.3 `Rollout` | kept |\n" + end + "\nafter\n"
	lws := systems[1]
	found := map[string]error{"history": nil, "diff": errors.New("a|b")}
	got, err := theKinds.changed(page, lws.replaced([]row{lws.row(lws.kinds[0], found)}))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"before", begin, "",
		"| kind | history | status | diff | undo | tree | verify | remark |",
		"|---|---|---|---|---|---|---|---|",
		"| Argo Rollouts 1.8.3 `Rollout` | kept |",
		"| LeaderWorkerSet 0.7.0 `LeaderWorkerSet` | yes |  | **a\\|b** |  |  |  | " + lws.kinds[0].note + " |",
		"", end, "after", "",
	}
	if diff := cmp.Diff(want, strings.Split(got, "\n")); diff != "" {
		t.Error(diff)
	}
	if _, err := theKinds.changed("a page without markers", lws.replaced(nil)); err == nil {
		t.Error("a page without markers was changed")
	}
}

// TestOutside: what would run a controller in a pod is left out; Services and webhooks lead to this host.
func TestOutside(t *testing.T) {
	const manifests = `kind: Deployment
---
kind: Service
metadata: {name: hook}
spec: {selector: {a: b}}
---
kind: MutatingWebhookConfiguration
webhooks: [{name: a, clientConfig: {service: {name: hook}}}]
`
	const want = `kind: Service
metadata:
  name: hook
spec:
  externalName: localhost
  type: ExternalName

---
kind: MutatingWebhookConfiguration
webhooks:
- clientConfig:
    service:
      name: hook
      port: 9443
  name: a
`
	got, err := outside(manifests, 9443)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestObjects: every file that a kind names is there.
func TestObjects(t *testing.T) {
	for _, s := range systems {
		for _, k := range s.kinds {
			for _, file := range []string{k.file, k.beside} {
				if _, err := objects.ReadFile("objects/" + file); err != nil && file != "" {
					t.Errorf("%s: %v", k.title, err)
				}
			}
		}
	}
}
