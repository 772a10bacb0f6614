package revision_test

// Generators: small pod templates from few values, so that equal ones and nearly equal ones come up often; other
// spellings of the same template; other spellings of the same JSON.

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"
)

// quantities holds one row for each value: all its spellings.
var quantities = [][]string{
	{"1", "1000m", "1e0", "1.0", "1000000u"},
	{"1Gi", "1024Mi", "1073741824", "1073741824000m"},
	{"1G", "1000M", "1e9", "1E9"},
	{"0", "0Mi", "0m"},
	{"500m", "0.5"},
}

// templates generates pod templates of which each part may be missing.
func templates() *rapid.Generator[corev1.PodTemplateSpec] {
	return rapid.Custom(func(t *rapid.T) corev1.PodTemplateSpec {
		root, high := int64(0), int64(1)<<31
		return corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{
				Labels:      rapid.SampledFrom([]map[string]string{nil, {"app": "a"}, {"app": "b"}}).Draw(t, "labels"),
				Annotations: rapid.SampledFrom([]map[string]string{nil, {"note": "<x>"}, {"note": "&"}}).Draw(t, "annotations"),
			},
			Spec: corev1.PodSpec{
				Containers:                    rapid.SliceOfN(containers(), 0, 2).Draw(t, "containers"),
				Volumes:                       rapid.SliceOfN(volumes(), 0, 2).Draw(t, "volumes"),
				TerminationGracePeriodSeconds: rapid.Ptr(rapid.SampledFrom([]int64{0, 30}), true).Draw(t, "grace"),
				HostNetwork:                   rapid.Bool().Draw(t, "hostNetwork"),
				SecurityContext: rapid.SampledFrom([]*corev1.PodSecurityContext{
					nil, {}, {RunAsUser: &root}, {RunAsUser: &high},
				}).Draw(t, "securityContext"),
			},
		}
	})
}

func containers() *rapid.Generator[corev1.Container] {
	return rapid.Custom(func(t *rapid.T) corev1.Container {
		c := corev1.Container{
			Name:    rapid.SampledFrom([]string{"one", "two"}).Draw(t, "name"),
			Image:   rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "image"),
			Command: rapid.SliceOfN(rapid.SampledFrom([]string{"", "run"}), 0, 2).Draw(t, "command"),
		}
		if rapid.Bool().Draw(t, "limited") {
			c.Resources.Limits = corev1.ResourceList{"cpu": quantity(t), "memory": quantity(t)}
		}
		if rapid.Bool().Draw(t, "probed") {
			port := rapid.SampledFrom([]intstr.IntOrString{intstr.FromInt32(80), intstr.FromString("80")}).Draw(t, "port")
			c.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: port}}}
		}
		if len(c.Command) == 0 {
			c.Command = nil
		}
		return c
	})
}

func volumes() *rapid.Generator[corev1.Volume] {
	return rapid.Custom(func(t *rapid.T) corev1.Volume {
		v := corev1.Volume{Name: rapid.SampledFrom([]string{"v", "w"}).Draw(t, "name")}
		switch rapid.IntRange(0, 2).Draw(t, "source") {
		case 0:
		case 1:
			v.EmptyDir = &corev1.EmptyDirVolumeSource{}
		default:
			limit := quantity(t)
			v.EmptyDir = &corev1.EmptyDirVolumeSource{SizeLimit: &limit}
		}
		return v
	})
}

func quantity(t *rapid.T) resource.Quantity {
	row := rapid.SampledFrom(quantities).Draw(t, "quantity")
	return resource.MustParse(rapid.SampledFrom(row).Draw(t, "spelling"))
}

// respelled returns a copy of template that means the same: lists and maps that are nil become empty or stay, and
// quantities are written in another way.
func respelled(t *rapid.T, template *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	out := template.DeepCopy()
	flip := func(what string) bool { return rapid.Bool().Draw(t, "empty "+what) }
	if out.Labels == nil && flip("labels") {
		out.Labels = map[string]string{}
	}
	if out.Spec.NodeSelector == nil && flip("nodeSelector") {
		out.Spec.NodeSelector = map[string]string{}
	}
	if len(out.Spec.Volumes) == 0 && flip("volumes") {
		out.Spec.Volumes = []corev1.Volume{}
	}
	if len(out.Spec.Containers) == 0 && flip("containers") {
		out.Spec.Containers = nil
	}
	for i := range out.Spec.Containers {
		c := &out.Spec.Containers[i]
		if c.Env == nil && flip("env") {
			c.Env = []corev1.EnvVar{}
		}
		if c.Resources.Requests == nil && flip("requests") {
			c.Resources.Requests = corev1.ResourceList{}
		}
		for _, name := range slices.Sorted(maps.Keys(c.Resources.Limits)) {
			c.Resources.Limits[name] = respelledQuantity(t, c.Resources.Limits[name])
		}
	}
	for i := range out.Spec.Volumes {
		if dir := out.Spec.Volumes[i].EmptyDir; dir != nil && dir.SizeLimit != nil {
			q := respelledQuantity(t, *dir.SizeLimit)
			dir.SizeLimit = &q
		}
	}
	return out
}

func respelledQuantity(t *rapid.T, q resource.Quantity) resource.Quantity {
	i := slices.IndexFunc(quantities, func(row []string) bool { r := resource.MustParse(row[0]); return r.Cmp(q) == 0 })
	return resource.MustParse(rapid.SampledFrom(quantities[i]).Draw(t, "other spelling"))
}

// respelledJSON writes decoded JSON in another way that means the same to an API server: keys in any order, white
// space, whole numbers with fraction or exponent, creationTimestamp null.
func respelledJSON(t *rapid.T, v any) string {
	space := rapid.SampledFrom([]string{"", " ", "\n\t"}).Draw(t, "space")
	switch v := v.(type) {
	case map[string]any:
		var fields []string
		for _, key := range slices.Sorted(maps.Keys(v)) { // sorted, because a run must be repeatable from its seed
			fields = append(fields, string(encode(t, key))+":"+respelledJSON(t, v[key]))
		}
		if _, ok := v["creationTimestamp"]; !ok && rapid.IntRange(0, 3).Draw(t, "timestamp") == 0 {
			fields = append(fields, `"creationTimestamp":null`)
		}
		return "{" + space + strings.Join(rapid.Permutation(fields).Draw(t, "order"), ","+space) + "}"
	case []any:
		var items []string
		for _, item := range v {
			items = append(items, respelledJSON(t, item))
		}
		return "[" + strings.Join(items, ","+space) + space + "]"
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") || len(v) > 15 {
			return v.String()
		}
		tails := []string{"", ".0", "e0"}
		if v != "0" {
			tails = append(tails, "0e-1", "00.0E-2")
		}
		return v.String() + rapid.SampledFrom(tails).Draw(t, "number")
	default:
		return string(encode(t, v)) + space
	}
}
