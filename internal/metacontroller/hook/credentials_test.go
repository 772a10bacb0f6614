package hook_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
)

// fakeSecrets is a cache of Secrets and ConfigMaps of namespace ns, which hold the same here.
type fakeSecrets map[string]map[string][]byte

func (f fakeSecrets) Secret(_ context.Context, key types.NamespacedName) (*corev1.Secret, error) {
	data, ok := f[key.Name]
	if !ok || key.Namespace != "ns" {
		return nil, apierrors.NewNotFound(corev1.Resource("secrets"), key.Name)
	}
	return &corev1.Secret{Data: data}, nil
}

func (f fakeSecrets) ConfigMap(_ context.Context, key types.NamespacedName) (*corev1.ConfigMap, error) {
	data, ok := f[key.Name]
	if !ok || key.Namespace != "ns" {
		return nil, apierrors.NewNotFound(corev1.Resource("configmaps"), key.Name)
	}
	m := &corev1.ConfigMap{Data: map[string]string{}}
	for k, v := range data {
		m.Data[k] = string(v)
	}
	return m, nil
}

func in(name string) v1alpha1.SecretReference {
	return v1alpha1.SecretReference{Namespace: "ns", Name: name}
}

func from(name, key string) *v1alpha1.CABundleReference {
	return &v1alpha1.CABundleReference{Namespace: "ns", Name: name, Key: &key}
}

// secretKey is a key of the secret s.
func secretKey(key string) v1alpha1.SecretKeyReference {
	return v1alpha1.SecretKeyReference{SecretReference: in("s"), Key: key}
}

// with has a webhook called with certificates and credentials of its own.
func with(w *v1alpha1.Webhook, e v1alpha1.EndpointConfig) {
	w.CABundle, w.ClientTLS, w.Authorization, w.BasicAuth = e.CABundle, e.ClientTLS, e.Authorization, e.BasicAuth
}

func TestCABundleReplacesTheSystemsRoots(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	s := secure(t, ours, always(noChildren), nil)
	secrets := fakeSecrets{"ca": {"ca.crt": ours.pem, "other": theirs.pem, "none": []byte("x")}}
	for _, c := range []struct {
		name   string
		bundle *v1alpha1.CABundle
		want   string
	}{
		{"none", nil, "certificate signed by unknown authority"},
		{"inline", &v1alpha1.CABundle{Inline: new(string(ours.pem))}, ""},
		{"a secret", &v1alpha1.CABundle{SecretRef: from("ca", "")}, ""},
		{"a config map", &v1alpha1.CABundle{ConfigMapRef: from("ca", "")}, ""},
		{"another one", &v1alpha1.CABundle{SecretRef: from("ca", "other")}, "certificate signed by unknown authority"},
		{"no certificate", &v1alpha1.CABundle{SecretRef: from("ca", "none")}, "caBundle: it holds no certificate"},
		{"no such key", &v1alpha1.CABundle{ConfigMapRef: from("ca", "x")}, `caBundle: config map ns/ca has no key "x"`},
		{"no such secret", &v1alpha1.CABundle{SecretRef: from("x", "")}, `caBundle: read secret ns/x: secrets "x" not found`},
		{"no such config map", &v1alpha1.CABundle{ConfigMapRef: from("x", "")}, `caBundle: read config map ns/x: configmaps "x" not found`},
		{"two", &v1alpha1.CABundle{Inline: new(string(ours.pem)), SecretRef: from("ca", "")}, "caBundle: exactly one of inline, secretRef and configMapRef is needed"},
		{"empty", &v1alpha1.CABundle{}, "caBundle: exactly one of inline, secretRef and configMapRef is needed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options(s.URL)
			o.Declared.Webhook.CABundle, o.Secrets = c.bundle, secrets
			_, err := ask(t, o)
			checkError(t, err, c.want)
			if err != nil && (failure(t, err).Reason == hook.Misconfigured) != strings.HasPrefix(c.want, "caBundle") {
				t.Errorf("the reason is %s", failure(t, err).Reason)
			}
		})
	}
}

// TestTheSystemsRoots asks in a process of its own, whose system trusts the server.
func TestTheSystemsRoots(t *testing.T) {
	const inside = "CAIRN_TEST_ASKS_AT"
	if address := os.Getenv(inside); address != "" {
		o := options(address)
		if _, err := ask(t, o); err != nil {
			t.Errorf("the system trusts it: %v", err)
		}
		o.Declared.Webhook.CABundle = &v1alpha1.CABundle{Inline: new(string(newAuthority(t).pem))}
		if _, err := ask(t, o); err == nil {
			t.Error("the bundle does not hold the server's authority, and the server is trusted")
		}
		return
	}
	a := newAuthority(t)
	s := secure(t, a, always(noChildren), nil)
	roots := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(roots, a.pem, 0o600); err != nil {
		t.Fatal(err)
	}
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTheSystemsRoots$")
	again.Env = append(os.Environ(), inside+"="+s.URL, "SSL_CERT_FILE="+roots)
	if out, err := again.CombinedOutput(); err != nil || s.count() != 1 {
		t.Errorf("%v, %d calls\n%s", err, s.count(), out)
	}
}

func TestOldTLSIsRefused(t *testing.T) {
	a := newAuthority(t)
	s := secure(t, a, always(noChildren), func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 })
	o := options(s.URL)
	o.Declared.Webhook.CABundle = &v1alpha1.CABundle{Inline: new(string(a.pem))}
	_, err := ask(t, o)
	checkError(t, err, "protocol version")
}

func checkError(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Error(err)
		}
		return
	}
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestClientTLSAndItsRotation(t *testing.T) {
	a := newAuthority(t)
	who := make(chan string, 10)
	s := secure(t, a, always(noChildren), func(c *tls.Config) {
		c.ClientAuth = tls.RequireAndVerifyClientCert
		c.ClientCAs = x509.NewCertPool()
		c.ClientCAs.AddCert(a.cert)
		c.VerifyConnection = func(state tls.ConnectionState) error {
			who <- state.PeerCertificates[0].Subject.CommonName
			return nil
		}
	})
	secrets := fakeSecrets{}
	rotate := func(name string) {
		cert, key := a.sign(t, name)
		secrets["client"] = map[string][]byte{"tls.crt": cert, "tls.key": key}
	}
	rotate("first")
	o := options(s.URL)
	o.Secrets = secrets
	w := o.Declared.Webhook
	w.CABundle, w.ClientTLS = &v1alpha1.CABundle{Inline: new(string(a.pem))}, &v1alpha1.ClientTLS{SecretRef: in("client")}
	h := newHook(t, o)
	call := func() error {
		_, err := h.Ask(t.Context(), &hook.Question{Parent: catset("1"), Again: true})
		return err
	}
	for range 3 {
		if err := call(); err != nil {
			t.Fatal(err)
		}
	}
	if got := seen(who); got != "first" || len(who) > 0 {
		t.Fatalf("%s, and %d more connections", got, len(who))
	}
	rotate("second")
	if err := call(); err != nil {
		t.Fatal(err)
	}
	if got := seen(who); got != "second" {
		t.Errorf("the old certificate is still in use")
	}
	secrets["client"]["tls.key"] = []byte("x")
	checkError(t, call(), "clientTLS: tls: failed to find any PEM data in key input")
	delete(secrets, "client")
	checkError(t, call(), `clientTLS: read secret ns/client: secrets "client" not found`)

	o.Declared.Webhook.ClientTLS = nil
	if _, err := ask(t, o); err == nil {
		t.Error("the server asks for no certificate: this is no test of anything")
	}
}

// seen returns what has been seen by now.
func seen(who <-chan string) string {
	select {
	case name := <-who:
		return name
	default:
		return "nobody"
	}
}

func TestAuthorization(t *testing.T) {
	secrets := fakeSecrets{"s": {
		"token": []byte(" t0ken\n"), "username": []byte("me\n"), "password": []byte("pa:ss "), "bad": []byte("a:b"), "lines": []byte("a\nb"),
	}}
	token, user := secretKey("token"), &v1alpha1.BasicAuth{SecretRef: in("s")}
	for _, c := range []struct {
		name     string
		endpoint v1alpha1.EndpointConfig
		want     string
		problem  string
	}{
		{"none", v1alpha1.EndpointConfig{}, "", ""},
		{"a token", v1alpha1.EndpointConfig{Authorization: &v1alpha1.Authorization{SecretRef: token}}, "Bearer t0ken", ""},
		{"another type", v1alpha1.EndpointConfig{Authorization: &v1alpha1.Authorization{Type: new("Token"), SecretRef: token}}, "Token t0ken", ""},
		{"a user", v1alpha1.EndpointConfig{BasicAuth: user}, "Basic bWU6cGE6c3M=", ""}, // me:pa:ss
		{"type Basic", v1alpha1.EndpointConfig{Authorization: &v1alpha1.Authorization{Type: new(" bAsic"), SecretRef: token}}, "", "authorization: type Basic is not supported here: use basicAuth"},
		{"both", v1alpha1.EndpointConfig{Authorization: &v1alpha1.Authorization{SecretRef: token}, BasicAuth: user}, "", "authorization and basicAuth are mutually exclusive"},
		{"a colon", v1alpha1.EndpointConfig{BasicAuth: &v1alpha1.BasicAuth{SecretRef: in("s"), UsernameKey: new("bad")}}, "", "basicAuth: a user name cannot hold a colon"},
		{"no password", v1alpha1.EndpointConfig{BasicAuth: &v1alpha1.BasicAuth{SecretRef: in("s"), PasswordKey: new("x")}}, "", `basicAuth: secret ns/s has no key "x"`},
		{"no key", v1alpha1.EndpointConfig{Authorization: &v1alpha1.Authorization{SecretRef: secretKey("")}}, "", `authorization: secret ns/s has no key ""`},
		{"another namespace", v1alpha1.EndpointConfig{BasicAuth: &v1alpha1.BasicAuth{SecretRef: v1alpha1.SecretReference{Namespace: "other", Name: "s"}}}, "", `basicAuth: read secret other/s: secrets "s" not found`},
		{"two lines", v1alpha1.EndpointConfig{Authorization: &v1alpha1.Authorization{SecretRef: secretKey("lines")}}, "", "invalid header field value"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, always(noChildren))
			o := options(s.URL)
			o.Secrets = secrets
			with(o.Declared.Webhook, c.endpoint)
			_, err := ask(t, o)
			checkError(t, err, c.problem)
			if c.problem == "" && s.last().header.Get("Authorization") != c.want {
				t.Errorf("got %q", s.last().header.Get("Authorization"))
			}
			if c.problem != "" && s.count() > 0 {
				t.Error("it was called all the same")
			}
		})
	}
}

func TestANewTokenIsUsedByTheNextCall(t *testing.T) {
	s := serve(t, always(noChildren))
	secrets := fakeSecrets{"s": {"token": []byte("old")}}
	o := options(s.URL)
	o.Secrets = secrets
	o.Declared.Webhook.Authorization = &v1alpha1.Authorization{SecretRef: secretKey("token")}
	h := newHook(t, o)
	for _, token := range []string{"old", "new"} {
		secrets["s"]["token"] = []byte(token)
		if _, err := h.Ask(t.Context(), &hook.Question{Parent: catset("1"), Again: true}); err != nil {
			t.Fatal(err)
		}
		if got := s.last().header.Get("Authorization"); got != "Bearer "+token {
			t.Errorf("got %s", got)
		}
	}
}

func TestEndpointConfigs(t *testing.T) {
	s := serve(t, always(noChildren))
	secrets := fakeSecrets{"s": {"1": []byte("one"), "2": []byte("two"), "own": []byte("own")}}
	auth := func(key string) v1alpha1.EndpointConfig {
		return v1alpha1.EndpointConfig{Authorization: &v1alpha1.Authorization{SecretRef: secretKey(key)}}
	}
	host := strings.TrimPrefix(s.URL, "http://")
	at := func(host, key string) v1alpha1.EndpointConfig {
		c := auth(key)
		c.Host = host
		return c
	}
	configs := []v1alpha1.EndpointConfig{at("other.example", "2"), at(host, "1"), at(host, "2")}
	for _, c := range []struct {
		name    string
		own     v1alpha1.EndpointConfig
		configs []v1alpha1.EndpointConfig
		want    string
	}{
		{"the first one for the host", v1alpha1.EndpointConfig{}, configs, "Bearer one"},
		{"none for the host", v1alpha1.EndpointConfig{}, configs[:1], ""},
		{"the webhook's own", auth("own"), configs, "Bearer own"},
		{"nothing is mixed", v1alpha1.EndpointConfig{CABundle: &v1alpha1.CABundle{Inline: new(string(newAuthority(t).pem))}}, configs, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options(s.URL)
			o.EndpointConfigs, o.Secrets = c.configs, secrets
			with(o.Declared.Webhook, c.own)
			if _, err := ask(t, o); err != nil {
				t.Fatal(err)
			}
			if got := s.last().header.Get("Authorization"); got != c.want {
				t.Errorf("got %q", got)
			}
		})
	}
}
