package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/proof/sim/model"
)

// This file is admission that changes what the managers write: webhooks and policies that add to pods, take from them
// or put something else there, and the same for the other children of parents that a hook describes.

// injection is what is put into children.
type injection struct {
	name string
	// takes is true for what takes something away by which a controller knows a child again: it may stop, but not go on
	// for ever.
	takes bool
	pod   func(*corev1.Pod)
	// config is for ConfigMaps, nil if they stay as they are.
	config func(data map[string]any)
}

const noOwner = "no owner"

var injections = []injection{
	{name: "a label and an annotation", pod: func(pod *corev1.Pod) {
		client.Object(pod).SetLabels(with(pod.Labels, "injected", "yes"))
		pod.Annotations = with(pod.Annotations, "injected.example.com/status", "injected")
	}},
	{name: "a sidecar with a volume", pod: func(pod *corev1.Pod) {
		if slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == "injected" }) {
			return // a copy of a child has it already
		}
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
			Name: "injected", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
		})
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: "proxy", Image: "proxy:1", VolumeMounts: []corev1.VolumeMount{{Name: "injected", MountPath: "/injected"}},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}},
		})
	}},
	{name: "other names of claims", pod: func(pod *corev1.Pod) {
		for n := range pod.Spec.Volumes {
			if claim := pod.Spec.Volumes[n].PersistentVolumeClaim; claim != nil {
				claim.ClaimName = "other-" + claim.ClaimName
			}
		}
	}},
	{name: "a toleration", pod: func(pod *corev1.Pod) {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: "injected", Operator: corev1.TolerationOpExists})
	}},
	{name: "a node selector", pod: func(pod *corev1.Pod) { pod.Spec.NodeSelector = with(pod.Spec.NodeSelector, "injected", "yes") }},
	{name: "no hash", takes: true, pod: func(pod *corev1.Pod) {
		delete(pod.Labels, appsv1.ControllerRevisionHashLabelKey)
		delete(pod.Labels, history.TemplateGenerationLabel)
	}},
	{name: "another hash", takes: true, pod: func(pod *corev1.Pod) {
		if _, ok := pod.Labels[appsv1.ControllerRevisionHashLabelKey]; ok {
			pod.Labels[appsv1.ControllerRevisionHashLabelKey] = "theirs"
		}
	}},
	{name: "no label of the selector", takes: true, pod: func(pod *corev1.Pod) { delete(pod.Labels, "app") }},
	{name: noOwner, takes: true, pod: func(pod *corev1.Pod) { pod.OwnerReferences = nil }},
	{name: "no hash in one place", takes: true, pod: func(pod *corev1.Pod) {
		if strings.HasSuffix(pod.Name, "-1") || pod.Spec.Affinity != nil && strings.Contains(pod.Spec.Affinity.String(), "node-1") {
			delete(pod.Labels, appsv1.ControllerRevisionHashLabelKey)
			delete(pod.Labels, history.TemplateGenerationLabel)
		}
	}},
	{name: "no affinity", takes: true, pod: func(pod *corev1.Pod) { pod.Spec.Affinity = nil }},
	{name: "no claims", takes: true, pod: func(pod *corev1.Pod) {
		pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil })
	}},
	{name: "more data", config: func(data map[string]any) { data["injected"] = "yes" }},
}

func with(in map[string]string, key, value string) map[string]string {
	out := map[string]string{key: value}
	maps.Copy(out, in)
	return out
}

func (t *trouble) makeInjection(w *world) bool {
	i := &injections[t.chance.IntN(len(injections))]
	// Children of hosted controllers are known by their owner alone, and what admission makes of one is how it is to be.
	// Orphans of two kinds with the same selector are adopted by either, as with the built-in controllers.
	if w.hosts() && i.takes || !w.hosts() && i.pod == nil || i.name == noOwner && len(w.kinds) > 1 {
		return false
	}
	t.inject = i
	t.aboutf("admission gives children %s", i.name)
	return true
}

// injects changes a request as admission does.
func (w *world) injects(c *call) {
	i := w.troubled().inject
	r := c.request
	if i == nil || !c.writes() || r.Object == nil || r.Subresource != "" {
		return
	}
	if c.sent == nil { // a late one was changed before
		c.sent = deepCopy(r.Object)
	}
	switch o := r.Object.(type) {
	case *corev1.Pod:
		if i.pod != nil && r.Verb == model.VerbCreate {
			i.pod(o)
		}
	case *unstructured.Unstructured:
		w.injectsLoose(i, r, o)
	default:
	}
}

func (w *world) injectsLoose(i *injection, r model.Request, o *unstructured.Unstructured) {
	switch {
	case r.Resource == pods && i.pod != nil && r.Verb == model.VerbCreate:
		pod := &corev1.Pod{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, pod); err != nil {
			panic(fmt.Sprintf("sim: a pod: %v", err)) // somebody made one of it
		}
		i.pod(pod)
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
		if err != nil {
			panic(fmt.Sprintf("sim: a pod: %v", err))
		}
		kind := o.GroupVersionKind()
		o.Object = content
		o.SetGroupVersionKind(kind)
	case r.Resource == configMaps && i.config != nil:
		data, _, _ := unstructured.NestedMap(o.Object, "data")
		if data == nil {
			data = map[string]any{}
		}
		i.config(data)
		setField(o, data, "data")
	}
}
