package e2e

import (
	"os"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

// This file asks other people's tools how an object is: kstatus, as Flux does, and the script for Argo CD that
// docs/argo-cd.md has.

// argo runs that script on an object.
func argo(t *testing.T, o *unstructured.Unstructured) (status, message string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/argo-cd.md")
	if err != nil {
		t.Fatal(err)
	}
	_, script, found := strings.Cut(string(page), "```lua\n")
	script, _, ends := strings.Cut(script, "```")
	if !found || !ends {
		t.Fatal("the page has no script")
	}
	l := lua.NewState()
	defer l.Close()
	l.SetGlobal("obj", luaOf(l, o.Object))
	must(t, l.DoString(script))
	answer, ok := l.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the script returns %v", l.Get(-1))
	}
	return answer.RawGetString("status").String(), answer.RawGetString("message").String()
}

// luaOf is a value as Argo CD gives it to scripts.
func luaOf(l *lua.LState, value any) lua.LValue {
	switch v := value.(type) {
	case map[string]any:
		out := l.NewTable()
		for key, inner := range v {
			out.RawSetString(key, luaOf(l, inner))
		}
		return out
	case []any:
		out := l.NewTable()
		for _, inner := range v {
			out.Append(luaOf(l, inner))
		}
		return out
	case string:
		return lua.LString(v)
	case bool:
		return lua.LBool(v)
	case int64:
		return lua.LNumber(v)
	case float64:
		return lua.LNumber(v)
	default:
		return lua.LNil
	}
}

// health is what both say of the object: "Failed Degraded".
func (f *failing) health() string {
	f.Helper()
	kind, name, _ := strings.Cut(f.object, "/")
	o := &unstructured.Unstructured{}
	must(f, o.UnmarshalJSON([]byte(f.must(f.kubectl("get", kind, name, "-o", "json")))))
	found, err := kstatus.Compute(o)
	if err != nil {
		f.Fatal(err)
	}
	status, message := argo(f.T, o)
	if message == "" {
		f.Errorf("Argo CD says no more than %s", status)
	}
	return found.Status.String() + " " + status
}

func (f *failing) healthIs(want string) {
	f.Helper()
	f.eventually("others say "+want, func() error {
		if got := f.health(); got != want {
			return errorf("they say %s", got)
		}
		return nil
	})
}
