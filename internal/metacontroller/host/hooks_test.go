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
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
	"github.com/cairn-dev/cairn/internal/metacontroller/watch"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// everyField is a hook with every field set, and configs an endpoint config with every one.
func everyField() (h *v1alpha1.Hook, configs []v1alpha1.EndpointConfig) {
	name := v1alpha1.SecretReference{Name: "credentials", Namespace: "hooks"}
	bundle := &v1alpha1.CABundle{
		Inline:       new("PEM"),
		SecretRef:    &v1alpha1.CABundleReference{Name: "ca-secret", Namespace: "hooks", Key: new("a")},
		ConfigMapRef: &v1alpha1.CABundleReference{Name: "ca-map", Namespace: "hooks", Key: new("b")},
	}
	tls := &v1alpha1.ClientTLS{SecretRef: name, CertKey: new("cert"), PrivateKeyKey: new("private")}
	authorization := &v1alpha1.Authorization{
		Type: new("Token"), SecretRef: v1alpha1.SecretKeyReference{SecretReference: name, Key: "token"},
	}
	basic := &v1alpha1.BasicAuth{SecretRef: name, UsernameKey: new("user"), PasswordKey: new("pass")}
	h = &v1alpha1.Hook{Version: ptr.To(v1alpha1.HookVersionV2), Webhook: &v1alpha1.Webhook{
		URL: new("http://a.example/sync"), Timeout: new("3s"), Path: new("/sync"),
		Service: &v1alpha1.ServiceReference{
			Name: "cats", Namespace: "hooks", Port: ptr.To[int32](8443), Protocol: new("https"),
		},
		Etag: &v1alpha1.WebhookEtag{
			Enabled: new(true), CacheTimeoutSeconds: ptr.To[int32](1), CacheCleanupSeconds: ptr.To[int32](2),
		},
		ResponseUnmarshallMode: ptr.To(v1alpha1.ResponseUnmarshallModeLoose),
		CABundle:               bundle, ClientTLS: tls, Authorization: authorization, BasicAuth: basic,
	}}
	return h, []v1alpha1.EndpointConfig{{
		Host: "b.example", CABundle: bundle, ClientTLS: tls, Authorization: authorization, BasicAuth: basic,
	}}
}

func TestDescribed(t *testing.T) {
	name := types.NamespacedName{Namespace: "hooks", Name: "credentials"}
	all := hook.Endpoint{
		CABundle: &hook.CABundle{
			Inline:    []byte("PEM"),
			Secret:    &hook.Reference{NamespacedName: types.NamespacedName{Namespace: "hooks", Name: "ca-secret"}, Key: "a"},
			ConfigMap: &hook.Reference{NamespacedName: types.NamespacedName{Namespace: "hooks", Name: "ca-map"}, Key: "b"},
		},
		ClientTLS:     &hook.ClientTLS{Secret: name, CertKey: "cert", PrivKey: "private"},
		Authorization: &hook.Authorization{Type: "Token", Secret: hook.Reference{NamespacedName: name, Key: "token"}},
		BasicAuth:     &hook.BasicAuth{Secret: name, UsernameKey: "user", PasswordKey: "pass"},
	}
	full, configs := everyField()
	for name, c := range map[string]struct {
		hook    *v1alpha1.Hook
		configs []v1alpha1.EndpointConfig
		want    hook.Options
	}{
		"every field": {full, configs, hook.Options{
			Version: hook.V2,
			Webhook: hook.Webhook{
				URL: "http://a.example/sync", Path: "/sync", Timeout: 3 * time.Second, ETag: true, Strict: new(false),
				Service:  &hook.Service{Name: "cats", Namespace: "hooks", Port: 8443, Protocol: "https"},
				Endpoint: all,
			},
			EndpointConfigs: []hook.EndpointConfig{{Host: "b.example", Endpoint: all}},
		}},
		"no field": {&v1alpha1.Hook{}, nil, hook.Options{Version: hook.V1}},
		"defaults of v1": {&v1alpha1.Hook{Webhook: &v1alpha1.Webhook{}}, nil, hook.Options{
			Version: hook.V1, Webhook: hook.Webhook{Timeout: 10 * time.Second, Strict: new(false)},
		}},
		"defaults of v2": {
			&v1alpha1.Hook{Version: ptr.To(v1alpha1.HookVersionV2), Webhook: &v1alpha1.Webhook{Timeout: new("-1s")}}, nil,
			hook.Options{Version: hook.V2, Webhook: hook.Webhook{Timeout: 10 * time.Second, Strict: new(true)}},
		},
		"an etag that is not enabled": {
			&v1alpha1.Hook{Webhook: &v1alpha1.Webhook{Etag: &v1alpha1.WebhookEtag{CacheTimeoutSeconds: ptr.To[int32](5)}}}, nil,
			hook.Options{Version: hook.V1, Webhook: hook.Webhook{Timeout: 10 * time.Second, Strict: new(false)}},
		},
		"a bundle that holds nothing stays one": {
			&v1alpha1.Hook{Webhook: &v1alpha1.Webhook{CABundle: &v1alpha1.CABundle{}}}, nil,
			hook.Options{Version: hook.V1, Webhook: hook.Webhook{
				Timeout: 10 * time.Second, Strict: new(false), Endpoint: hook.Endpoint{CABundle: &hook.CABundle{Inline: []byte{}}},
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := described(c.hook, c.configs)
			if diff := cmp.Diff(c.want, got, cmp.FilterPath(func(p cmp.Path) bool {
				return slices.Contains([]string{"Now", "Proxy"}, p.String())
			}, cmp.Ignore())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Fields of the API that change nothing here, and why.
var meaningless = map[string]string{
	"Webhook.Etag.CacheTimeoutSeconds": "an answer is kept for the question that it was given to, not for a time",
	"Webhook.Etag.CacheCleanupSeconds": "as above",
}

// A field that is new in the API is found by reflection, and has to change what a hook is made of.
func TestEveryFieldOfTheAPICounts(t *testing.T) {
	for path := range leaves(reflect.TypeFor[v1alpha1.Hook](), "") {
		h, configs := everyField()
		checkLeaf(t, path, h, func() hook.Options { return described(h, configs) })
	}
	for path := range leaves(reflect.TypeFor[v1alpha1.EndpointConfig](), "") {
		h, configs := everyField()
		checkLeaf(t, path, &configs[0], func() hook.Options { return described(h, configs) })
	}
}

// checkLeaf takes one field out of an object in which every one is set.
func checkLeaf(t *testing.T, path string, o any, convert func() hook.Options) {
	t.Helper()
	before := convert()
	field := reflect.ValueOf(o).Elem()
	for name := range strings.SplitSeq(path, ".") {
		if field.Kind() == reflect.Pointer {
			field = field.Elem()
		}
		field = field.FieldByName(name)
	}
	if field.IsZero() {
		t.Errorf("%T.%s is new: set it in everyField, and say in TestDescribed what becomes of it", o, path)
		return
	}
	field.SetZero()
	changed := !reflect.DeepEqual(before, convert())
	if why, ok := meaningless[path]; changed == ok {
		t.Errorf("%T.%s: it changes what the hook is made of: %t; said to be without meaning because %q", o, path, changed, why)
	}
}

// leaves are the paths of the fields of a type that hold no fields themselves.
func leaves(t reflect.Type, path string) map[string]bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return map[string]bool{path: true}
	}
	out := map[string]bool{}
	for field := range t.Fields() {
		for leaf := range leaves(field.Type, strings.TrimPrefix(path+"."+field.Name, ".")) {
			out[leaf] = true
		}
	}
	return out
}

func TestHooksThatCannotBeMade(t *testing.T) {
	e := &Environment{Server: &watch.Server{Clock: clocktesting.NewFakeClock(time.Time{})}}
	h, err := e.Hook(hook.Controller{}, hook.Sync, nil, nil)
	if h != nil || err != nil {
		t.Error("a hook that is not declared:", h, err)
	}
	_, err = e.Hook(hook.Controller{}, hook.Finalize, &v1alpha1.Hook{}, nil)
	failure := (*hook.Error)(nil)
	if !errors.As(err, &failure) || failure.Reason != hook.Misconfigured || failure.Hook != hook.Finalize {
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
		Server: &watch.Server{Clock: clocktesting.NewFakeClock(noon)}, Memory: hook.NewMemory(1 << 20), Encoder: hook.NewEncoder(1 << 20),
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
	pods := watch.Resource{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Namespaced: true}
	nodes := watch.Resource{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Node"}}
	c, err := (&Environment{}).Controller(hook.Composite, o, []watch.Resource{pods, nodes})
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
