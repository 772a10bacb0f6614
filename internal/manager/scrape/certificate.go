package scrape

import (
	"crypto/tls"
	"fmt"
	"path/filepath"

	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// This file says with which certificate metrics are served.

// TLS serves with the tls.crt and tls.key of a folder, and reads them again when they change, as a Secret of type
// kubernetes.io/tls is mounted. Without a folder it makes a certificate that nobody has signed, new in each process;
// then watch is nil. HTTP/2 is off: nobody scrapes with it, and it has had more holes than uses.
func TLS(folder string) (cfg *tls.Config, watch manager.Runnable, err error) {
	cfg = &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	if folder == "" {
		public, private, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
		if err != nil {
			return nil, nil, fmt.Errorf("make a certificate: %w", err)
		}
		pair, err := tls.X509KeyPair(public, private)
		cfg.Certificates = []tls.Certificate{pair}
		return cfg, nil, err
	}
	watcher, err := certwatcher.New(filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key"))
	if err != nil {
		return nil, nil, fmt.Errorf("read the certificate in %s: %w", folder, err)
	}
	cfg.GetCertificate = watcher.GetCertificate
	return cfg, watcher, nil
}
