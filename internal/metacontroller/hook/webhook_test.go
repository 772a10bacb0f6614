package hook

import (
	"context"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
)

func TestAddresses(t *testing.T) {
	for _, c := range []struct {
		webhook v1alpha1.Webhook
		want    string
	}{
		{v1alpha1.Webhook{URL: new("https://example.com/x?y=z")}, "https://example.com/x?y=z"},
		{v1alpha1.Webhook{URL: new("http://a"), Service: &v1alpha1.ServiceReference{Name: "b", Namespace: "c"}, Path: new("/")}, "http://a"},
		{v1alpha1.Webhook{Service: &v1alpha1.ServiceReference{Name: "hook", Namespace: "ns"}, Path: new("/sync")}, "http://hook.ns:80/sync"},
		{v1alpha1.Webhook{Service: &v1alpha1.ServiceReference{Name: "hook", Namespace: "ns"}, Path: new("sync")}, "http://hook.ns:80/sync"},
		{v1alpha1.Webhook{Service: &v1alpha1.ServiceReference{Name: "hook", Namespace: "ns", Port: new(int32(8443)), Protocol: new("https")}, Path: new("/a/b?c")}, "https://hook.ns:8443/a/b?c"},
	} {
		u, err := addressOf(&c.webhook)
		if err != nil || u.String() != c.want {
			t.Errorf("%v, %v, want %s", u, err, c.want)
		}
	}
}

func TestHosts(t *testing.T) {
	for _, c := range []struct {
		url, host string
		want      bool
	}{
		{"http://example.com/", "example.com", true},
		{"http://example.com/", "EXAMPLE.com", true},
		{"http://Example.com/", "example.com", true},
		{"http://example.com/", "example.com:80", true},
		{"http://example.com:80/", "example.com", true},
		{"https://example.com/", "example.com:443", true},
		{"https://example.com:443/", "example.com", true},
		{"https://example.com/", "example.com:80", false},
		{"https://example.com:8443/", "example.com", false},
		{"https://example.com:8443/", "example.com:8443", true},
		{"https://example.com/", "www.example.com", false},
		{"https://[fd00::1]/", "[fd00::1]", true},
		{"https://[fd00::1]:443/", "[fd00::1]", true},
		{"https://[fd00::1]/", "[fd00::1]:443", true},
	} {
		u, err := url.Parse(c.url)
		if err != nil {
			t.Fatal(err)
		}
		configs := []v1alpha1.EndpointConfig{{Host: c.host, BasicAuth: &v1alpha1.BasicAuth{}}}
		if got := endpointOf(&v1alpha1.Webhook{}, u, configs).BasicAuth != nil; got != c.want {
			t.Errorf("%s and %s: %t", c.url, c.host, got)
		}
	}
}

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

// Fields of the API that change nothing here, and why.
var meaningless = map[string]string{
	"Webhook.Etag.CacheTimeoutSeconds": "an answer is kept for the question that it was given to, not for a time",
	"Webhook.Etag.CacheCleanupSeconds": "as above",
}

// A field that is new in the API is found by reflection, and has to change what is called, or with what.
func TestEveryFieldOfTheAPICounts(t *testing.T) {
	for path := range leaves(reflect.TypeFor[v1alpha1.Hook](), "") {
		h, configs := everyField()
		checkLeaf(t, path, h, func() any { return []any{called(t, h), readOf(t, endpointOf(h.Webhook, &url.URL{}, configs))} })
	}
	for path := range leaves(reflect.TypeFor[v1alpha1.EndpointConfig](), "") {
		_, configs := everyField()
		checkLeaf(t, path, &configs[0], func() any {
			return readOf(t, endpointOf(&v1alpha1.Webhook{}, &url.URL{Host: "b.example"}, configs))
		})
	}
}

// called says how a hook is called: at its URL, and without that at its service.
func called(t *testing.T, h *v1alpha1.Hook) (out []string) {
	t.Helper()
	for _, address := range []*string{h.Webhook.URL, nil} {
		declared := h.DeepCopy()
		declared.Webhook.URL = address
		made, err := New(Options{Declared: declared})
		if err != nil {
			out = append(out, err.Error())
			continue
		}
		out = append(out, fmt.Sprint(made.caller.url, made.caller.timeout, made.version, made.strict, made.conditional))
	}
	return out
}

// unnamed has Secrets and ConfigMaps of any name without keys, so that an error says what is missing.
type unnamed struct{}

func (unnamed) Secret(context.Context, types.NamespacedName) (*corev1.Secret, error) {
	return &corev1.Secret{}, nil
}

func (unnamed) ConfigMap(context.Context, types.NamespacedName) (*corev1.ConfigMap, error) {
	return &corev1.ConfigMap{}, nil
}

// named has Secrets of any name with every key but one.
type named struct {
	unnamed

	data map[string][]byte
}

func (n named) Secret(context.Context, types.NamespacedName) (*corev1.Secret, error) {
	return &corev1.Secret{Data: n.data}, nil
}

// readOf says what is read for an endpoint, one thing at a time.
func readOf(t *testing.T, e v1alpha1.EndpointConfig) (out []string) {
	t.Helper()
	var each []v1alpha1.EndpointConfig
	if b := e.CABundle; b != nil {
		for _, one := range []v1alpha1.CABundle{{Inline: b.Inline}, {SecretRef: b.SecretRef}, {ConfigMapRef: b.ConfigMapRef}} {
			each = append(each, v1alpha1.EndpointConfig{CABundle: &one})
		}
	}
	each = append(each, v1alpha1.EndpointConfig{ClientTLS: e.ClientTLS},
		v1alpha1.EndpointConfig{Authorization: e.Authorization}, v1alpha1.EndpointConfig{BasicAuth: e.BasicAuth})
	all := map[string][]byte{"cert": {1}, "user": {2}, "token": {3}}
	for _, one := range each {
		for _, secrets := range []Secrets{unnamed{}, named{data: all}} {
			c, err := vault{secrets}.read(t.Context(), one)
			out = append(out, fmt.Sprint(string(c.ca), c.authorization, err))
		}
	}
	return out
}

// checkLeaf takes one field out of an object in which every one is set.
func checkLeaf(t *testing.T, path string, o any, convert func() any) {
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
		t.Errorf("%T.%s is new: set it in everyField", o, path)
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
