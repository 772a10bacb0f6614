package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/hosting"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
	"github.com/cairn-dev/cairn/internal/watching"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestHooksThatCannotBeMade(t *testing.T) {
	e := &Environment{Host: &hosting.Host{Server: &watching.Server{Clock: clocktesting.NewFakeClock(time.Time{})}}}
	h, err := e.Hook(hook.Controller{}, hook.Sync, nil, nil)
	if h != nil || err != nil {
		t.Error("a hook that is not declared:", h, err)
	}
	_, err = e.Hook(hook.Controller{}, hook.Finalize, &v1alpha1.Hook{}, nil)
	failure, _ := errors.AsType[*hook.Error](err)
	reason, ok := errors.AsType[*hosting.Error](err)
	if failure == nil || failure.Hook != hook.Finalize || !ok || reason.Reason != string(hook.Misconfigured) {
		t.Error("a hook without a webhook:", err)
	}
}

// secrets are those of a test.
type secrets map[types.NamespacedName]map[string][]byte

func (s secrets) Secret(_ context.Context, key types.NamespacedName) (*corev1.Secret, error) {
	return &corev1.Secret{Data: s[key]}, nil
}

func (s secrets) ConfigMap(context.Context, types.NamespacedName) (*corev1.ConfigMap, error) {
	return nil, errors.New("unexpected")
}

// What hooks share is the environment's: where they may be, what they may read, what they remember.
func TestHooksAreOfTheEnvironment(t *testing.T) {
	calls := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls++
		_, _ = io.WriteString(w, `{"children":[],"status":{"token":"`+r.Header.Get("Authorization")+`"}}`)
	}))
	defer server.Close()
	h := &v1alpha1.Hook{Webhook: &v1alpha1.Webhook{URL: &server.URL, Authorization: &v1alpha1.Authorization{
		SecretRef: v1alpha1.SecretKeyReference{SecretReference: v1alpha1.SecretReference{Name: "a", Namespace: "b"}, Key: "c"},
	}}}
	e := &Environment{
		Host:   &hosting.Host{Server: &watching.Server{Clock: clocktesting.NewFakeClock(noon)}},
		Memory: hook.NewMemory(1 << 20), Encoder: hook.NewEncoder(1 << 20),
		Guard:   &hook.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		Secrets: secrets{{Namespace: "b", Name: "a"}: {"c": []byte("sesame")}},
	}
	c := hook.Controller{Type: hook.Composite, Name: "cats", Children: []hook.ChildKind{}}
	made, err := e.Hook(c, hook.Sync, h, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer made.Close()
	ask := func() {
		t.Helper()
		parent := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "A"}}
		parent.SetUID("u")
		parent.SetResourceVersion("1")
		answer, err := made.Ask(t.Context(), &hook.Question{Parent: parent})
		if err != nil || fmt.Sprint(answer.Status) != "map[token:Bearer sesame]" {
			t.Error(answer, err)
		}
	}
	ask()
	ask()
	e.Memory.Forget("u")
	ask()
	if calls != 2 {
		t.Errorf("%d calls: the memory is not the environment's", calls)
	}
}

func TestController(t *testing.T) {
	o := &v1alpha1.CompositeController{
		ObjectMeta: metav1.ObjectMeta{
			Name: "cats", UID: "u", ResourceVersion: "7", Labels: map[string]string{"a": "b"},
			CreationTimestamp: metav1.NewTime(noon), ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
		},
		Spec: v1alpha1.CompositeControllerSpec{GenerateSelector: new(true)},
	}
	before := o.DeepCopy()
	pods := watching.Resource{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Namespaced: true}
	nodes := watching.Resource{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Node"}}
	c, err := (&Environment{}).Controller(hook.Composite, o, []watching.Resource{pods, nodes})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(o, before) {
		t.Error("an object of the cache was changed")
	}
	want := []hook.ChildKind{{GroupVersionKind: pods.Kind, Namespaced: true}, {GroupVersionKind: nodes.Kind}}
	if c.Type != hook.Composite || c.Name != "cats" || !reflect.DeepEqual(c.Children, want) {
		t.Errorf("%+v", c)
	}
	told := map[string]any{}
	if err := json.Unmarshal(c.Object, &told); err != nil {
		t.Fatal(err)
	}
	metadata, spec := told["metadata"], told["spec"]
	if told["apiVersion"] != "metacontroller.k8s.io/v1alpha1" || told["kind"] != "CompositeController" ||
		fmt.Sprint(metadata) != "map[creationTimestamp:2026-11-21T12:00:00Z labels:map[a:b] name:cats resourceVersion:7 uid:u]" ||
		fmt.Sprint(spec) != "map[generateSelector:true parentResource:map[apiVersion: resource:]]" {
		t.Errorf("%s", c.Object)
	}
	c, err = (&Environment{}).Controller(hook.Decorator, &v1alpha1.DecoratorController{}, nil)
	if err != nil || !strings.Contains(string(c.Object), `"kind":"DecoratorController"`) {
		t.Errorf("%s, %v", c.Object, err)
	}
}
