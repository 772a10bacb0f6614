package content

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// This file looks for what a restored template may do that the present one may not. It does not judge: it makes sure
// that the user has seen it before the undo.

// AddedPrivileges compares all pod specs in two JSON documents, wherever in them they are, and returns a sentence for
// each privilege that only the second one has.
func AddedPrivileges(before, after []byte) ([]string, error) {
	old, err := podSpecs(before)
	if err != nil {
		return nil, err
	}
	restored, err := podSpecs(after)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, path := range slices.Sorted(maps.Keys(restored)) {
		had, ok := old[path]
		if !ok {
			had = &corev1.PodSpec{}
		}
		for _, sentence := range added(had, restored[path]) {
			if len(restored) > 1 {
				sentence = path + ": " + sentence
			}
			out = append(out, sentence)
		}
	}
	return out, nil
}

// podSpecs finds the pod specs in a JSON document, by their path: every object with a list of containers is one.
func podSpecs(document []byte) (map[string]*corev1.PodSpec, error) {
	var tree any
	if err := json.Unmarshal(document, &tree); err != nil {
		return nil, err
	}
	found := map[string]*corev1.PodSpec{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			if _, ok := v["containers"].([]any); ok {
				if spec := asPodSpec(v); spec != nil {
					found[path] = spec
				}
			}
			for key, e := range v {
				walk(strings.TrimPrefix(path+"."+key, "."), e)
			}
		case []any:
			for n, e := range v {
				walk(fmt.Sprintf("%s[%d]", path, n), e)
			}
		}
	}
	walk("", tree)
	return found, nil
}

// asPodSpec returns nil for an object that only looks like a pod spec.
func asPodSpec(v map[string]any) *corev1.PodSpec {
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	var spec corev1.PodSpec
	if json.Unmarshal(b, &spec) != nil {
		return nil
	}
	return &spec
}

func added(old, restored *corev1.PodSpec) []string {
	out := addedToPod(old, restored)
	before := map[string]corev1.Container{}
	registries := map[string]bool{}
	for _, c := range containers(old) {
		before[c.Name] = c
		registries[registry(c.Image)] = true
	}
	for _, c := range containers(restored) {
		was := before[c.Name]
		if privileged(c) && !privileged(was) {
			out = append(out, fmt.Sprintf("container %s becomes privileged", c.Name))
		}
		for _, capability := range capabilities(c) {
			if !slices.Contains(capabilities(was), capability) {
				out = append(out, fmt.Sprintf("container %s gains capability %s", c.Name, capability))
			}
		}
		if r := registry(c.Image); !registries[r] {
			out = append(out, fmt.Sprintf("container %s takes its image %s from registry %s, which no container uses now", c.Name, c.Image, r))
		}
	}
	return out
}

func addedToPod(old, restored *corev1.PodSpec) []string {
	var out []string
	for _, f := range []struct {
		field    string
		was, now bool
	}{
		{"hostNetwork", old.HostNetwork, restored.HostNetwork},
		{"hostPID", old.HostPID, restored.HostPID},
		{"hostIPC", old.HostIPC, restored.HostIPC},
	} {
		if f.now && !f.was {
			out = append(out, fmt.Sprintf("pods share a namespace of their node (%s)", f.field))
		}
	}
	if was, now := account(old), account(restored); was != now {
		out = append(out, fmt.Sprintf("pods run as service account %s instead of %s", now, was))
	}
	paths := hostPaths(old)
	for _, path := range hostPaths(restored) {
		if !slices.Contains(paths, path) {
			out = append(out, fmt.Sprintf("pods get %s of their node (hostPath)", path))
		}
	}
	return out
}

// containers returns init containers and containers.
func containers(spec *corev1.PodSpec) []corev1.Container {
	return slices.Concat(spec.InitContainers, spec.Containers)
}

func privileged(c corev1.Container) bool {
	return c.SecurityContext != nil && c.SecurityContext.Privileged != nil && *c.SecurityContext.Privileged
}

func capabilities(c corev1.Container) []corev1.Capability {
	if c.SecurityContext == nil || c.SecurityContext.Capabilities == nil {
		return nil
	}
	return c.SecurityContext.Capabilities.Add
}

func hostPaths(spec *corev1.PodSpec) []string {
	var out []string
	for _, v := range spec.Volumes {
		if v.HostPath != nil {
			out = append(out, v.HostPath.Path)
		}
	}
	return out
}

// account returns the service account, under either of its names.
func account(spec *corev1.PodSpec) string {
	switch {
	case spec.ServiceAccountName != "":
		return spec.ServiceAccountName
	case spec.DeprecatedServiceAccount != "":
		return spec.DeprecatedServiceAccount
	default:
		return "default"
	}
}

// registry returns the registry of an image by the rule of container runtimes: the part before the first slash, if that
// looks like a host.
func registry(image string) string {
	host, _, ok := strings.Cut(image, "/")
	if ok && (strings.ContainsAny(host, ".:") || host == "localhost") {
		return host
	}
	return "docker.io"
}
