package content

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/cairn-dev/cairn/revision"
)

func TestMask(t *testing.T) {
	const env = `{"spec":{"containers":[{"name":"a","env":[{"name":"DB_PASSWORD","value":"X"},{"name":"COLOR","value":"red"},{"name":"TOKEN","valueFrom":{}}]}]}}`
	for name, c := range map[string]struct {
		mask             Masker
		a, b             string
		maskedA, maskedB string
	}{
		"a secret": {
			Masker{Whole: true},
			`{"data":{"a":"1","b":"2"},"type":"x"}`, `{"data":{"a":"1","b":"3"},"type":"x"}`,
			`{"data":{"a":"***","b":"*** (before)"},"type":"x"}`, `{"data":{"a":"***","b":"*** (after)"},"type":"x"}`,
		},
		"a key more": {
			Masker{Whole: true},
			`{"data":{}}`, `{"data":{"b":"3"},"stringData":{"c":"4"}}`,
			`{"data":{}}`, `{"data":{"b":"*** (after)"},"stringData":{"c":"*** (after)"}}`,
		},
		"a config map": {Masker{}, `{"data":{"password":"1"}}`, `{"data":{"password":"2"}}`, `{"data":{"password":"1"}}`, `{"data":{"password":"2"}}`},
		"shown":        {Masker{Whole: true, Off: true}, `{"data":{"a":"1"}}`, `{"data":{"a":"2"}}`, `{"data":{"a":"1"}}`, `{"data":{"a":"2"}}`},
		"variables": {
			Masker{},
			env, strings.ReplaceAll(env, `"X"`, `"Y"`),
			strings.ReplaceAll(env, `"X"`, `"*** (before)"`), strings.ReplaceAll(env, `"X"`, `"*** (after)"`),
		},
		"the same":       {Masker{}, env, env, strings.ReplaceAll(env, `"X"`, `"***"`), strings.ReplaceAll(env, `"X"`, `"***"`)},
		"a large number": {Masker{}, `{"n":9007199254740993}`, `{"n":9007199254740993}`, `{"n":9007199254740993}`, `{"n":9007199254740993}`},
	} {
		t.Run(name, func(t *testing.T) {
			a, b, err := c.mask.Two([]byte(c.a), []byte(c.b))
			if err != nil {
				t.Fatal(err)
			}
			wantA, _, _ := Masker{Off: true}.Two(sorted(t, c.maskedA), nil)
			wantB, _, _ := Masker{Off: true}.Two(sorted(t, c.maskedB), nil)
			if !bytes.Equal(sorted(t, string(a)), wantA) || !bytes.Equal(sorted(t, string(b)), wantB) {
				t.Errorf("%s and %s, want %s and %s", a, b, wantA, wantB)
			}
		})
	}
}

// sorted is a document with its keys in one order.
func sorted(t *testing.T, text string) []byte {
	t.Helper()
	tree, err := decoded([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	out, err := Masker{Off: true}.One(mustJSON(t, tree))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestSecretiveNames(t *testing.T) {
	for name, want := range map[string]bool{
		"DB_PASSWORD": true, "PASSWD": true, "GITHUB_TOKEN": true, "AWS_SECRET_ACCESS_KEY": true, "API_KEY": true, "SSH_KEY": true, "KEY": true,
		"CLIENT_CREDENTIALS": true, "BASIC_AUTH": true,
		"COLOR": false, "KEYBOARD": false, "MONKEY": false, "KEYS": false, "AUTHOR": false,
	} {
		if got := revision.SecretVariable(name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
