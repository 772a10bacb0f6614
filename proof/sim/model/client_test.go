package model_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/sim/model"
	"github.com/cairn-dev/cairn/sandbox/sandboxtest"
)

// TestTheClientIsLikeTheRealOne does the same with a client of the model and one of the real API server, and compares
// what the callers see.
func TestTheClientIsLikeTheRealOne(t *testing.T) {
	s := sandboxtest.Get(t)
	namespace := sandboxtest.Namespace(t, s)
	installDefinitions(t, s.Config())
	genuine, err := client.New(s.Config(), client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	want := transcript(t, genuine, namespace)
	got := transcript(t, modelClient(t), namespace)
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("line %d:\nmodel: %v\nserver: %v", i, got[min(i, len(got)):], want[min(i, len(want)):])
		}
	}
}

func modelClient(t *testing.T) client.Client {
	t.Helper()
	kinds := append(model.BuiltIn(), widget, gadget)
	server := model.New(model.Options{Kinds: kinds, Now: time.Now})
	return model.NewClient(server.Transport, clientgoscheme.Scheme, kinds)
}

// seen is what a caller sees of an object.
func seen(object client.Object) string {
	replicas := ""
	if rs, ok := object.(*appsv1.ReplicaSet); ok {
		replicas = fmt.Sprintf(" replicas=%d/%d", *rs.Spec.Replicas, rs.Status.Replicas)
	}
	return fmt.Sprintf("%T %s %s labels=%v generation=%d finalizers=%v rv=%t uid=%t%s", object, object.GetObjectKind().GroupVersionKind(), object.GetName(),
		object.GetLabels(), object.GetGeneration(), object.GetFinalizers(), object.GetResourceVersion() != "", object.GetUID() != "", replicas)
}

// transcript uses a client in every way, and tells what came of it.
func transcript(t *testing.T, c client.Client, namespace string) (lines []string) {
	t.Helper()
	ctx := t.Context()
	note := func(what string, err error, objects ...client.Object) {
		line := fmt.Sprintf("%s: %s", what, apierrors.ReasonForError(err))
		for _, object := range objects {
			line += "; " + seen(object)
		}
		lines = append(lines, line)
	}
	rs := objectOf(model.BuiltIn()[2], fresh("ReplicaSet")).(*appsv1.ReplicaSet)
	rs.Name, rs.Namespace, rs.Labels = "web", namespace, map[string]string{"app": "web"}
	name := client.ObjectKeyFromObject(rs)

	note("get nothing", c.Get(ctx, name, &appsv1.ReplicaSet{}))
	dry := rs.DeepCopy()
	note("dry create", c.Create(ctx, dry, client.DryRunAll), dry)
	note("create", c.Create(ctx, rs), rs)
	note("create again", c.Create(ctx, rs.DeepCopy()))
	before := rs.DeepCopy()

	for _, into := range []client.Object{
		&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{"left.over/x"}}}, typed(&unstructured.Unstructured{}), typed(&metav1.PartialObjectMetadata{}),
	} {
		note("get", c.Get(ctx, name, into), into)
	}
	for _, list := range []client.ObjectList{&appsv1.ReplicaSetList{}, typedList(&unstructured.UnstructuredList{}), typedList(&metav1.PartialObjectMetadataList{})} {
		err := c.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{"app": "web"}, client.MatchingFields{"metadata.name": "web"})
		note(fmt.Sprintf("list %T %s rv=%t", list, list.GetObjectKind().GroupVersionKind(), list.GetResourceVersion() != ""), err, objectsOf(t, list)...)
		note("list none", c.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{"app": "db"}), objectsOf(t, list)...)
	}
	note("list by an unknown field", c.List(ctx, &appsv1.ReplicaSetList{}, client.InNamespace(namespace), client.MatchingFields{"spec.x": "y"}))

	rs.Spec.Replicas = new(int32(3))
	note("update", c.Update(ctx, rs), rs)
	before.Labels["stale"] = "yes"
	note("update what is old", c.Update(ctx, before.DeepCopy()))
	base := before.DeepCopy()
	before.Labels["stale"] = "very"
	note("patch what is old", c.Patch(ctx, before, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})))
	changed := rs.DeepCopy()
	changed.Labels["tier"] = "a"
	note("patch", c.Patch(ctx, changed, client.MergeFromWithOptions(rs, client.MergeFromWithOptimisticLock{})), changed)
	note("strategic patch", c.Patch(ctx, changed, client.RawPatch(types.StrategicMergePatchType, []byte(`{"metadata":{"labels":{"$patch":"replace","app":"web"}}}`))), changed)
	note("dry patch", c.Patch(ctx, changed, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":8}}`)), client.DryRunAll), changed)
	note("get", c.Get(ctx, name, rs), rs)
	partial := typed(&metav1.PartialObjectMetadata{})
	partial.SetName("web")
	partial.SetNamespace(namespace)
	note("patch metadata", c.Patch(ctx, partial, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"tier":"b"}}}`))), partial)

	note("get", c.Get(ctx, name, rs), rs)
	rs.Status.Replicas, rs.Spec.Replicas = 2, new(int32(9))
	note("update status", c.Status().Update(ctx, rs), rs)
	note("patch status", c.Status().Patch(ctx, rs, client.RawPatch(types.MergePatchType, []byte(`{"status":{"replicas":1},"spec":{"replicas":7}}`))), rs)
	note("refused status", c.Status().Patch(ctx, rs, client.RawPatch(types.MergePatchType, []byte(`{"status":{"replicas":-1}}`))))

	note("delete another", c.Delete(ctx, rs, client.Preconditions{UID: new(types.UID("other"))}))
	note("delete", c.Delete(ctx, rs, client.Preconditions{UID: &rs.UID, ResourceVersion: &rs.ResourceVersion}, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	note("delete again", c.Delete(ctx, rs))

	return append(lines, transcriptOfPods(ctx, c, namespace)...)
}

// transcriptOfPods does what only pods can, and a custom resource.
func transcriptOfPods(ctx context.Context, c client.Client, namespace string) (lines []string) {
	note := func(what string, err error, objects ...client.Object) {
		line := fmt.Sprintf("%s: %s", what, apierrors.ReasonForError(err))
		for _, object := range objects {
			line += "; " + seen(object)
		}
		lines = append(lines, line)
	}
	for _, name := range []string{"a", "b"} {
		pod := objectOf(podKind(), fresh("Pod")).(*corev1.Pod)
		pod.Name, pod.Namespace, pod.Labels = name, namespace, map[string]string{"app": "web"}
		note("create", c.Create(ctx, pod), pod)
		binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Target: corev1.ObjectReference{Kind: "Node", Name: "node-" + name}}
		// A client fills the binding from an answer that is none.
		note("bind", c.SubResource("binding").Create(ctx, pod, binding.DeepCopy()))
		note("bind again", c.SubResource("binding").Create(ctx, pod, binding))
	}
	var found corev1.PodList
	err := c.List(ctx, &found, client.InNamespace(namespace), client.MatchingFields{"spec.nodeName": "node-b"})
	for i := range found.Items {
		note("on the node", err, &found.Items[i])
	}
	note("delete all", c.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(namespace), client.MatchingLabels{"app": "web"}, client.GracePeriodSeconds(0)))
	err = c.List(ctx, &found, client.InNamespace(namespace))
	note(fmt.Sprint("pods left: ", len(found.Items)), err)

	custom := objectOf(widget, m{"metadata": m{"name": "w", "namespace": namespace}, "spec": m{"size": int64(1)}, "status": m{"seen": int64(1)}})
	note("create", c.Create(ctx, custom), custom)
	u := custom.(*unstructured.Unstructured)
	_ = unstructured.SetNestedField(u.Object, int64(2), "spec", "size")
	note("update", c.Update(ctx, u), u)
	_ = unstructured.SetNestedField(u.Object, int64(2), "status", "seen")
	note("status", c.Status().Update(ctx, u), u)
	note("strategic patch", c.Patch(ctx, u, client.RawPatch(types.StrategicMergePatchType, []byte(`{}`))))
	u.SetResourceVersion("")
	note("update without a version", c.Update(ctx, u))
	note("delete", c.Delete(ctx, u))
	return lines
}

func podKind() model.Kind {
	kinds := model.BuiltIn()
	return kinds[slices.IndexFunc(kinds, func(k model.Kind) bool { return k.Kind.Kind == "Pod" })]
}

// typed names the kind of an object that does not know its own.
func typed(object client.Object) client.Object {
	object.GetObjectKind().SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
	return object
}

func typedList(list client.ObjectList) client.ObjectList {
	list.GetObjectKind().SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ReplicaSetList"))
	return list
}

func objectsOf(t *testing.T, list client.ObjectList) (objects []client.Object) {
	t.Helper()
	switch l := list.(type) {
	case *appsv1.ReplicaSetList:
		for i := range l.Items {
			objects = append(objects, &l.Items[i])
		}
	case *unstructured.UnstructuredList:
		for i := range l.Items {
			objects = append(objects, &l.Items[i])
		}
	case *metav1.PartialObjectMetadataList:
		for i := range l.Items {
			objects = append(objects, &l.Items[i])
		}
	}
	return objects
}

// TestTheClientSharesNothing changes what a client was given.
func TestTheClientSharesNothing(t *testing.T) {
	ctx := t.Context()
	c := modelClient(t)
	pod := aPod("a")
	if err := c.Create(ctx, pod); err != nil {
		t.Fatal(err)
	}
	spoil := func(pod *corev1.Pod) { pod.Labels["app"], pod.Spec.Containers[0].Image = "spoilt", "spoilt" }
	spoil(pod)
	var got corev1.Pod
	for range 2 {
		if err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "a"}, &got); err != nil {
			t.Fatal(err)
		}
		if got.Labels["app"] != "web" || got.Spec.Containers[0].Image != "web:1" {
			t.Fatalf("got %v", got)
		}
		spoil(&got)
		var list corev1.PodList
		if err := c.List(ctx, &list); err != nil {
			t.Fatal(err)
		}
		spoil(&list.Items[0])
	}
}

// TestTheClientSaysWhatItCannotDo asks for it.
func TestTheClientSaysWhatItCannotDo(t *testing.T) {
	ctx := t.Context()
	c := modelClient(t)
	for name, err := range map[string]error{
		"apply":        c.Apply(ctx, client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{})),
		"apply patch":  c.Patch(ctx, aPod("a"), client.Apply), //nolint:staticcheck // callers may still use it
		"apply status": c.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{})),
		"kind":         c.Get(ctx, client.ObjectKey{Name: "x"}, &corev1.Secret{}),
	} {
		if !errors.Is(err, model.ErrNotServed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	lost := errors.New("lost on the way")
	broken := model.NewClient(func(context.Context, model.Request) (model.Response, error) { return model.Response{}, lost }, clientgoscheme.Scheme, model.BuiltIn())
	if err := broken.Create(ctx, aPod("a")); !errors.Is(err, lost) {
		t.Errorf("create: %v", err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := c.Create(ended, aPod("a")); !errors.Is(err, context.Canceled) {
		t.Errorf("create: %v", err)
	}
	if namespaced, err := c.IsObjectNamespaced(&corev1.Node{}); namespaced || err != nil {
		t.Errorf("nodes: %t, %v", namespaced, err)
	}
	if kind, err := c.GroupVersionKindFor(&corev1.Pod{}); kind.Kind != "Pod" || err != nil {
		t.Errorf("pods: %v, %v", kind, err)
	}
	if mapping, err := c.RESTMapper().RESTMapping(widget.Kind.GroupKind()); err != nil || mapping.Resource != widget.Resource {
		t.Errorf("widgets: %v, %v", mapping, err)
	}
	_ = c.Scheme()
}
