package release

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// This file packs the Helm chart: what is in deploy/chart, and the manifests beside it, which it renders as they are.

// shipped are the folders of deploy/ with manifests that the chart renders.
var shipped = []string{"manager", "roles", "crds", "admission", "monitoring"}

// Chart packs the chart of the release and returns the path of the archive. "helm package" would do, but for the dates.
func (r *Release) Chart() (string, error) {
	deploy := filepath.Join(r.Source, "deploy")
	files, err := tree(filepath.Join(deploy, "chart"))
	if err != nil {
		return "", err
	}
	for _, folder := range shipped {
		names, err := filepath.Glob(filepath.Join(deploy, folder, "*.yaml")) // sorted
		if err != nil {
			return "", err
		}
		for _, name := range names {
			if files, err = read(files, name, "files/"+folder+"/"+filepath.Base(name), 0o644); err != nil {
				return "", err
			}
		}
	}
	if files, err = read(files, filepath.Join(r.Source, "LICENSE"), "LICENSE", 0o644); err != nil {
		return "", err
	}
	files = slices.DeleteFunc(files, func(f file) bool { return strings.HasSuffix(f.name, "/") }) // Helm knows files only
	for i, f := range files {
		if f.name == "Chart.yaml" {
			f.data = bytes.Replace(f.data, []byte("appVersion: v0.0.0"), []byte("appVersion: "+r.Version), 1)
			f.data = bytes.Replace(f.data, []byte("version: 0.0.0"), []byte("version: "+strings.TrimPrefix(r.Version, "v")), 1)
		}
		f.name = "cairn/" + f.name
		files[i] = f
	}
	name := filepath.Join(r.Out, fmt.Sprintf("cairn-%s.tgz", strings.TrimPrefix(r.Version, "v")))
	return name, create(name, func(w io.Writer) error { return gzipped(w, files, r.Time) })
}

// installs are the manifests for those who do not use Helm, by what is in their names: which controllers they run.
var installs = []struct{ name, controllers string }{
	{"", "recorder"},
	{"-workloads", "daemonset,statefulset,replicaset,replicationcontroller,cronjob"},
	{"-metacontroller", "composite,decorator"},
	{"-all", "composite,cronjob,daemonset,decorator,recorder,replicaset,replicationcontroller,statefulset"},
}

// Installs renders a chart as manifests for "kubectl apply", with the helm that is at a path, and returns their paths.
func (r *Release) Installs(ctx context.Context, helm, chart string) ([]string, error) {
	namespace, err := os.ReadFile(filepath.Join(r.Source, "deploy", "manager", "00-namespace.yaml"))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, i := range installs {
		text, err := run(ctx, "", nil, helm, "template", "cairn", chart, "--namespace=cairn-system", "--set=controllers={"+i.controllers+"}")
		if err != nil {
			return nil, err
		}
		name := filepath.Join(r.Out, "install"+i.name+".yaml")
		if err := save(name, slices.Concat(namespace, text)); err != nil {
			return nil, err
		}
		out = append(out, name)
	}
	return out, nil
}
