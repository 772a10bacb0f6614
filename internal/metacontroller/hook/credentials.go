package hook

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
)

// This file reads certificates and credentials. They are read for every call, so that the next call uses a rotated one.

// Secrets reads the objects that webhooks refer to. It is called for every call of a hook, so it should be a cache.
type Secrets interface {
	Secret(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error)
	ConfigMap(ctx context.Context, key types.NamespacedName) (*corev1.ConfigMap, error)
}

// credentials are an endpoint's contents. fingerprint tells apart those that need another connection.
type credentials struct {
	ca, cert, key []byte
	authorization string
	fingerprint   [sha256.Size]byte
}

// vault reads endpoints.
type vault struct {
	Secrets
}

func (v vault) read(ctx context.Context, e v1alpha1.EndpointConfig) (c credentials, err error) {
	if e.Authorization != nil && e.BasicAuth != nil {
		return c, errors.New("authorization and basicAuth are mutually exclusive")
	}
	if c.ca, err = v.caBundle(ctx, e.CABundle); err != nil {
		return c, fmt.Errorf("caBundle: %w", err)
	}
	if t := e.ClientTLS; t != nil {
		if c.cert, err = v.secret(ctx, t.SecretRef, or(t.CertKey, v1alpha1.DefaultCertKey)); err != nil {
			return c, fmt.Errorf("clientTLS: %w", err)
		}
		if c.key, err = v.secret(ctx, t.SecretRef, or(t.PrivateKeyKey, v1alpha1.DefaultPrivateKeyKey)); err != nil {
			return c, fmt.Errorf("clientTLS: %w", err)
		}
	}
	if c.authorization, err = v.authorization(ctx, e.Authorization); err != nil {
		return c, fmt.Errorf("authorization: %w", err)
	}
	if e.BasicAuth != nil {
		if c.authorization, err = v.basicAuth(ctx, e.BasicAuth); err != nil {
			return c, fmt.Errorf("basicAuth: %w", err)
		}
	}
	h := sha256.New()
	for _, part := range [][]byte{c.ca, c.cert, c.key} {
		fmt.Fprintf(h, "%d ", len(part))
		h.Write(part)
	}
	h.Sum(c.fingerprint[:0])
	return c, nil
}

func (v vault) caBundle(ctx context.Context, b *v1alpha1.CABundle) ([]byte, error) {
	if b == nil {
		return nil, nil
	}
	inline, secret, configMap := ptr.Deref(b.Inline, ""), b.SecretRef, b.ConfigMapRef
	switch {
	case inline != "" && secret == nil && configMap == nil:
		return []byte(inline), nil
	case inline == "" && secret != nil && configMap == nil:
		at := v1alpha1.SecretReference{Name: secret.Name, Namespace: secret.Namespace}
		return v.secret(ctx, at, or(secret.Key, v1alpha1.DefaultCAKey))
	case inline == "" && secret == nil && configMap != nil:
		return v.configMap(ctx, configMap)
	default:
		return nil, errors.New("exactly one of inline, secretRef and configMapRef is needed")
	}
}

func (v vault) authorization(ctx context.Context, a *v1alpha1.Authorization) (string, error) {
	if a == nil {
		return "", nil
	}
	scheme := strings.TrimSpace(ptr.Deref(a.Type, ""))
	scheme = or(&scheme, v1alpha1.DefaultAuthorizationType)
	if strings.EqualFold(scheme, "basic") {
		return "", errors.New("type Basic is not supported here: use basicAuth")
	}
	value, err := v.secret(ctx, a.SecretRef.SecretReference, a.SecretRef.Key)
	return scheme + " " + strings.TrimSpace(string(value)), err
}

func (v vault) basicAuth(ctx context.Context, b *v1alpha1.BasicAuth) (string, error) {
	user, err := v.secret(ctx, b.SecretRef, or(b.UsernameKey, v1alpha1.DefaultUsernameKey))
	if err != nil {
		return "", err
	}
	password, err := v.secret(ctx, b.SecretRef, or(b.PasswordKey, v1alpha1.DefaultPasswordKey))
	if err != nil {
		return "", err
	}
	name := strings.TrimSpace(string(user))
	if strings.Contains(name, ":") {
		return "", errors.New("a user name cannot hold a colon")
	}
	pair := name + ":" + strings.TrimSpace(string(password))
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(pair)), nil
}

func (v vault) secret(ctx context.Context, r v1alpha1.SecretReference, key string) ([]byte, error) {
	if v.Secrets == nil {
		return nil, errors.New("secrets cannot be read here")
	}
	at := types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
	s, err := v.Secret(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("read secret %s: %w", at, err)
	}
	value, ok := s.Data[key]
	if !ok {
		return nil, fmt.Errorf("secret %s has no key %q", at, key)
	}
	return value, nil
}

func (v vault) configMap(ctx context.Context, r *v1alpha1.CABundleReference) ([]byte, error) {
	if v.Secrets == nil {
		return nil, errors.New("config maps cannot be read here")
	}
	at, key := types.NamespacedName{Namespace: r.Namespace, Name: r.Name}, or(r.Key, v1alpha1.DefaultCAKey)
	m, err := v.ConfigMap(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("read config map %s: %w", at, err)
	}
	if text, ok := m.Data[key]; ok {
		return []byte(text), nil
	}
	if value, ok := m.BinaryData[key]; ok {
		return value, nil
	}
	return nil, fmt.Errorf("config map %s has no key %q", at, key)
}

// tls returns what connections with these credentials use.
func (c credentials) tls() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(c.ca) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(c.ca) {
			return nil, errors.New("caBundle: it holds no certificate")
		}
	}
	if len(c.cert) > 0 || len(c.key) > 0 {
		pair, err := tls.X509KeyPair(c.cert, c.key)
		if err != nil {
			return nil, fmt.Errorf("clientTLS: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// or returns what a field of the API says, and fallback if it says nothing.
func or(field *string, fallback string) string {
	if field == nil || *field == "" {
		return fallback
	}
	return *field
}
