package main

// This file runs the tests against another version of Kubernetes: its API server, scheduler and controllers, built from
// the module that is published, are programs beside the sandbox's etcd and nodes.

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/cairn-dev/cairn/proof/compat"
	"github.com/cairn-dev/cairn/sandbox"
	"github.com/cairn-dev/cairn/sandbox/sandboxtest"
)

// theVersions is the table of Kubernetes versions in docs/versions.md.
var theVersions = section{
	name: "kubernetes",
	head: "| Kubernetes | end to end | of them handovers | composite | install | every fault | time |",
}

var version = regexp.MustCompile(`^v1\.(\d+)\.(\d+)$`)

func isVersion(name string) bool { return version.MatchString(name) }

// tryVersion runs the tests and writes the row of the table.
func tryVersion(ctx context.Context, out io.Writer, name string) (ok bool, err error) {
	var env []string
	if name != sandbox.KubernetesVersion {
		dir, err := programs(ctx, out, name)
		if err != nil {
			return false, fmt.Errorf("build Kubernetes %s: %w", name, err)
		}
		env = append(env, sandboxtest.BinariesVariable+"="+dir)
	}
	start := time.Now()
	found, err := test(ctx, out, env)
	if err != nil {
		return false, err
	}
	took := time.Since(start).Round(time.Second)
	cells := []string{strings.TrimPrefix(name, "v"), found["e2e"].cell(), found["e2e"].only(handover).cell()}
	for _, suite := range suites[1:] {
		cells = append(cells, found[suite].cell())
	}
	cells = append(cells, took.String())
	line := "| " + strings.Join(cells, " | ") + " |"
	fmt.Fprintln(out, theVersions.head+"\n"+line)
	ok = !slices.ContainsFunc(slices.Collect(maps.Values(found)), func(s results) bool { return s.failed() > 0 })
	return ok, theVersions.change(filepath.Join("docs", "versions.md"), func(old []string) []string {
		old = slices.DeleteFunc(old, func(l string) bool { return strings.HasPrefix(l, "| "+cells[0]+" ") })
		return slices.Sorted(slices.Values(append(old, line)))
	})
}

// programs returns the directory with the programs of a version, which are built once.
func programs(ctx context.Context, out io.Writer, name string) (string, error) {
	dir, err := filepath.Abs(filepath.Join("bin", "compat", "kubernetes-"+name))
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "bin")
	if _, err := os.Stat(filepath.Join(bin, "kube-scheduler")); err == nil { //nolint:gosec // a name like v1.36.3, and no other
		return bin, nil
	}
	if err := os.MkdirAll(dir, 0o750); err != nil { //nolint:gosec // as above
		return "", err
	}
	if err := moduleFiles(ctx, dir, name); err != nil {
		return "", err
	}
	fmt.Fprintf(out, "compat: building Kubernetes %s: five minutes or so\n", name)
	const variable = " -X k8s.io/component-base/version."
	flags := "-s -w" + variable + "gitVersion=" + name +
		variable + "gitMajor=1" + variable + "gitMinor=" + version.FindStringSubmatch(name)[1]
	args := []string{"build", "-buildvcs=false", "-o", bin + string(filepath.Separator), "-ldflags", flags}
	for _, program := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		args = append(args, "k8s.io/kubernetes/cmd/"+program)
	}
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // as above
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "CGO_ENABLED=0")
	cmd.Stdout, cmd.Stderr = out, out
	return bin, cmd.Run()
}

// staged is a library that Kubernetes has in its own repository, and publishes with each version.
var staged = regexp.MustCompile(`(?m)^\s+(\S+) => \./staging/.*$`)

// moduleFiles writes a go.mod that has Kubernetes' own choice of dependencies: the libraries of its repository as they
// are published, the checksums of the rest from its go.sum.
func moduleFiles(ctx context.Context, dir, name string) error {
	published, _, err := compat.Download(ctx, "k8s.io/kubernetes", name)
	if err != nil {
		return fmt.Errorf("download it: %w", err)
	}
	theirs, err := os.ReadFile(filepath.Join(published, "go.mod")) //nolint:gosec // as above
	if err != nil {
		return err
	}
	sums, err := os.ReadFile(filepath.Join(published, "go.sum")) //nolint:gosec // as above
	if err != nil {
		return err
	}
	mod := bytes.NewBufferString("module kubernetes\n\n")
	for _, line := range regexp.MustCompile(`(?m)^(go|godebug) .*$`).FindAll(theirs, -1) {
		fmt.Fprintf(mod, "%s\n", line)
	}
	fmt.Fprintf(mod, "require k8s.io/kubernetes %s\n", name)
	for _, m := range staged.FindAllSubmatch(theirs, -1) {
		fmt.Fprintf(mod, "replace %s => %[1]s v0%s\n", m[1], strings.TrimPrefix(name, "v1"))
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), mod.Bytes(), 0o600); err != nil { //nolint:gosec // as above
		return err
	}
	return os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o600) //nolint:gosec // as above
}
