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
)

// This file reads certificates and credentials. They are read on every call, so that a rotated one is used by the next.

// Secrets gives what webhooks refer to. It is asked on every call, so it should be a cache.
type Secrets interface {
	Secret(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error)
	ConfigMap(ctx context.Context, key types.NamespacedName) (*corev1.ConfigMap, error)
}

// Endpoint is which certificates and credentials to use. Authorization and BasicAuth exclude each other.
type Endpoint struct {
	CABundle      *CABundle
	ClientTLS     *ClientTLS
	Authorization *Authorization
	BasicAuth     *BasicAuth
}

// Reference is a key of a Secret or ConfigMap.
type Reference struct {
	types.NamespacedName
	// Key may be empty where a default is named.
	Key string
}

// CABundle holds the certificates, as PEM, that a server's must go back to. They replace the system's. Exactly one field
// is set; the default key is ca.crt.
type CABundle struct {
	Inline            []byte
	Secret, ConfigMap *Reference
}

// ClientTLS is the certificate that we show. The default keys are tls.crt and tls.key.
type ClientTLS struct {
	Secret           types.NamespacedName
	CertKey, PrivKey string
}

// Authorization is a header "<Type> <value of the secret>". The default type is Bearer; Basic is what BasicAuth is for.
type Authorization struct {
	Type   string
	Secret Reference
}

// BasicAuth is a user and a password. The default keys are username and password.
type BasicAuth struct {
	Secret                   types.NamespacedName
	UsernameKey, PasswordKey string
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

func (v vault) read(ctx context.Context, e Endpoint) (c credentials, err error) {
	if e.Authorization != nil && e.BasicAuth != nil {
		return c, errors.New("authorization and basicAuth exclude each other")
	}
	if c.ca, err = v.caBundle(ctx, e.CABundle); err != nil {
		return c, fmt.Errorf("caBundle: %w", err)
	}
	if t := e.ClientTLS; t != nil {
		if c.cert, err = v.secret(ctx, Reference{t.Secret, or(t.CertKey, corev1.TLSCertKey)}); err != nil {
			return c, fmt.Errorf("clientTLS: %w", err)
		}
		if c.key, err = v.secret(ctx, Reference{t.Secret, or(t.PrivKey, corev1.TLSPrivateKeyKey)}); err != nil {
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

func (v vault) caBundle(ctx context.Context, b *CABundle) ([]byte, error) {
	const defaultKey = corev1.ServiceAccountRootCAKey
	switch {
	case b == nil:
		return nil, nil
	case len(b.Inline) > 0 && b.Secret == nil && b.ConfigMap == nil:
		return b.Inline, nil
	case len(b.Inline) == 0 && b.Secret != nil && b.ConfigMap == nil:
		return v.secret(ctx, Reference{b.Secret.NamespacedName, or(b.Secret.Key, defaultKey)})
	case len(b.Inline) == 0 && b.Secret == nil && b.ConfigMap != nil:
		return v.configMap(ctx, Reference{b.ConfigMap.NamespacedName, or(b.ConfigMap.Key, defaultKey)})
	default:
		return nil, errors.New("exactly one of inline, secretRef and configMapRef is needed")
	}
}

func (v vault) authorization(ctx context.Context, a *Authorization) (string, error) {
	if a == nil {
		return "", nil
	}
	scheme := or(strings.TrimSpace(a.Type), "Bearer")
	if strings.EqualFold(scheme, "basic") {
		return "", errors.New("type Basic is not supported here: use basicAuth")
	}
	value, err := v.secret(ctx, a.Secret)
	return scheme + " " + strings.TrimSpace(string(value)), err
}

func (v vault) basicAuth(ctx context.Context, b *BasicAuth) (string, error) {
	user, err := v.secret(ctx, Reference{b.Secret, or(b.UsernameKey, corev1.BasicAuthUsernameKey)})
	if err != nil {
		return "", err
	}
	password, err := v.secret(ctx, Reference{b.Secret, or(b.PasswordKey, corev1.BasicAuthPasswordKey)})
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

func (v vault) secret(ctx context.Context, r Reference) ([]byte, error) {
	if v.Secrets == nil {
		return nil, errors.New("secrets cannot be read here")
	}
	s, err := v.Secret(ctx, r.NamespacedName)
	if err != nil {
		return nil, fmt.Errorf("read secret %s: %w", r.NamespacedName, err)
	}
	value, ok := s.Data[r.Key]
	if !ok {
		return nil, fmt.Errorf("secret %s has no key %q", r.NamespacedName, r.Key)
	}
	return value, nil
}

func (v vault) configMap(ctx context.Context, r Reference) ([]byte, error) {
	if v.Secrets == nil {
		return nil, errors.New("config maps cannot be read here")
	}
	m, err := v.ConfigMap(ctx, r.NamespacedName)
	if err != nil {
		return nil, fmt.Errorf("read config map %s: %w", r.NamespacedName, err)
	}
	if text, ok := m.Data[r.Key]; ok {
		return []byte(text), nil
	}
	if value, ok := m.BinaryData[r.Key]; ok {
		return value, nil
	}
	return nil, fmt.Errorf("config map %s has no key %q", r.NamespacedName, r.Key)
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

func or(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}
