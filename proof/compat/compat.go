// Package compat has kinds that others define, as they publish them: their CustomResourceDefinitions are read from
// their modules, of a fixed version and with a checksum, and never copied here.
//
// What may not come in: objects, and what cairn makes of them (package e2e).
package compat

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// module is a published module, and the files with the definitions that are used.
type module struct {
	path, version, sum string
	definitions        []string
}

var modules = []module{
	{
		path: "sigs.k8s.io/lws", version: "v0.7.0", sum: "h1:qWfzX8+UBak+Hq0+m/PuE3uO0mp/3dmm5q/h/7z31A8=",
		definitions: []string{"config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets.yaml"},
	},
	{
		path: "sigs.k8s.io/jobset", version: "v0.10.1", sum: "h1:u8QKifNsrWVrlRFe6w2ofYTqFT9ma2DRHxfeB2m9xyU=",
		definitions: []string{"config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml"},
	},
	{
		path: "github.com/openkruise/kruise", version: "v1.8.0", sum: "h1:cU5XG9tur17j/CuY+iCTlxOtJ0GNTtJjMLurhh+25YQ=",
		definitions: []string{
			"config/crd/bases/apps.kruise.io_clonesets.yaml", "config/crd/bases/apps.kruise.io_statefulsets.yaml",
			"config/crd/bases/apps.kruise.io_daemonsets.yaml", "config/crd/bases/apps.kruise.io_sidecarsets.yaml",
		},
	},
	{
		path: "github.com/argoproj/argo-rollouts", version: "v1.8.3", sum: "h1:blbtQva4IK9r6gFh+dWkCrLnFdPOWiv9ubQYu36qeaA=",
		definitions: []string{"manifests/crds/rollout-crd.yaml"},
	},
}

// Definitions returns the CustomResourceDefinitions as YAML, one document each. It downloads what is not in the module
// cache. The error says what could not be read, or is not what was published.
func Definitions(ctx context.Context) ([]string, error) {
	var out []string
	for _, m := range modules {
		dir, err := m.download(ctx)
		if err != nil {
			return nil, fmt.Errorf("download %s@%s: %w", m.path, m.version, err)
		}
		for _, file := range m.definitions {
			text, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				return nil, err
			}
			out = append(out, string(text))
		}
	}
	return out, nil
}

// Dir returns the directory of a module that was published, which it downloads. The error says that there is no such
// module here, or why it could not be downloaded.
func Dir(ctx context.Context, path string) (string, error) {
	for _, m := range modules {
		if m.path == path {
			return m.download(ctx)
		}
	}
	return "", fmt.Errorf("there is no module %s in package compat", path)
}

// Version returns the version of a module that is used, as v1.8.3, and nothing if there is no such module here.
func Version(path string) string {
	for _, m := range modules {
		if m.path == path {
			return m.version
		}
	}
	return ""
}

// download returns the directory of the module in the module cache.
func (m module) download(ctx context.Context) (string, error) {
	dir, sum, err := Download(ctx, m.path, m.version)
	if err == nil && sum != m.sum {
		return "", fmt.Errorf("its checksum is %s, and not %s", sum, m.sum)
	}
	return dir, err
}

// Download downloads any module at a version, and returns its directory in the module cache and its checksum. The error
// says why it could not.
func Download(ctx context.Context, path, version string) (dir, sum string, err error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", path+"@"+version)
	cmd.Dir = os.TempDir() // no module of ours has a say in it
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	raw, failed := cmd.Output()
	var got struct {
		Dir   string `json:"Dir"`
		Sum   string `json:"Sum"`
		Error string `json:"Error"`
	}
	switch err := json.Unmarshal(raw, &got); {
	case got.Error != "":
		return "", "", fmt.Errorf("%s", got.Error)
	case failed != nil:
		return "", "", failed
	case err != nil:
		return "", "", err
	}
	return got.Dir, got.Sum, nil
}
