package scenario

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file is the table of kinds: what they are called, and what an option of create and edit changes. What is not in
// it is written as resource.group (catsets.example.com) and made with apply.

// kind is one kind of object that has a word of its own.
type kind struct {
	word     string
	gvk      schema.GroupVersionKind
	resource string
	cluster  bool
	// base is what create begins with; nil for kinds that only apply and plant can make.
	base func(name string) map[string]any
	// options are the paths that an option sets.
	options map[string]string
}

// group is what faults and watches are about.
func (k kind) group() schema.GroupResource {
	return schema.GroupResource{Group: k.gvk.Group, Resource: k.resource}
}

// The words of the kinds that the verbs know.
const (
	podWord      = "pod"
	revisionWord = "revision"
)

// imagePaths are where kinds without options have their image. A revision is that of a parent with a pod template.
var imagePaths = map[string]string{
	podWord:      "spec.containers[0].image",
	revisionWord: "data.spec.template.spec.containers[0].image",
}

var kinds = []kind{
	{
		word: "daemonset", gvk: appsv1.SchemeGroupVersion.WithKind("DaemonSet"), resource: "daemonsets", base: workload,
		options: templated(map[string]string{
			"maxUnavailable": "spec.updateStrategy.rollingUpdate.maxUnavailable",
			"maxSurge":       "spec.updateStrategy.rollingUpdate.maxSurge",
			"strategy":       "spec.updateStrategy.type",
		}),
	},
	{
		word: "statefulset", gvk: appsv1.SchemeGroupVersion.WithKind("StatefulSet"), resource: "statefulsets", base: workload,
		options: templated(map[string]string{
			"replicas":       "spec.replicas",
			"partition":      "spec.updateStrategy.rollingUpdate.partition",
			"maxUnavailable": "spec.updateStrategy.rollingUpdate.maxUnavailable",
			"strategy":       "spec.updateStrategy.type",
			"podManagement":  "spec.podManagementPolicy",
		}),
	},
	{
		word: "replicaset", gvk: appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), resource: "replicasets", base: workload,
		options: templated(map[string]string{"replicas": "spec.replicas"}),
	},
	{
		word: "replicationcontroller", gvk: corev1.SchemeGroupVersion.WithKind("ReplicationController"),
		resource: "replicationcontrollers", base: replicationController,
		options: templated(map[string]string{"replicas": "spec.replicas"}),
	},
	{word: revisionWord, gvk: appsv1.SchemeGroupVersion.WithKind("ControllerRevision"), resource: "controllerrevisions"},
	{word: podWord, gvk: corev1.SchemeGroupVersion.WithKind("Pod"), resource: "pods"},
	{word: "pvc", gvk: corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), resource: "persistentvolumeclaims"},
	{word: "configmap", gvk: corev1.SchemeGroupVersion.WithKind("ConfigMap"), resource: "configmaps", base: object},
	{word: "quota", gvk: corev1.SchemeGroupVersion.WithKind("ResourceQuota"), resource: "resourcequotas", base: object},
	{word: "node", gvk: corev1.SchemeGroupVersion.WithKind("Node"), resource: "nodes", cluster: true},
}

// templated are the options of every kind that has a pod template, and some more.
func templated(more map[string]string) map[string]string {
	out := map[string]string{
		"image":           "spec.template.spec.containers[0].image",
		"minReadySeconds": "spec.minReadySeconds",
		"historyLimit":    "spec.revisionHistoryLimit",
		"readyAfter":      "spec.template.metadata.annotations[sandbox.cairn.dev/ready-after]",
	}
	maps.Copy(out, more)
	return out
}

func object(name string) map[string]any {
	return map[string]any{"metadata": map[string]any{"name": name}}
}

// workload has one container and selects by the label app, which is its name.
func workload(name string) map[string]any {
	labels := map[string]any{"app": name}
	o := object(name)
	o["spec"] = map[string]any{
		"selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{
			"metadata": map[string]any{"labels": maps.Clone(labels)},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "main", "image": "app:1"}}},
		},
	}
	return o
}

func replicationController(name string) map[string]any {
	o := workload(name)
	if spec, ok := o["spec"].(map[string]any); ok {
		spec["selector"] = map[string]any{"app": name}
	}
	return o
}

// kindNamed finds a kind by its word, in the singular or plural. Others are resource.group.
func kindNamed(word string) (kind, bool) {
	for _, k := range kinds {
		if word == k.word || word == k.word+"s" {
			return k, true
		}
	}
	if resource, group, ok := strings.Cut(word, "."); ok && resource != "" && group != "" {
		return kind{word: word, gvk: schema.GroupVersionKind{Group: group}, resource: resource}, true
	}
	return kind{}, false
}

// kindOf reads a kind.
func (r *reader) kind() kind {
	word := r.word("a kind")
	k, ok := kindNamed(word)
	if !ok {
		r.failf("%q is no kind; there are: %s, and resource.group for others", word, strings.Join(kindWords(), ", "))
	}
	return k
}

func kindWords() []string {
	var out []string
	for _, k := range kinds {
		out = append(out, k.word)
	}
	return out
}

// full completes a kind that is known by its resource only.
func (k kind) full(mapper meta.RESTMapper) (kind, error) {
	if k.gvk.Kind != "" {
		return k, nil
	}
	gvk, err := mapper.KindFor(k.group().WithVersion(""))
	if err != nil {
		return k, fmt.Errorf("find the kind of %s: %w", k.word, err)
	}
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return k, fmt.Errorf("find the resource of %s: %w", k.word, err)
	}
	k.gvk, k.cluster = gvk, mapping.Scope.Name() == meta.RESTScopeNameRoot
	return k, nil
}

// known reports whether create and edit can read these options.
func (k kind) known(options map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(options)) {
		if _, ok := k.options[key]; !ok && !strings.ContainsAny(key, ".[") {
			return fmt.Errorf("a %s has no option %s; there are: %s, and any path with a dot, like spec.replicas", k.word, key,
				strings.Join(slices.Sorted(maps.Keys(k.options)), ", "))
		}
	}
	return nil
}

// set changes an object as options say, in the order of their keys.
func (k kind) set(o map[string]any, options map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(options)) {
		path, ok := k.options[key]
		if !ok {
			path = key
		}
		if err := setPath(o, path, valueOf(options[key])); err != nil {
			return fmt.Errorf("set %s: %w", key, err)
		}
	}
	return nil
}

// valueOf reads a value as JSON if it is that, and as a string otherwise. A single - is nothing: the field goes.
func valueOf(text string) any {
	if text == "-" {
		return nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	var value any
	if json.Unmarshal([]byte(text), &value) == nil {
		return value
	}
	return text
}

// typed turns a tree into an object: of its Go type if the scheme has one.
func typed(scheme *runtime.Scheme, gvk schema.GroupVersionKind, tree map[string]any) (client.Object, error) {
	o, err := empty(scheme, gvk)
	if err != nil {
		return nil, err
	}
	if u, ok := o.(*unstructured.Unstructured); ok {
		u.Object = tree
		u.SetGroupVersionKind(gvk)
		return u, nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(tree, o); err != nil {
		return nil, fmt.Errorf("read a %s: %w", gvk.Kind, err)
	}
	return o, nil
}

// empty returns a new object of a kind.
func empty(scheme *runtime.Scheme, gvk schema.GroupVersionKind) (client.Object, error) {
	if scheme.Recognizes(gvk) {
		made, err := scheme.New(gvk)
		if o, ok := made.(client.Object); ok || err != nil {
			return o, err
		}
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u, nil
}

// treeOf is an object as a tree.
func treeOf(o client.Object) (map[string]any, error) {
	if u, ok := o.(*unstructured.Unstructured); ok {
		return u.DeepCopy().Object, nil
	}
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("read %T %s: %w", o, o.GetName(), err)
	}
	return tree, nil
}
