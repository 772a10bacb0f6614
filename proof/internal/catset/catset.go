// Package catset is a composite parent for checks: its custom resource, its CompositeControllers, what their hook
// answers, and what the rules of package check must know about it.
//
// The hook wants pods name-0, name-1, ... from the template, the last one first, and a ConfigMap that tells the image.
// The answer follows from the parent alone, so that the rules can work it out themselves; the status counts pods. The
// template belongs to revisions. The number of pods does not, nor does spec.note, which is in every pod as an
// annotation: to change it replaces every pod without a new revision. With the same spec.prefix, two CatSets want pods
// of the same names.
//
// What may not come in: a server (package fault has one), and anything that is not said of a CatSet.
package catset

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history/metacontroller"
	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/check/parents"
)

// The resources of CatSets and of their children.
var (
	Kind       = schema.GroupVersionKind{Group: "check.cairn.dev", Version: "v1", Kind: "CatSet"}
	Resource   = schema.GroupVersionResource{Group: Kind.Group, Version: Kind.Version, Resource: "catsets"}
	Revisions  = schema.GroupVersionResource{Group: "metacontroller.k8s.io", Version: "v1alpha1", Resource: "controllerrevisions"}
	pods       = corev1.SchemeGroupVersion.WithResource("pods")
	configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")
)

// Limit is how many revisions are kept that no child belongs to.
const Limit = 3

// New returns a CatSet that a controller with these limits runs. It selects its children by its name.
func New(namespace, name string, limits Limits, replicas int64, image string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": Kind.GroupVersion().String(), "kind": Kind.Kind,
		"metadata": map[string]any{"namespace": namespace, "name": name, "labels": map[string]any{limitsLabel: string(limits)}},
		"spec": map[string]any{
			"replicas": replicas,
			"selector": map[string]any{"matchLabels": map[string]any{"app": name}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": name}},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "main", "image": image}}},
			},
		},
	}}
}

// Answer is what the hook wants of a CatSet.
func Answer(parent *unstructured.Unstructured) []*unstructured.Unstructured {
	replicas, _, _ := unstructured.NestedInt64(parent.Object, "spec", "replicas")
	out := make([]*unstructured.Unstructured, 0, replicas+1)
	for i := replicas - 1; i >= 0; i-- {
		out = append(out, podOf(parent, i))
	}
	return append(out, configOf(parent))
}

func podOf(parent *unstructured.Unstructured, i int64) *unstructured.Unstructured {
	name := fmt.Sprintf("%s-%d", prefixOf(parent), i)
	meta, spec := labelled(parent, name, ""), map[string]any{"hostname": name}
	annotations, _, _ := unstructured.NestedMap(parent.Object, "spec", "template", "metadata", "annotations")
	if note, ok, _ := unstructured.NestedString(parent.Object, "spec", "note"); ok {
		if annotations == nil {
			annotations = map[string]any{}
		}
		annotations["check.cairn.dev/note"] = note
	}
	if len(annotations) > 0 {
		meta["annotations"] = annotations
	}
	own, _, _ := unstructured.NestedMap(parent.Object, "spec", "template", "spec")
	maps.Copy(spec, own)
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}}
}

func prefixOf(parent *unstructured.Unstructured) string {
	if prefix, ok, _ := unstructured.NestedString(parent.Object, "spec", "prefix"); ok {
		return prefix
	}
	return parent.GetName()
}

func configOf(parent *unstructured.Unstructured) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": labelled(parent, parent.GetName()+"-config", "-config"),
		"data": map[string]any{"image": Image(parent)},
	}}
}

// labelled is the metadata of a child of that name, with the labels of the template. What belongs to a parent in no
// namespace is in its home, or in the one with that suffix.
func labelled(parent *unstructured.Unstructured, name, suffix string) map[string]any {
	labels, _, _ := unstructured.NestedMap(parent.Object, "spec", "template", "metadata", "labels")
	meta := map[string]any{"name": name}
	if home, ok, _ := unstructured.NestedString(parent.Object, "spec", "home"); ok {
		meta["namespace"] = home + suffix
	}
	if len(labels) > 0 {
		meta["labels"] = labels
	}
	return meta
}

// Image is what a parent, or a revision's parentPatch put into one, asks for.
func Image(parent *unstructured.Unstructured) string {
	containers, _, _ := unstructured.NestedSlice(parent.Object, "spec", "template", "spec", "containers")
	for _, c := range containers {
		if c, ok := c.(map[string]any); ok {
			image, _ := c["image"].(string)
			return image
		}
	}
	return ""
}

// Status is what the hook says of the pods that there are.
func Status(pods []client.Object) map[string]any {
	ready := int64(0)
	for _, pod := range pods {
		if Ready(pod) {
			ready++
		}
	}
	return map[string]any{"replicas": int64(len(pods)), "readyReplicas": ready}
}

// stepsLabel makes the hook go by what it has said: its status has a step that is one more than the stored one, up to
// the last.
const (
	stepsLabel       = "check.cairn.dev/steps"
	lastStep   int64 = 3
)

// Stepped returns a CatSet whose hook goes by the status that it gave before.
func Stepped(parent *unstructured.Unstructured) *unstructured.Unstructured {
	labels := parent.GetLabels()
	labels[stepsLabel] = "yes"
	parent.SetLabels(labels)
	return parent
}

func stepped(parent client.Object) bool { return parent.GetLabels()[stepsLabel] != "" }

// nextStep is the step after the one that is stored.
func nextStep(parent *unstructured.Unstructured) int64 {
	at, _, _ := unstructured.NestedInt64(parent.Object, "status", "step")
	return min(at+1, lastStep)
}

// Ready reports whether a pod is, typed or not.
func Ready(child client.Object) bool {
	if pod, ok := child.(*corev1.Pod); ok {
		return podutil.IsPodReady(pod)
	}
	u, ok := child.(*unstructured.Unstructured)
	if !ok {
		return false
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "Ready" {
			return c["status"] == "True"
		}
	}
	return false
}

// serves reports whether a pod passes its checks: it is ready, and that is said of its spec as it is.
func serves(child client.Object) bool {
	pod, ok := child.(*corev1.Pod)
	return Ready(child) && (!ok || pod.Status.ObservedGeneration == 0 || pod.Status.ObservedGeneration >= pod.Generation)
}

// wanted is what a CatSet's children are to be: what the hook wants, and the label by which they are selected.
func wanted(parent *unstructured.Unstructured) []*unstructured.Unstructured {
	out := Answer(parent)
	if LimitsOf(parent) == Generated {
		for _, child := range out {
			// labels are a map if there are any: labelled made them
			_ = unstructured.SetNestedField(child.Object, string(parent.GetUID()), "metadata", "labels", metacontroller.UIDLabel)
		}
	}
	return out
}

// Kinds tell the rules what a CatSet is, once for each resource of its children.
func Kinds() []check.Kind { return kinds(Kind, Resource) }

func kinds(parent schema.GroupVersionKind, resource schema.GroupVersionResource) []check.Kind {
	all := composites(parent, resource)
	out := make([]check.Kind, len(all))
	for i := range all {
		out[i] = all[i].Kind()
	}
	return out
}

// Resources are those that the rules for CatSets read.
func Resources() []check.Scope {
	return []check.Scope{{Resource: Resource}, {Resource: pods}, {Resource: configMaps}, {Resource: Revisions}}
}

func composites(parent schema.GroupVersionKind, resource schema.GroupVersionResource) []parents.Composite {
	told := parents.Composite{
		Parent: parent, Parents: resource, Cluster: parent == ClusterKind, Answer: wanted,
		Child: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Children: configMaps,
	}
	rolled := told
	rolled.Child, rolled.Children = corev1.SchemeGroupVersion.WithKind("Pod"), pods
	rolled.Rolled, rolled.FieldPaths, rolled.Limit, rolled.Serves = true, []string{"spec.template"}, Limit, serves
	rolled.Status = func(parent *unstructured.Unstructured, pods []client.Object) map[string]any {
		out := Status(pods)
		if stepped(parent) {
			out["step"] = lastStep
		}
		return out
	}
	rolled.Budget = func(parent client.Object, _ int) int { return limitsOf(parent).maxUnavailable }
	rolled.Partition = func(parent client.Object) int { return limitsOf(parent).partition }
	return []parents.Composite{rolled, told}
}
