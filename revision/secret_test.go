package revision_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/cairn-dev/cairn/revision"
)

func secretive(t *testing.T) *revision.Target {
	t.Helper()
	all, err := revision.FieldPaths(nil, revision.Path{"spec"}, revision.Path{"data"})
	if err != nil {
		t.Fatal(err)
	}
	return all.WithoutSecrets()
}

const withSecrets = `{
	"data": {"db.password": "p1", "API_KEY": "k1", "secretName": "own", "keys": "a,b", "empty-token": ""},
	"spec": {
		"image": "a", "tokenExpirationSeconds": 5, "automountServiceAccountToken": true,
		"from": {"secretKeyRef": {"name": "db", "key": "k"}}, "adminPassword": "p2", "env": "none",
		"containers": [
			{"name": "web", "env": [{"name": "DB_PASSWORD", "value": "p3"}, {"name": "COLOR", "value": "red"}, {"name": "TOKEN", "valueFrom": {}}]},
			{"name": "log", "token": "t1"}
		],
		"lists": [[{"passphrase": "p4"}], "text"]
	}}`

// TestSecretsAreLeftOut: values that look like secrets, and no others, are stored nowhere; one of another value is
// equal, one more is not.
func TestSecretsAreLeftOut(t *testing.T) {
	target := secretive(t)
	s, err := target.Snapshot(tree(t, withSecrets))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"data.API_KEY", "data.db.password", "spec.adminPassword", "spec.containers[log].token",
		"spec.containers[web].env[DB_PASSWORD].value", "spec.lists[0][0].passphrase",
	}
	if d := cmp.Diff(want, s.LeftOut()); d != "" {
		t.Error(d)
	}
	for _, secret := range []string{"p1", "k1", "p2", "p3", "t1", "p4"} {
		if strings.Contains(string(s.Data()), `"`+secret+`"`) {
			t.Errorf("%s is stored: %s", secret, s.Data())
		}
	}
	for _, text := range []string{"own", "a,b", "red", `"key":"k"`, `"empty-token":""`} {
		if !strings.Contains(string(s.Data()), text) {
			t.Errorf("%s is not stored: %s", text, s.Data())
		}
	}
	rotated, err := target.Snapshot(tree(t, strings.ReplaceAll(withSecrets, `"p3"`, `"new"`)))
	if err != nil || revision.Compare(s, rotated) == revision.RuleNone {
		t.Errorf("another password is another revision (%v)", err)
	}
	without, err := target.Snapshot(tree(t, strings.ReplaceAll(withSecrets, `"adminPassword": "p2", `, "")))
	if err != nil || revision.Compare(s, without) != revision.RuleNone {
		t.Errorf("no password is no difference (%v)", err)
	}
	// What was recorded with secrets is the same content, and what holds a mark is read again.
	for _, data := range []string{withSecrets, string(s.Data())} {
		if stored, err := target.Decode([]byte(data)); err != nil || revision.Compare(s, stored) == revision.RuleNone {
			t.Errorf("%s differs (%v)", data, err)
		}
	}
	if all, err := revision.FieldPaths(nil, target.Paths()...); err != nil || all.Masked() || all.Covers(target) || target.Covers(all) {
		t.Errorf("with and without secrets is the same (%v)", err)
	} else if as, err := target.As(all); err != nil || !as.Masked() {
		t.Error("read as it was recorded", err)
	}
}

// TestSecretsStay: a restore keeps the values that there are, by the names of what they are in, and says where there is
// none.
func TestSecretsStay(t *testing.T) {
	target := secretive(t)
	s, err := target.Snapshot(tree(t, withSecrets))
	if err != nil {
		t.Fatal(err)
	}
	rotated := strings.NewReplacer(`"p1"`, `"n1"`, `"k1"`, `"n2"`, `"p2"`, `"n3"`, `"p3"`, `"n4"`, `"t1"`, `"n5"`, `"p4"`, `"n6"`)
	live := tree(t, rotated.Replace(strings.ReplaceAll(withSecrets, `"image": "a"`, `"image": "b"`)))
	containers := live["spec"].(map[string]any)["containers"].([]any)
	slices.Reverse(containers)
	slices.Reverse(containers[1].(map[string]any)["env"].([]any))
	got, err := s.Restore(live)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(tree(t, rotated.Replace(withSecrets)), plain(t, got)); d != "" {
		t.Error(d)
	}
	for field, gone := range map[string]string{
		"data.db.password":                            `"db.password": "p1", `,
		"spec.containers[log].token":                  `, "token": "t1"`,
		"spec.containers[web].env[DB_PASSWORD].value": `{"name": "DB_PASSWORD", "value": "p3"}, `,
		"spec.lists[0][0].passphrase":                 `"passphrase": "p4"`,
	} {
		_, err := s.Restore(tree(t, strings.Replace(withSecrets, gone, "", 1)))
		missing, ok := errors.AsType[*revision.MissingSecretError](err)
		if !ok || missing.Field != field {
			t.Errorf("without %s: %v", field, err)
		}
	}
	patch := `{"metadata": {"uid": "u", "resourceVersion": "1"}, "spec": {}, "data": {}}`
	if _, err := s.RestorePatch(tree(t, patch)); !errors.As(err, new(*revision.MissingSecretError)) {
		t.Error(err)
	}
}

func plain(t *testing.T, o map[string]any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return tree(t, string(raw))
}

// TestSecretsOfAnyTree: a snapshot restored to its own parent is the parent, and holds no secret.
func TestSecretsOfAnyTree(t *testing.T) {
	target := secretive(t)
	names := rapid.SampledFrom([]string{"a", "password", "token", "env", "name", "value", "DB_PASSWORD", "apiKey", "key"})
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		text := rapid.Map(rapid.SampledFrom([]string{"", "a", "DB_PASSWORD", "hidden"}), func(s string) any { return s })
		if depth == 0 {
			return text
		}
		return rapid.OneOf(text,
			rapid.Map(rapid.MapOfN(names, value(depth-1), 0, 4), func(m map[string]any) any { return m }),
			rapid.Map(rapid.SliceOfN(value(depth-1), 0, 3), func(l []any) any { return l }))
	}
	rapid.Check(t, func(t *rapid.T) {
		parent := map[string]any{"spec": value(4).Draw(t, "spec")}
		before, _ := json.Marshal(parent)
		s, err := target.Snapshot(parent)
		if err != nil {
			t.Fatal(err)
		}
		restored, err := s.Restore(parent)
		if missing, ok := errors.AsType[*revision.MissingSecretError](err); ok && duplicateNames(parent) {
			t.Skip("two items of one name:", missing.Field)
		}
		if err != nil {
			t.Fatal(err)
		}
		again, err := target.Snapshot(restored)
		if err != nil || !bytes.Equal(again.Data(), s.Data()) {
			t.Fatalf("%s, then %s (%v)", s.Data(), again.Data(), err)
		}
		after, _ := json.Marshal(restored)
		if now, _ := json.Marshal(parent); !bytes.Equal(now, before) {
			t.Fatalf("the parent was changed from %s to %s", before, now)
		}
		if !bytes.Equal(after, before) && !duplicateNames(parent) {
			t.Fatalf("%s, restored %s", before, after)
		}
	})
}

// duplicateNames reports whether a list has two items of one name, which no API server takes where names are keys.
func duplicateNames(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		for _, inner := range value {
			if duplicateNames(inner) {
				return true
			}
		}
	case []any:
		seen := map[string]bool{}
		for _, inner := range value {
			one, _ := inner.(map[string]any)
			name, named := one["name"].(string)
			if named && seen[name] || duplicateNames(inner) {
				return true
			}
			seen[name] = named
		}
	}
	return false
}

func TestSecretVariable(t *testing.T) {
	for name, want := range map[string]bool{"DB_PASSWORD": true, "PGPASSFILE": false, "GITHUB_TOKEN": true, "APIKEY": true, "COLOR": false, "KEYBOARD": false} {
		if got := revision.SecretVariable(name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
