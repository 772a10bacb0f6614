package builder

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/rest"

	"github.com/cairn-dev/cairn/internal/schemas"
	"github.com/cairn-dev/cairn/revision"
)

// This file checks the versioned paths of parents without a Go type against the schema that the API server serves.

// inServedSchema asks the API server of a manager. The error names the paths that its schema does not know; any other
// one is the API server's, and a later start may do.
func inServedSchema(config *rest.Config, over *http.Client, gvk schema.GroupVersionKind, paths []revision.Path) error {
	client, err := discovery.NewDiscoveryClientForConfigAndClient(config, over)
	if err != nil {
		return fmt.Errorf("ask the API server for its schema: %w", err)
	}
	return inSchema(client.OpenAPIV3(), gvk, paths)
}

// inSchema reports the paths that objects of a kind cannot have.
func inSchema(from openapi.Client, gvk schema.GroupVersionKind, paths []revision.Path) error {
	d, err := schemas.Fetch(from, gvk.GroupVersion())
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || d == nil && err == nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the API server's schema of %s: %w", gvk.GroupVersion(), err)
	}
	var errs []error
	for _, path := range paths {
		if why := d.Lacks(gvk, path); why != "" {
			errs = append(errs, fmt.Errorf("field Versions: %q: in the schema that the API server serves for %s, %s", path, gvk.Kind, why))
		}
	}
	return errors.Join(errs...)
}
