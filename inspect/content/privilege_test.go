package content

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// TestAddedPrivileges: each privilege is named when the revision has it and the spec has not, and not the other way
// round.
func TestAddedPrivileges(t *testing.T) {
	plain := func(change func(*corev1.PodSpec)) corev1.PodSpec {
		spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "quay.io/web:1"}}}
		if change != nil {
			change(&spec)
		}
		return spec
	}
	for name, c := range map[string]struct {
		change func(*corev1.PodSpec)
		want   []string
		back   []string // what is named the other way round
	}{
		"nothing": {},
		"privileged": {
			change: func(s *corev1.PodSpec) {
				s.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
			},
			want: []string{"container c becomes privileged"},
		},
		"init container": {
			change: func(s *corev1.PodSpec) {
				s.InitContainers = []corev1.Container{{Name: "i", Image: "quay.io/i", SecurityContext: &corev1.SecurityContext{Privileged: new(true)}}}
			},
			want: []string{"container i becomes privileged"},
		},
		"capability": {
			change: func(s *corev1.PodSpec) {
				s.Containers[0].SecurityContext = &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"NET_ADMIN"}}}
			},
			want: []string{"container c gains capability NET_ADMIN"},
		},
		"host": {
			change: func(s *corev1.PodSpec) { s.HostNetwork, s.HostPID, s.HostIPC = true, true, true },
			want: []string{
				"pods share a namespace of their node (hostNetwork)",
				"pods share a namespace of their node (hostPID)",
				"pods share a namespace of their node (hostIPC)",
			},
		},
		"host path": {
			change: func(s *corev1.PodSpec) {
				s.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/etc"}}}}
			},
			want: []string{"pods get /etc of their node (hostPath)"},
		},
		"service account": {
			change: func(s *corev1.PodSpec) { s.ServiceAccountName = "admin" },
			want:   []string{"pods run as service account admin instead of default"},
			back:   []string{"pods run as service account default instead of admin"},
		},
		"service account, old name": {
			change: func(s *corev1.PodSpec) { s.DeprecatedServiceAccount = "default" },
		},
		"registry": {
			change: func(s *corev1.PodSpec) { s.Containers[0].Image = "evil.example:5000/web:1" },
			want:   []string{"container c takes its image evil.example:5000/web:1 from registry evil.example:5000, which no container uses now"},
			back:   []string{"container c takes its image quay.io/web:1 from registry quay.io, which no container uses now"},
		},
		"root": {
			change: func(s *corev1.PodSpec) { s.SecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(0))} },
			want:   []string{"container c runs as root (runAsUser 0)"},
		},
		"root in the pod, not in the container": {
			change: func(s *corev1.PodSpec) {
				s.SecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(0))}
				s.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsUser: new(int64(1000))}
			},
		},
		"escalation, which is the default": {
			change: func(s *corev1.PodSpec) {
				s.Containers[0].SecurityContext = &corev1.SecurityContext{AllowPrivilegeEscalation: new(false)}
			},
			back: []string{"container c may gain more privileges than it starts with (allowPrivilegeEscalation)"},
		},
		"escalation of a new container": {
			change: func(s *corev1.PodSpec) {
				s.Containers = append(s.Containers, corev1.Container{
					Name: "d", Image: "quay.io/d", SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(true)},
				})
			},
			want: []string{"container d may gain more privileges than it starts with (allowPrivilegeEscalation)"},
		},
		"proc": {
			change: func(s *corev1.PodSpec) {
				s.Containers[0].SecurityContext = &corev1.SecurityContext{ProcMount: new(corev1.UnmaskedProcMount)}
			},
			want: []string{"container c sees all of /proc (procMount Unmasked)"},
		},
		"secrets": {
			change: func(s *corev1.PodSpec) {
				named := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
				s.Volumes = []corev1.Volume{
					{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "a"}}},
					{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
						{Secret: &corev1.SecretProjection{LocalObjectReference: named("b")}},
					}}}},
				}
				s.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: named("c")}}}
				s.Containers[0].Env = []corev1.EnvVar{{ValueFrom: &corev1.EnvVarSource{
					SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: named("a")},
				}}}
			},
			want: []string{"pods read Secret a", "pods read Secret b", "pods read Secret c"},
		},
		"other tag": {change: func(s *corev1.PodSpec) { s.Containers[0].Image = "quay.io/web:2" }},
	} {
		t.Run(name, func(t *testing.T) {
			now, restored := document(t, plain(nil)), document(t, plain(c.change))
			got, err := AddedPrivileges(now, restored)
			if d := cmp.Diff(c.want, got); err != nil || d != "" {
				t.Errorf("%v %s", err, d)
			}
			got, err = AddedPrivileges(restored, now)
			if d := cmp.Diff(c.back, got); err != nil || d != "" {
				t.Errorf("the other way round: %v %s", err, d)
			}
		})
	}
}

// TestPrivilegesAnywhere: templates are found wherever they are, and told apart by their path.
func TestPrivilegesAnywhere(t *testing.T) {
	now := []byte(`{"spec":{"pools":[{"template":{"spec":{"containers":[{"name":"a","image":"x"}]}}}]}}`)
	then := []byte(`{"spec":{"containers":["no pod"],"pools":[
		{"template":{"spec":{"hostPID":true,"containers":[{"name":"a","image":"x"}]}}},
		{"template":{"spec":{"containers":[{"name":"b","image":"localhost/x"}]}}}]}}`)
	got, err := AddedPrivileges(now, then)
	want := []string{
		"spec.pools[0].template.spec: pods share a namespace of their node (hostPID)",
		"spec.pools[1].template.spec: container b takes its image localhost/x from registry localhost, which no container uses now",
	}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v %s", err, d)
	}
}

// TestPrivilegesBesideAWrongType: what the API server of a kind does not check hides nothing.
func TestPrivilegesBesideAWrongType(t *testing.T) {
	now := []byte(`{"spec":{"containers":[{"name":"a","image":"x"}]}}`)
	for _, odd := range []string{
		`"hostNetwork":"yes"`, `"volumes":{}`, `"volumes":[1]`, `"securityContext":[]`, `"terminationGracePeriodSeconds":"x"`, `"initContainers":7`,
	} {
		then := []byte(`{"spec":{` + odd + `,"hostPID":true,"containers":["no container",
			{"name":"a","image":"x","env":3,"resources":{"limits":{"cpu":"many"}},"securityContext":{"capabilities":"all","privileged":true}}]}}`)
		got, err := AddedPrivileges(now, then)
		want := []string{"pods share a namespace of their node (hostPID)", "container a becomes privileged"}
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Errorf("%s: %v %s", odd, err, d)
		}
	}
}

func document(t *testing.T, spec corev1.PodSpec) []byte {
	t.Helper()
	b, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"spec": spec}}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}
