package ownership

// What is read from an informer's index without copies is what a list would show.

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var pods = schema.GroupResource{Resource: "pods"}

// consistencyOf is over the store of an informer that has synced or not, and keeps its index under the keys that key
// makes.
func consistencyOf(t *testing.T, synced bool, key func(namespace, value string) string, shown ...*corev1.Pod) *ConsistencyStore {
	t.Helper()
	indexer := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{indexName: func(o any) (keys []string, _ error) {
		for _, value := range IndexController(o.(client.Object)) {
			keys = append(keys, key(o.(client.Object).GetNamespace(), value), "__all_namespaces/"+value)
		}
		return keys, nil
	}})
	for _, o := range shown {
		if err := indexer.Add(o); err != nil {
			t.Fatal(err)
		}
	}
	store := &shared{Indexer: indexer, synced: func() bool { return synced }}
	store.indexed = store.hasIndex()
	return NewConsistencyStore(map[schema.GroupResource]Store{pods: store})
}

func podOf(namespace, name, app string, controller types.UID) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": app}}}
	if controller != "" {
		owner := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: string(controller), UID: controller}}
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))}
	}
	return pod
}

// forgedPod has a ControllerRef with the UID of a DaemonSet, and a kind that it is not of.
func forgedPod(name, app string, uid types.UID) *corev1.Pod {
	pod := podOf("ns", name, app, uid)
	pod.OwnerReferences[0].APIVersion = "other.dev/v1"
	return pod
}

func TestCandidatesOfAnIndex(t *testing.T) {
	shown := []*corev1.Pod{
		podOf("ns", "mine", "x", "us"), podOf("ns", "mine-stray", "y", "us"), podOf("ns", "theirs", "x", "them"),
		podOf("ns", "orphan", "x", ""), podOf("ns", "orphan-else", "y", ""), podOf("other", "far", "x", "us"), podOf("other", "far-orphan", "x", ""), forgedPod("forged", "x", "us"),
	}
	us := Owner{appsv1.SchemeGroupVersion.WithKind("DaemonSet").GroupKind(), "us"}
	x := labels.SelectorFromSet(labels.Set{"app": "x"})
	for _, c := range []struct {
		what      string
		synced    bool
		key       func(namespace, value string) string
		namespace string
		selector  labels.Selector
		ok        bool
		want      []string
	}{
		{"ours and the orphans that match", true, indexKey, "ns", x, true, []string{"mine", "mine-stray", "orphan"}},
		{"no orphans", true, indexKey, "ns", labels.Nothing(), true, []string{"mine", "mine-stray"}},
		{"not synced yet", false, indexKey, "ns", x, false, nil},
		{"all namespaces", true, indexKey, "", x, false, nil},
		{"keys that are not known here", true, func(ns, value string) string { return value + "@" + ns }, "ns", x, false, nil},
	} {
		t.Run(c.what, func(t *testing.T) {
			var got []string
			s := consistencyOf(t, c.synced, c.key, shown...)
			ok, err := s.Candidates(pods, c.namespace, us, c.selector, func(o client.Object) error {
				got = append(got, o.GetName())
				return nil
			})
			slices.Sort(got)
			if err != nil || ok != c.ok || !slices.Equal(got, c.want) {
				t.Errorf("got %v, %t, %v; want %v, %t", got, ok, err, c.want, c.ok)
			}
			one, ok := s.Object(pods, types.NamespacedName{Namespace: "ns", Name: "theirs"})
			none, _ := s.Object(pods, types.NamespacedName{Namespace: "other", Name: "theirs"})
			if ok != c.synced || (one != nil) != c.synced || none != nil {
				t.Errorf("one object is %v, %t; none is %v", one, ok, none)
			}
			if all, ok := s.Shown(pods); ok != c.synced || ok && len(all) != len(shown) {
				t.Errorf("%d of %d are shown, %t", len(all), len(shown), ok)
			}
		})
	}
	if ok, _ := consistencyOf(t, true, indexKey).Candidates(schema.GroupResource{Resource: "nodes"}, "ns", us, x, nil); ok {
		t.Error("a resource without a store has an index")
	}
}
