package deploy

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// This file hands the manifests out, so that tests and the sandbox run under exactly what is shipped.

//go:embed crds/*.yaml manager/*.yaml roles/*.yaml
var manifests embed.FS

// The identity that the manifests give the manager.
const (
	Namespace      = "cairn-system"
	ServiceAccount = "cairn-manager"
	// LeaseName is the one lease that the manager may hold.
	LeaseName = "cairn-manager"
)

// Identity returns the manifests of the manager's namespace and service account, and of its right to hold its lease, as
// one YAML stream.
func Identity() string {
	return must(read("manager/00-namespace.yaml")) + "---\n" + must(read("manager/account.yaml")) + "---\n" + must(read("manager/lease.yaml"))
}

// MetricsReader is the ClusterRole that lets somebody read the manager's metrics.
const MetricsReader = "cairn-metrics-reader"

// Metrics returns the manifests of what the manager needs to serve metrics to those who may read them, and of
// [MetricsReader], as one YAML stream.
func Metrics() string { return must(read("manager/metrics.yaml")) }

// CRDs returns the manifests of all custom resource definitions, as one YAML stream.
func CRDs() string {
	files, _ := fs.Glob(manifests, "crds/*.yaml") // the pattern is well-formed
	var out strings.Builder
	for _, f := range files {
		out.WriteString(must(read(f))) // each begins with ---
	}
	return out.String()
}

// Roles returns the manifests of the roles that a controller needs, bound to the manager's service account, as one YAML
// stream. With askServer they include the right to ask the API server about equivalence (rule E3), for controllers that
// ask. It returns an error for a controller that ships no roles.
func Roles(controller string, askServer bool) (string, error) {
	out, err := read("roles/" + controller + ".yaml")
	if err != nil {
		return "", fmt.Errorf("controller %q ships no roles; there are: %s", controller, strings.Join(controllers(), ", "))
	}
	if askServer {
		ask, err := read("roles/" + controller + "-ask-server.yaml")
		switch {
		case errors.Is(err, fs.ErrNotExist): // it keeps no history, so that there is nothing to ask
		case err != nil:
			return "", err
		default:
			out += "---\n" + ask
		}
	}
	return out, nil
}

// controllers lists those that ship roles.
func controllers() []string {
	files, _ := fs.Glob(manifests, "roles/*.yaml") // the pattern is well-formed
	var out []string
	for _, f := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(f, "roles/"), ".yaml")
		if !strings.HasSuffix(name, "-ask-server") {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func read(name string) (string, error) {
	b, err := manifests.ReadFile(name)
	return string(b), err
}

// must is for files that the binary holds, and for what it makes itself.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
