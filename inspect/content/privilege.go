package content

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
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
			had = &podSpec{}
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

// podSpec is what is looked at in a pod spec. Its types read themselves: where one field has another type than it
// should, in a kind whose API server does not look, the others are read all the same.
type podSpec struct {
	HostNetwork              bool   `json:"hostNetwork"`
	HostPID                  bool   `json:"hostPID"`
	HostIPC                  bool   `json:"hostIPC"`
	ServiceAccountName       string `json:"serviceAccountName"`
	DeprecatedServiceAccount string `json:"serviceAccount"`
	PriorityClassName        string `json:"priorityClassName"`
	RuntimeClassName         string `json:"runtimeClassName"`
	SecurityContext          struct {
		RunAsUser *int64 `json:"runAsUser"`
	} `json:"securityContext"`
	InitContainers []container `json:"initContainers"`
	Containers     []container `json:"containers"`
	Volumes        []volume    `json:"volumes"`
}

type volume struct {
	HostPath *struct {
		Path string `json:"path"`
	} `json:"hostPath"`
	ConfigMap *named `json:"configMap"`
	Secret    *struct {
		SecretName string `json:"secretName"`
		Optional   bool   `json:"optional"`
	} `json:"secret"`
	PersistentVolumeClaim *struct {
		ClaimName string `json:"claimName"`
	} `json:"persistentVolumeClaim"`
	Projected struct {
		Sources []struct {
			ConfigMap *named `json:"configMap"`
			Secret    *named `json:"secret"`
		} `json:"sources"`
	} `json:"projected"`
}

type container struct {
	Name            string          `json:"name"`
	Image           string          `json:"image"`
	SecurityContext securityContext `json:"securityContext"`
	EnvFrom         []struct {
		ConfigMapRef *named `json:"configMapRef"`
		SecretRef    *named `json:"secretRef"`
	} `json:"envFrom"`
	Env []struct {
		ValueFrom struct {
			ConfigMapKeyRef *named `json:"configMapKeyRef"`
			SecretKeyRef    *named `json:"secretKeyRef"`
		} `json:"valueFrom"`
	} `json:"env"`
}

type securityContext struct {
	Privileged               *bool  `json:"privileged"`
	AllowPrivilegeEscalation *bool  `json:"allowPrivilegeEscalation"`
	RunAsUser                *int64 `json:"runAsUser"`
	ProcMount                string `json:"procMount"`
	Capabilities             struct {
		Add []string `json:"add"`
	} `json:"capabilities"`
}

type named struct {
	Name     string `json:"name"`
	Optional bool   `json:"optional"`
}

// podSpecs finds the pod specs in a JSON document, by their path: every object with a list of containers is one.
func podSpecs(document []byte) (map[string]*podSpec, error) {
	var tree any
	if err := json.Unmarshal(document, &tree); err != nil {
		return nil, err
	}
	found := map[string]*podSpec{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			if list, ok := v["containers"].([]any); ok && slices.ContainsFunc(list, isObject) {
				found[path] = asPodSpec(v)
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

func isObject(v any) bool {
	_, ok := v.(map[string]any)
	return ok
}

// asPodSpec reads what it can. encoding/json leaves a field out that has another type, and goes on.
func asPodSpec(v map[string]any) *podSpec {
	var spec podSpec
	b, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(b, &spec)
	}
	if _, oneField := errors.AsType[*json.UnmarshalTypeError](err); err != nil && !oneField {
		panic(err) // it came from JSON
	}
	return &spec
}

func added(old, restored *podSpec) []string {
	out := addedToPod(old, restored)
	before := map[string]container{}
	registries := map[string]bool{}
	for _, c := range old.containers() {
		before[c.Name] = c
		registries[registry(c.Image)] = true
	}
	for _, c := range restored.containers() {
		was, existed := before[c.Name]
		out = append(out, addedToContainer(was, c, existed)...)
		if restored.root(c) && (!existed || !old.root(was)) {
			out = append(out, fmt.Sprintf("container %s runs as root (runAsUser 0)", c.Name))
		}
		if r := registry(c.Image); !registries[r] {
			out = append(out, fmt.Sprintf("container %s takes its image %s from registry %s, which no container uses now", c.Name, c.Image, r))
		}
	}
	return out
}

// addedToContainer compares what two security contexts say.
func addedToContainer(was, now container, existed bool) []string {
	var out []string
	say := func(what string) { out = append(out, fmt.Sprintf("container %s %s", now.Name, what)) }
	had, has := was.SecurityContext, now.SecurityContext
	if is(has.Privileged) && !is(had.Privileged) {
		say("becomes privileged")
	}
	for _, capability := range has.Capabilities.Add {
		if !slices.Contains(had.Capabilities.Add, capability) {
			say("gains capability " + capability)
		}
	}
	// It may, unless that is forbidden.
	forbidden := had.AllowPrivilegeEscalation != nil && !*had.AllowPrivilegeEscalation
	allows := has.AllowPrivilegeEscalation == nil || *has.AllowPrivilegeEscalation
	if forbidden && allows || !existed && is(has.AllowPrivilegeEscalation) {
		say("may gain more privileges than it starts with (allowPrivilegeEscalation)")
	}
	if has.ProcMount == "Unmasked" && had.ProcMount != "Unmasked" {
		say("sees all of /proc (procMount Unmasked)")
	}
	return out
}

func is(b *bool) bool { return b != nil && *b }

func addedToPod(old, restored *podSpec) []string {
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
	if was, now := old.account(), restored.account(); was != now {
		out = append(out, fmt.Sprintf("pods run as service account %s instead of %s", now, was))
	}
	paths, secrets := old.hostPaths(), old.secrets()
	for _, path := range restored.hostPaths() {
		if !slices.Contains(paths, path) {
			out = append(out, fmt.Sprintf("pods get %s of their node (hostPath)", path))
		}
	}
	for _, name := range restored.secrets() {
		if !slices.Contains(secrets, name) {
			out = append(out, "pods read Secret "+name)
		}
	}
	return out
}

// containers returns init containers and containers.
func (s *podSpec) containers() []container { return slices.Concat(s.InitContainers, s.Containers) }

// root reports whether a container runs as root whatever its image says.
func (s *podSpec) root(c container) bool {
	user := c.SecurityContext.RunAsUser
	if user == nil {
		user = s.SecurityContext.RunAsUser
	}
	return user != nil && *user == 0
}

func (s *podSpec) hostPaths() []string {
	var out []string
	for _, v := range s.Volumes {
		if v.HostPath != nil {
			out = append(out, v.HostPath.Path)
		}
	}
	return out
}

// secrets are the Secrets that pods read, in volumes and in their environment, sorted.
func (s *podSpec) secrets() []string {
	var out []string
	for _, r := range s.references() {
		if r.kind == "Secret" {
			out = append(out, r.Name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// account returns the service account, under either of its names.
func (s *podSpec) account() string {
	return cmp.Or(s.ServiceAccountName, s.DeprecatedServiceAccount, "default")
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
