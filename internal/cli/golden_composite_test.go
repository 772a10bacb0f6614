package cli_test

import (
	"crypto/sha1"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/inspect"
)

// This file is the world with parents of CompositeControllers: in the middle of a rollout, with all of spec recorded,
// in no namespace, with revisions of Metacontroller, and with two controllers. Names and contents are as a controller
// makes them.

var pets = schema.GroupVersion{Group: "pets.example.com", Version: "v1"}

func scheme() *runtime.Scheme {
	out := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(out), v1alpha1.AddToScheme(out)); err != nil {
		panic(err)
	}
	return out
}

func mapper() meta.RESTMapper {
	out := meta.NewDefaultRESTMapper([]schema.GroupVersion{pets, corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion})
	for _, kind := range []string{"CatSet", "Dog", "Bird"} {
		out.Add(pets.WithKind(kind), meta.RESTScopeNamespace)
	}
	out.Add(pets.WithKind("Zoo"), meta.RESTScopeRoot)
	for _, kind := range []string{"Pod", "ConfigMap", "Service", "ReplicationController"} {
		out.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	for _, kind := range []string{"DaemonSet", "StatefulSet", "Deployment", "ReplicaSet"} {
		out.Add(appsv1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	return out
}

func parentOf(kind, manifest string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	read(manifest, &o.Object)
	o.SetGroupVersionKind(pets.WithKind(kind))
	return o
}

func read(manifest string, into any) {
	if err := yaml.Unmarshal([]byte(manifest), into); err != nil {
		panic(err)
	}
}

// controller returns a CompositeController of parents of that resource.
func controller(name, resource, more string) *v1alpha1.CompositeController {
	out := &v1alpha1.CompositeController{ObjectMeta: metav1.ObjectMeta{Name: name}}
	read(more, &out.Spec)
	out.Spec.ParentResource.APIVersion, out.Spec.ParentResource.Resource = pets.String(), resource
	return out
}

// recorded returns a revision of parent that holds patch, under the name that a controller gives it. Without a number
// it is one of Metacontroller, which has no paths either.
func recorded(parent client.Object, resource string, number int64, patch string, paths []string, pods ...string) *v1alpha1.ControllerRevision {
	json, err := yaml.YAMLToJSON([]byte(patch))
	if err != nil {
		panic(err)
	}
	namespace := parent.GetNamespace()
	if namespace == "" {
		namespace = "shop"
	}
	name := fmt.Sprintf("%s.%s-%x", resource, pets.Group, sha1.Sum(append([]byte(parent.GetUID()), json...)))
	out := &v1alpha1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID(name),
			CreationTimestamp: metav1.NewTime(now.Add(-time.Duration(10-number) * 7 * time.Hour)),
			OwnerReferences:   []metav1.OwnerReference{*metav1.NewControllerRef(parent, parent.GetObjectKind().GroupVersionKind())},
		},
		ParentPatch: runtime.RawExtension{Raw: json}, FieldPaths: paths, Revision: number,
	}
	if len(pods) > 0 {
		out.Children = []v1alpha1.ControllerRevisionChildren{{Kind: "Pod", Names: pods}}
	}
	return out
}

// cat returns a pod of parent with that condition Ready.
func cat(parent client.Object, namespace, name string, ready corev1.ConditionStatus) *corev1.Pod {
	out := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{"app": parent.GetName()},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(parent, parent.GetObjectKind().GroupVersionKind())},
	}}
	condition := corev1.PodCondition{Type: corev1.PodReady, Status: ready}
	if ready == corev1.ConditionFalse {
		condition.Reason, condition.Message = "ContainersNotReady", "containers with unready status: [cat]"
	}
	out.Status.Conditions = []corev1.PodCondition{condition}
	return out
}

const rollingPods = `
childResources:
- {apiVersion: v1, resource: pods, updateStrategy: {method: RollingRecreate, statusChecks: {conditions: [{type: Ready, status: "True"}]}}}
- {apiVersion: v1, resource: configmaps, updateStrategy: {method: InPlace}}
`

// composites returns one parent of each sort.
func composites() []client.Object {
	kennel := controller("kennel", "dogs", `
childResources:
- {apiVersion: v1, resource: pods, updateStrategy: {method: RollingRecreate, partition: 2}}
- {apiVersion: v1, resource: services, updateStrategy: {method: RollingInPlace, paused: true}}
- {apiVersion: example.com/v1, resource: bones}
`)
	kennel.Status.Conditions = []metav1.Condition{{
		Type: "Ready", Status: metav1.ConditionFalse, Reason: "ResourceNotServed", Message: "no resource bones in example.com/v1",
	}}
	out := []client.Object{
		controller("catset", "catsets", "parentResource: {revisionHistory: {fieldPaths: [spec.template]}}"+rollingPods),
		controller("zoo", "zoos", "parentResource: {revisionHistory: {fieldPaths: [spec.text], namespace: shop}}"+rollingPods),
		controller("aviary", "birds", "parentResource: {labelSelector: {matchLabels: {kept: inside}}}"+rollingPods),
		controller("dovecote", "birds", "parentResource: {labelSelector: {matchLabels: {kept: outside}}}"+rollingPods),
		controller("nest", "birds", "{}"), kennel,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "plain"}},
	}
	for _, world := range [][]client.Object{nap(), lull(), rex(), west(), tweety()} {
		out = append(out, world...)
	}
	return out
}

// nap is in the middle of a rollout. A field was added to its template since revision 2, and Pod nap-1 is in two
// revisions, as after a move that was cut off.
func nap() []client.Object {
	parent := parentOf("CatSet", `
metadata: {namespace: shop, name: nap, uid: 9a2b, generation: 4, resourceVersion: "7", annotations: {kubernetes.io/change-cause: more milk}}
spec: {replicas: 4, selector: {matchLabels: {app: nap}}, template: {text: "3", milk: true}}
status:
  observedGeneration: 4
  conditions:
  - type: Updated
    status: "False"
    reason: RolloutWaiting
    message: 'child Pod nap-1 failed status check: "Ready" condition status is "False" (want "True")'
`)
	paths := []string{"spec.template"}
	going := cat(parent, "shop", "nap-2", corev1.ConditionTrue)
	going.DeletionTimestamp, going.Finalizers = new(metav1.NewTime(now)), []string{"example.com/wait"}
	settings := &corev1.ConfigMap{ObjectMeta: cat(parent, "shop", "nap-settings", "").ObjectMeta}
	second := recorded(parent, "catsets", 2, "spec: {template: {text: '2'}}", paths, "nap-2", "nap-3", "nap-1")
	second.Annotations = map[string]string{inspect.ChangeCauseAnnotation: "tuna"}
	return []client.Object{
		parent, going, settings, second,
		recorded(parent, "catsets", 1, "spec: {template: {text: '1'}}", paths),
		recorded(parent, "catsets", 3, "spec: {template: {text: '3', milk: true}}", paths, "nap-1", "nap-0"),
		cat(parent, "shop", "nap-0", corev1.ConditionTrue), cat(parent, "shop", "nap-1", corev1.ConditionFalse),
	}
}

// lull was run by Metacontroller until now.
func lull() []client.Object {
	parent := parentOf("CatSet", `
metadata: {namespace: shop, name: lull, uid: 51ed, generation: 2, resourceVersion: "7"}
spec: {replicas: 2, selector: {matchLabels: {app: lull}}, template: {text: "2"}}
`)
	return []client.Object{
		parent, cat(parent, "shop", "lull-0", corev1.ConditionTrue), cat(parent, "shop", "lull-1", corev1.ConditionTrue),
		recorded(parent, "catsets", 0, "spec: {template: {text: '0'}}", nil),
		recorded(parent, "catsets", 0, "spec: {template: {text: '1'}}", nil, "lull-1"),
		recorded(parent, "catsets", 0, "spec: {template: {text: '2'}}", nil, "lull-0"),
	}
}

// rex has all of its spec recorded, the scale too, a revision from when it was less, one that nobody can read, and one
// that somebody planted. Its controller does not run.
func rex() []client.Object {
	parent := parentOf("Dog", `
metadata: {namespace: shop, name: rex, uid: "33", generation: 5, resourceVersion: "7"}
spec: {replicas: 5, selector: {matchLabels: {app: rex}}, text: "2"}
`)
	selector := "selector: {matchLabels: {app: rex}}"
	planted := recorded(parent, "dogs", 1, "spec: {text: '2', selector: {matchLabels: {app: web}}}", []string{"spec"})
	planted.Name = "dogs.pets.example.com-planted"
	return []client.Object{
		parent, planted,
		recorded(parent, "dogs", 2, "spec: {text: '1'}", []string{"spec.text"}),
		recorded(parent, "dogs", 3, "spec: {replicas: 3, text: '2', "+selector+"}", []string{"spec"}),
		recorded(parent, "dogs", 4, "status: {}", []string{"status"}),
		recorded(parent, "dogs", 5, "spec: {replicas: 5, text: '2', "+selector+"}", []string{"spec"}),
	}
}

// west is in no namespace, and its children are in some.
func west() []client.Object {
	parent := parentOf("Zoo", `
metadata: {name: west, uid: "77", generation: 2, resourceVersion: "7"}
spec: {selector: {matchLabels: {app: west}}, text: "2"}
status: {observedGeneration: 1, conditions: [{type: Updated, status: "True", reason: OnLatestRevision, message: done}]}
`)
	return []client.Object{
		parent, cat(parent, "lions", "a", corev1.ConditionTrue), cat(parent, "apes", "a", corev1.ConditionTrue),
		recorded(parent, "zoos", 1, "spec: {text: '1'}", []string{"spec.text"}, "lions/a"),
		recorded(parent, "zoos", 2, "spec: {text: '2'}", []string{"spec.text"}, "apes/a", "apes/b"),
	}
}

// tweety has controllers that could both keep its history.
func tweety() []client.Object {
	parent := parentOf("Bird", `
metadata: {namespace: shop, name: tweety, uid: "88", generation: 2, resourceVersion: "7", labels: {kept: inside}}
spec: {selector: {matchLabels: {app: tweety}}}
`)
	return []client.Object{parent, recorded(parent, "birds", 1, "spec: {}", []string{"spec"})}
}
