package hook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
)

// A webhook that wants one pod for each replica, and a controller that asks it.
func ExampleHook_Ask() {
	webhook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var told struct {
			Parent   unstructured.Unstructured                       `json:"parent"`
			Children map[string]map[string]unstructured.Unstructured `json:"children"`
		}
		if err := json.NewDecoder(r.Body).Decode(&told); err != nil {
			panic(err)
		}
		fmt.Printf("hook: %s has %d pods\n", told.Parent.GetName(), len(told.Children["Pod.v1"]))
		fmt.Fprint(w, `{"children": [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "cats-0"}}]}`)
	}))
	defer webhook.Close()

	pods := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	sync, err := hook.New(hook.Options{
		Controller: hook.Controller{
			Type: hook.Composite, Name: "catset-controller", Object: json.RawMessage(`{}`),
			Children: []hook.ChildKind{{GroupVersionKind: pods, Namespaced: true}},
		},
		Kind:     hook.Sync,
		Declared: &v1alpha1.Hook{Webhook: &v1alpha1.Webhook{URL: &webhook.URL}},
		Guard:    &hook.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		Now:      time.Now,
	})
	if err != nil {
		panic(err)
	}
	defer sync.Close()

	for range 2 { // the second time nothing has changed, and the hook is not called
		answer, err := sync.Ask(context.Background(), &hook.Question{Parent: catset("1")})
		if err != nil {
			panic(err)
		}
		fmt.Println("answer:", answer.Children[0].GetNamespace(), answer.Children[0].GetName())
	}
	// Output:
	// hook: cats has 0 pods
	// answer: ns cats-0
	// answer: ns cats-0
}
