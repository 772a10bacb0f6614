package sandbox

// This file makes the keys and certificates of a cluster. Everything is ECDSA on P-256: an RSA key takes as long to
// make as an API server takes to start.

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const (
	// caLifetime is long, because a data directory may be opened again years later.
	caLifetime = 10 * 365 * 24 * time.Hour
	// leafLifetime is the lifetime of all other certificates. They are made anew at each start.
	leafLifetime = 365 * 24 * time.Hour
)

// pki is a cluster's certificate authority, with the files that the API server reads.
type pki struct {
	dir    string
	caCert *x509.Certificate
	caPEM  []byte
	caKey  crypto.Signer
}

func (p *pki) caFile() string     { return filepath.Join(p.dir, "ca.crt") }
func (p *pki) caKeyFile() string  { return filepath.Join(p.dir, "ca.key") }
func (p *pki) saKeyFile() string  { return filepath.Join(p.dir, "sa.key") }
func (p *pki) serverCert() string { return filepath.Join(p.dir, "apiserver.crt") }
func (p *pki) serverKey() string  { return filepath.Join(p.dir, "apiserver.key") }
func (p *pki) problem(e error) error {
	return fmt.Errorf("%w: keys in %s: %w", ErrDataDirUnusable, p.dir, e)
}

// openPKI reads the authority and the service-account key in dir, or makes them, and issues a new serving certificate.
func openPKI(dir string) (*pki, error) {
	p := &pki{dir: dir}
	if err := p.openCA(); err != nil {
		return nil, p.problem(err)
	}
	if _, err := os.Stat(p.saKeyFile()); errors.Is(err, fs.ErrNotExist) {
		if _, err := newKeyFile(p.saKeyFile()); err != nil {
			return nil, p.problem(err)
		}
	} else if err != nil {
		return nil, p.problem(err)
	}
	if err := p.issueServing(); err != nil {
		return nil, p.problem(err)
	}
	return p, nil
}

func (p *pki) openCA() error {
	raw, err := keyutil.PrivateKeyFromFile(p.caKeyFile())
	if errors.Is(err, fs.ErrNotExist) {
		return p.newCA()
	}
	if err != nil {
		return err
	}
	key, ok := raw.(crypto.Signer)
	if !ok {
		return fmt.Errorf("%s is no signing key", p.caKeyFile())
	}
	if p.caPEM, err = os.ReadFile(p.caFile()); err != nil {
		return err
	}
	certs, err := cert.ParseCertsPEM(p.caPEM)
	if err != nil {
		return err
	}
	p.caCert, p.caKey = certs[0], key
	return nil
}

func (p *pki) newCA() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "cairn-sandbox-ca"},
		NotBefore:             notBefore(),
		NotAfter:              time.Now().Add(caLifetime),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := signed(template, template, key.Public(), key)
	if err != nil {
		return err
	}
	if p.caCert, err = x509.ParseCertificate(der); err != nil {
		return err
	}
	p.caKey, p.caPEM = key, certPEM(der)
	if err := writeSecret(p.caFile(), p.caPEM); err != nil {
		return err
	}
	// The key comes last: openCA takes its presence for a complete authority.
	return writeKey(p.caKeyFile(), key)
}

// issueServing writes the API server's certificate: for the loopback addresses, and for the names by which a pod would
// reach it.
func (p *pki) issueServing() error {
	key, err := newKeyFile(p.serverKey())
	if err != nil {
		return err
	}
	der, err := signed(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		NotBefore:   notBefore(),
		NotAfter:    time.Now().Add(leafLifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{
			"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, net.ParseIP(apiServiceIP)},
	}, p.caCert, key.Public(), p.caKey)
	if err != nil {
		return err
	}
	return writeSecret(p.serverCert(), certPEM(der))
}

// issueClient returns a certificate and key, as PEM, that authenticate as user, a member of groups.
func (p *pki) issueClient(user string, groups []string) (certificate, key []byte, err error) {
	priv, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := signed(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		NotBefore:   notBefore(),
		NotAfter:    time.Now().Add(leafLifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, p.caCert, priv.Public(), p.caKey)
	if err != nil {
		return nil, nil, err
	}
	if key, err = keyutil.MarshalPrivateKeyToPEM(priv); err != nil {
		return nil, nil, err
	}
	return certPEM(der), key, nil
}

// notBefore lies a little in the past, for clocks that were just set back.
func notBefore() time.Time { return time.Now().Add(-time.Minute) }

func signed(template, parent *x509.Certificate, public crypto.PublicKey, signer crypto.Signer) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	return x509.CreateCertificate(rand.Reader, template, parent, public, signer)
}

func certPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der})
}

func newKeyFile(path string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return key, writeKey(path, key)
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	raw, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return err
	}
	return writeSecret(path, raw)
}

// writeSecret replaces the file at path in one step, readable by its owner alone at any moment.
func writeSecret(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
