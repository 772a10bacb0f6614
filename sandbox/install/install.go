// Package install puts cairn's shipped roles into a cluster and gives back what its manager may do: the sandbox and the
// integration tests run the manager with exactly the rights that deploy/ grants, never as an administrator.
package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/deploy"
)

// Roles applies the identity and the roles of the given controllers as an administrator, and returns a configuration
// that acts as the manager's service account. The API server then decides by RBAC, as it would in a cluster.
func Roles(ctx context.Context, admin *rest.Config, controllers []string, askServer bool) (*rest.Config, error) {
	manifests := []string{deploy.Identity()}
	for _, name := range controllers {
		roles, err := deploy.Roles(name, askServer)
		if err != nil {
			return nil, err
		}
		manifests = append(manifests, roles)
	}
	if err := Apply(ctx, admin, manifests...); err != nil {
		return nil, err
	}
	cfg := rest.CopyConfig(admin)
	cfg.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + deploy.Namespace + ":" + deploy.ServiceAccount,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + deploy.Namespace, "system:authenticated"},
	}
	return cfg, nil
}

// Apply applies YAML streams in order, by server-side apply.
func Apply(ctx context.Context, cfg *rest.Config, manifests ...string) error {
	c, err := client.New(cfg, client.Options{Scheme: runtime.NewScheme()})
	if err != nil {
		return fmt.Errorf("connect to %s: %w", cfg.Host, err)
	}
	for _, manifest := range manifests {
		decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), len(manifest))
		for {
			var o unstructured.Unstructured
			if err := decoder.Decode(&o); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return fmt.Errorf("read a manifest: %w", err)
			}
			desired := client.ApplyConfigurationFromUnstructured(&o)
			if err := c.Apply(ctx, desired, client.FieldOwner("cairn-sandbox"), client.ForceOwnership); err != nil {
				return fmt.Errorf("apply %s %s: %w", o.GetKind(), o.GetName(), err)
			}
		}
	}
	return nil
}
