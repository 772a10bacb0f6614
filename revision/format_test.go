package revision_test

// The stored format is a contract with kubectl and with the built-in controllers, and so is every format that was ever
// stored: the bytes of today's snapshots, and how old ones are judged.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"pgregory.net/rapid"

	"github.com/cairn-dev/cairn/revision"
)

// upstreamData is what the built-in DaemonSet controller stores, worked out here once more and without this package:
// the template as encoding/json writes it, "$patch": "replace" beside its fields, keys sorted.
func upstreamData(t tb, ds *appsv1.DaemonSet) string {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal(encode(t, ds), &object); err != nil {
		t.Fatalf("%v", err)
	}
	template := object["spec"].(map[string]any)["template"].(map[string]any)
	template["$patch"] = "replace"
	return string(encode(t, map[string]any{"spec": map[string]any{"template": template}}))
}

func TestDataIsWhatKubernetesWrites(t *testing.T) {
	got := string(snapshot(t, typedTarget(), logAgent(t)).Data())
	if diff := cmp.Diff(upstreamData(t, logAgent(t)), got); diff != "" {
		t.Errorf("not what upstream writes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(string(testdata(t, "daemonset.data.json")), got); diff != "" {
		t.Errorf("not the committed bytes (-want +got):\n%s", diff)
	}
}

func TestDataIsWhatKubernetesWritesForAnyTemplate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		template := templates().Draw(t, "template")
		ds := withTemplate(&template)
		if diff := cmp.Diff(upstreamData(t, ds), string(snapshot(t, typedTarget(), ds).Data())); diff != "" {
			t.Fatalf("not what upstream writes (-want +got):\n%s", diff)
		}
	})
}

// The one difference on purpose: the built-in controllers read numbers as float64 and store another user than was asked
// for.
func TestDataKeepsLargeIntegers(t *testing.T) {
	ds, user := logAgent(t), int64(1)<<53+1
	ds.Spec.Template.Spec.Containers[0].SecurityContext.RunAsUser = &user
	data := string(snapshot(t, typedTarget(), ds).Data())
	if !strings.Contains(data, `"runAsUser":9007199254740993`) {
		t.Errorf("the number was rounded: %s", data)
	}
	if upstream := upstreamData(t, ds); !strings.Contains(upstream, `"runAsUser":9007199254740992`) {
		t.Errorf("upstream does not round any more, so the exception can go: %s", upstream)
	}
}

// TestCorpus judges stored revisions, one oddity each, against the DaemonSet as the API server shows it today. Wrong
// answers here restart every pod of a cluster after an upgrade, or never roll at all.
func TestCorpus(t *testing.T) {
	verdicts := map[string]struct {
		rule revision.Rule
		// ask is what Askable says; it only matters where rule is RuleNone.
		ask bool
	}{
		"same":                    {revision.RuleBytes, true},
		"1.33-creation-timestamp": {revision.RuleBytes, true}, // kubernetes#134773
		"no-directive":            {revision.RuleBytes, true},
		"unescaped":               {revision.RuleBytes, true},
		"whole-floats":            {revision.RuleBytes, true}, // 30.0, 1e3

		"empty-lists":              {revision.RuleNormal, true}, // tidb-operator#1076
		"nulls":                    {revision.RuleNormal, true},
		"quantity-milli":           {revision.RuleNormal, true}, // 1000m and 1, 0.1 and 100m
		"quantity-bytes":           {revision.RuleNormal, true}, // 1073741824 and 1Gi
		"field-of-a-later-release": {revision.RuleNormal, true},

		"no-grace-period":       {revision.RuleNone, true}, // a default that is newer than the revision
		"no-nested-defaults":    {revision.RuleNone, true},
		"no-security-context":   {revision.RuleNone, true}, // a pointer: {} may be a choice
		"more-defaults":         {revision.RuleNone, true}, // a default that was dropped
		"service-account-alias": {revision.RuleNone, true},

		"int-or-string":      {revision.RuleNone, false}, // 80 is a number, "80" the name of a port
		"other-image":        {revision.RuleNone, false},
		"other-env-order":    {revision.RuleNone, false}, // openshift origin#23032
		"other-grace-period": {revision.RuleNone, false},
		"one-more-container": {revision.RuleNone, false},
		"quantity-other":     {revision.RuleNone, false}, // 1G is not 1Gi
	}
	files, err := filepath.Glob(filepath.Join("testdata", "corpus", "*.json"))
	if err != nil || len(files) != len(verdicts) {
		t.Fatalf("%d files for %d verdicts (%v)", len(files), len(verdicts), err)
	}
	live := snapshot(t, typedTarget(), logAgent(t))
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			want, ok := verdicts[name]
			if !ok {
				t.Fatal("no verdict")
			}
			data := testdata(t, "corpus", name+".json")
			stored := decode(t, typedTarget(), string(data))
			if got := revision.Compare(live, stored); got != want.rule {
				t.Errorf("Compare = %q, want %q", got, want.rule)
			}
			if got := revision.Askable(live, stored); got != want.ask {
				t.Errorf("Askable = %t, want %t", got, want.ask)
			}
			if !bytes.Equal(stored.Data(), data) {
				t.Errorf("stored data was rewritten to %s", stored.Data())
			}
		})
	}
}

// TestHashGolden holds the names of stored revisions: a controller that names the same content anew makes a second
// revision of it. The file has a line for each corpus file and collision count: none, 0, 1, -1.
func TestHashGolden(t *testing.T) {
	var got strings.Builder
	files, _ := filepath.Glob(filepath.Join("testdata", "corpus", "*.json"))
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		fmt.Fprintf(&got, "%s none %s\n", name, revision.Hash(data, nil))
		for _, count := range []int32{0, 1, -1} {
			fmt.Fprintf(&got, "%s %d %s\n", name, count, revision.Hash(data, &count))
		}
	}
	if diff := cmp.Diff(string(testdata(t, "hashes.txt")), got.String()); diff != "" {
		t.Errorf("names of stored revisions changed (-want +got):\n%s", diff)
	}
}
