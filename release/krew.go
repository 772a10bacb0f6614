package release

import (
	"fmt"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// This file makes the manifest by which krew installs "kubectl cairn".

// plugin is krew's Plugin, as far as it is used here: https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest.
type plugin struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]string `json:"metadata"`
	Spec       pluginSpec        `json:"spec"`
}

type pluginSpec struct {
	Version          string           `json:"version"`
	Homepage         string           `json:"homepage"`
	ShortDescription string           `json:"shortDescription"`
	Description      string           `json:"description"`
	Platforms        []pluginPlatform `json:"platforms"`
}

type pluginPlatform struct {
	Selector map[string]map[string]string `json:"selector"`
	URI      string                       `json:"uri"`
	SHA256   string                       `json:"sha256"`
	Bin      string                       `json:"bin"`
	Files    []map[string]string          `json:"files"`
}

// Krew writes the manifest for archives that exist.
func (r *Release) Krew(platforms ...Platform) (string, error) {
	p := plugin{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin", Metadata: map[string]string{"name": "cairn"},
		Spec: pluginSpec{
			Version: r.Version, Homepage: Home, ShortDescription: "History, diff and safe undo for any resource",
			Description: `Shows the revisions of Deployments, DaemonSets, StatefulSets and of custom
resources that keep ControllerRevisions, what an undo would change, who made
an edit, and what a rollout waits for. Needs nothing in the cluster.
`,
		},
	}
	for _, on := range platforms {
		digest, err := sum(filepath.Join(r.Out, r.archiveName(on)))
		if err != nil {
			return "", err
		}
		p.Spec.Platforms = append(p.Spec.Platforms, pluginPlatform{
			Selector: map[string]map[string]string{"matchLabels": {"os": on.OS, "arch": on.Arch}},
			URI:      fmt.Sprintf("%s/releases/download/%s/%s", Home, r.Version, r.archiveName(on)),
			SHA256:   digest, Bin: on.program(),
			Files: []map[string]string{{"from": on.program(), "to": "."}, {"from": "LICENSE", "to": "."}},
		})
	}
	data, err := yaml.Marshal(p)
	if err != nil {
		return "", err
	}
	out := filepath.Join(r.Out, "cairn.yaml")
	return out, save(out, data)
}
