package check_test

import (
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/proof/internal/catset"
)

// This file does the same for composite parents: a CatSet of three pods, whose revisions say which are their own.

// cats is a store with the CatSet cats, rolled out, of which two pods may be down at once.
type cats struct{ *world }

func newCats(t testing.TB, limits catset.Limits) cats {
	t.Helper()
	set := catset.New(namespace, "cats", limits, 3, "app:1")
	set.SetUID("cats-uid")
	set.SetGeneration(1)
	report(set, 1, 3, true)
	w := cats{worldOf(t,
		set, catRevision(1, "app:1", 0, 1, 2), cat(0, "app:1"), cat(1, "app:1"), cat(2, "app:1"), config("app:1"),
	)}
	return w
}

// report is what a controller says of a CatSet.
func report(set *unstructured.Unstructured, generation, ready int64, updated bool) {
	condition := map[string]any{"type": "Updated", "status": "True", "reason": "OnLatestRevision"}
	if !updated {
		condition = map[string]any{"type": "Updated", "status": "False", "reason": "RolloutProgressing", "message": "updating Pod cats-2"}
	}
	set.Object["status"] = map[string]any{
		"observedGeneration": generation, "replicas": int64(3), "readyReplicas": ready, "conditions": []any{condition},
	}
}

func catOwner() []metav1.OwnerReference {
	return []metav1.OwnerReference{{
		APIVersion: catset.Kind.GroupVersion().String(), Kind: catset.Kind.Kind, Name: "cats", UID: "cats-uid", Controller: new(true),
	}}
}

// catRevision is a revision that says that some pods are its own.
func catRevision(number int64, image string, mine ...int) *unstructured.Unstructured {
	patch := map[string]any{"spec": map[string]any{"template": catset.New(namespace, "cats", "", 3, image).Object["spec"].(map[string]any)["template"]}}
	data, err := json.Marshal(patch)
	if err != nil {
		panic(err)
	}
	sum := sha1.Sum(append([]byte("cats-uid"), data...))
	r := &unstructured.Unstructured{Object: map[string]any{"parentPatch": patch, "fieldPaths": []any{"spec.template"}, "revision": number}}
	r.SetGroupVersionKind(catset.Revisions.GroupVersion().WithKind("ControllerRevision"))
	r.SetNamespace(namespace)
	r.SetName("catsets.check.cairn.dev-" + hex.EncodeToString(sum[:]))
	r.SetUID(types.UID("revision-" + image))
	r.SetOwnerReferences(catOwner())
	own(r, mine...)
	return r
}

func own(r *unstructured.Unstructured, mine ...int) {
	var names []any
	for _, i := range mine {
		names = append(names, fmt.Sprintf("cats-%d", i))
	}
	r.Object["children"] = []any{map[string]any{"apiGroup": "", "kind": "Pod", "names": names}}
}

// answered returns what the hook wants under a name, as a controller writes it.
func answered[T any](image, name string) *T {
	for _, o := range catset.Answer(catset.New(namespace, "cats", "", 5, image)) {
		if o.GetName() != name {
			continue
		}
		applied, err := json.Marshal(o.Object)
		if err != nil {
			panic(err)
		}
		o.SetNamespace(namespace)
		o.SetAnnotations(map[string]string{"metacontroller.k8s.io/last-applied-configuration": string(applied)})
		o.SetOwnerReferences(catOwner())
		o.SetUID(types.UID(fmt.Sprintf("%s-%d", name, incarnation.Add(1))))
		out := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, out); err != nil {
			panic(err)
		}
		return out
	}
	panic("the hook does not want " + name)
}

func cat(i int, image string) *corev1.Pod {
	p := answered[corev1.Pod](image, fmt.Sprintf("cats-%d", i))
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	return p
}

func config(image string) *corev1.ConfigMap { return answered[corev1.ConfigMap](image, "cats-config") }

func (w cats) set(change func(*unstructured.Unstructured)) {
	set := get(w.world, catset.New("", "", "", 0, ""), "cats")
	change(set)
	w.put(set)
}

func (w cats) says(generation, ready int64, updated bool) {
	w.set(func(set *unstructured.Unstructured) { report(set, generation, ready, updated) })
}

// edit is a user who changes the spec.
func (w cats) edit(v any, path ...string) {
	w.as("user", func() {
		w.set(func(set *unstructured.Unstructured) {
			if err := unstructured.SetNestedField(set.Object, v, append([]string{"spec"}, path...)...); err != nil {
				w.Fatal(err)
			}
			set.SetGeneration(set.GetGeneration() + 1)
		})
	})
}

func (w cats) image(image string) {
	w.edit([]any{map[string]any{"name": "main", "image": image}}, "template", "spec", "containers")
}

func (w cats) claims(image string, mine ...int) {
	r := get(w.world, catRevision(1, image), catRevision(1, image).GetName())
	own(r, mine...)
	w.put(r)
}

func (w cats) end(i int) {
	w.as("kubelet", func() { w.remove(&corev1.Pod{}, fmt.Sprintf("cats-%d", i)) })
}

// roll is one pod's way from app:1 to app:2, when the newer revision has it.
func (w cats) roll(i int) {
	w.mark(fmt.Sprintf("cats-%d", i))
	w.end(i)
	w.born(i, "app:2")
}

// born makes a pod, which serves after a while.
func (w cats) born(i int, image string) {
	p := cat(i, image)
	ready := p.Status
	p.Status = corev1.PodStatus{}
	w.put(p)
	w.as("kubelet", func() { w.pod(p.Name, func(p *corev1.Pod) { p.Status = ready }) })
}

// edited is the CatSet after an edit to app:2 that the controller has recorded.
func (w cats) edited() {
	w.image("app:2")
	w.put(catRevision(2, "app:2"))
	w.says(2, 3, false)
}

// again gives an object the UID of what has its name.
func again(w cats, c *corev1.ConfigMap) *corev1.ConfigMap {
	c.UID = get(w.world, &corev1.ConfigMap{}, c.Name).UID
	return c
}
