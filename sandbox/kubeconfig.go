package sandbox

// This file turns certificates into what clients read: rest.Config values and the kubeconfig file.

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	// contextName names cluster, user and context in the kubeconfig.
	contextName = "cairn-sandbox"
	// adminUser is the user in the kubeconfig; its group is bound to cluster-admin before RBAC is consulted at all.
	adminUser   = "cairn-sandbox-admin"
	mastersName = "system:masters"
)

// Config returns a new configuration for the cluster's administrator, with client-side rate limits off (the server's
// priority and fairness rules apply). The caller may change it.
func (s *Sandbox) Config() *rest.Config { return rest.CopyConfig(s.admin) }

// Kubeconfig returns the path of the kubeconfig file. It holds the administrator's credentials.
func (s *Sandbox) Kubeconfig() string { return s.file.path }

// ConfigFor returns a configuration that authenticates, by client certificate, as user with the given groups. The user
// needs not exist and has no right but those that RBAC bindings give to its name, its groups and system:authenticated.
// The error is not nil only when the system has no randomness or the authority's key is damaged.
func (s *Sandbox) ConfigFor(user string, groups ...string) (*rest.Config, error) {
	certificate, key, err := s.pki.issueClient(user, groups)
	if err != nil {
		return nil, fmt.Errorf("issue a client certificate for %q: %w", user, err)
	}
	return &rest.Config{
		Host:      "https://" + s.addr,
		UserAgent: user,
		QPS:       -1,
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   s.pki.caPEM,
			CertData: certificate,
			KeyData:  key,
		},
	}, nil
}

// ServiceAccountConfig returns a configuration that authenticates with a token of the service account, valid for one
// hour. It fails when the service account does not exist.
func (s *Sandbox) ServiceAccountConfig(ctx context.Context, namespace, name string) (*rest.Config, error) {
	client, err := kubernetes.NewForConfig(s.admin)
	if err != nil {
		return nil, err
	}
	token, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("request a token for service account %s/%s: %w", namespace, name, err)
	}
	return &rest.Config{
		Host:            s.admin.Host,
		QPS:             -1,
		BearerToken:     token.Status.Token,
		TLSClientConfig: rest.TLSClientConfig{CAData: s.pki.caPEM},
	}, nil
}

// ConfigAs returns a configuration with the identity of a service account, by [Sandbox.ConfigFor]: a certificate can
// carry its user name and its groups, which saves a token request. The account needs not exist.
func (s *Sandbox) ConfigAs(namespace, name string) (*rest.Config, error) {
	const accounts = "system:serviceaccounts"
	return s.ConfigFor("system:serviceaccount:"+namespace+":"+name, accounts, accounts+":"+namespace)
}

// controllerConfig returns a configuration with the identity, and so with the RBAC rights, that Kubernetes gives to the
// built-in controller of that name.
func (s *Sandbox) controllerConfig(name string) (*rest.Config, error) {
	cfg, err := s.ConfigAs("kube-system", name)
	if err != nil {
		return nil, err
	}
	cfg.UserAgent = "upstream/" + name
	cfg.ContentType = runtime.ContentTypeProtobuf
	cfg.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return cfg, nil
}

// KubeconfigOf returns what a kubeconfig file for cfg holds, which authenticates by a client certificate or a token.
// cfg has them in memory, and names no files. The error is not nil only if they cannot be written as YAML.
func KubeconfigOf(cfg *rest.Config) ([]byte, error) {
	return clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{contextName: {
			Server:                   cfg.Host,
			CertificateAuthorityData: cfg.CAData,
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{contextName: {
			ClientCertificateData: cfg.CertData,
			ClientKeyData:         cfg.KeyData,
			Token:                 cfg.BearerToken,
		}},
		Contexts:       map[string]*clientcmdapi.Context{contextName: {Cluster: contextName, AuthInfo: contextName}},
		CurrentContext: contextName,
	})
}

// privateKubeconfig writes cfg to a file in the data directory, for a component that reads nothing else.
func (s *Sandbox) privateKubeconfig(name string, cfg *rest.Config) (string, error) {
	path := filepath.Join(s.data.pki(), name+".kubeconfig")
	content, err := KubeconfigOf(cfg)
	if err != nil {
		return "", err
	}
	return path, writeSecret(path, content)
}

// mayOverwrite protects the credentials of other clusters: only a file that describes nothing but a sandbox is
// replaced.
func mayOverwrite(path string) error {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && len(raw) == 0) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrKubeconfig, err)
	}
	old, err := clientcmd.Load(raw)
	if err != nil || len(old.Clusters) != 1 || old.Clusters[contextName] == nil {
		return fmt.Errorf("%w: %s was not written by a sandbox; choose another path", ErrKubeconfig, path)
	}
	return nil
}
