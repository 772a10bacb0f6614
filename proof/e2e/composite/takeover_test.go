package composite

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
)

// This file takes over what Metacontroller left, and looks at what it would find if it came back. Metacontroller itself
// cannot run here: what it writes is written down in metacontroller.md, part 1.

// left makes the objects that Metacontroller leaves for a parent: a pod for each name, made from an image, with the
// annotation and the owner reference, and a revision for each image that has pods.
func (l *lab) left(set *unstructured.Unstructured, images ...string) {
	l.Helper()
	in := request{Parent: set}
	byImage := map[string][]string{}
	for i, image := range images {
		past := set.DeepCopy()
		_ = unstructured.SetNestedSlice(past.Object, []any{m{"name": "main", "image": image}}, "spec", "template", "spec", "containers")
		in.Parent = past
		name := fmt.Sprintf("web-%d", i)
		pod := &unstructured.Unstructured{Object: l.pod(in, name)}
		applied, err := json.Marshal(pod.Object)
		if err != nil {
			l.Fatal(err)
		}
		pod.SetAnnotations(map[string]string{"metacontroller.k8s.io/last-applied-configuration": string(applied)})
		pod.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(set, setKind)})
		l.create(pod)
		byImage[image] = append(byImage[image], name)
	}
	for image, names := range byImage {
		l.create(l.metacontrollersRevision(set, image, names))
	}
	l.eventually("all pods ready", func() error {
		for name, pod := range l.podsOf(set) {
			if imageOf(pod) != broken && !ready(pod) {
				return fmt.Errorf("%s is not", name)
			}
		}
		return nil
	})
}

func (l *lab) metacontrollersRevision(set *unstructured.Unstructured, image string, names []string) *v1alpha1.ControllerRevision {
	template, _, _ := unstructured.NestedMap(set.Object, "spec", "template")
	_ = unstructured.SetNestedSlice(template, []any{m{"name": "main", "image": image}}, "spec", "containers")
	patch, err := json.Marshal(m{"spec": m{"template": template}})
	if err != nil {
		l.Fatal(err)
	}
	sum := sha1.Sum(append([]byte(set.GetUID()), patch...))
	labels, _, _ := unstructured.NestedStringMap(template, "metadata", "labels")
	labels["metacontroller.k8s.io/apiGroup"], labels["metacontroller.k8s.io/resource"] = setKind.Group, "sets"
	slices.Reverse(names) // Metacontroller has no order
	return &v1alpha1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: l.namespace, Name: "sets." + setKind.Group + "-" + hex.EncodeToString(sum[:]), Labels: labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, setKind)},
		},
		ParentPatch: runtime.RawExtension{Raw: patch},
		Children:    []v1alpha1.ControllerRevisionChildren{{Kind: "Pod", Names: names}},
	}
}

// versions are the parent's pods as name, UID and resource version.
func (l *lab) versions(set *unstructured.Unstructured) map[string]string {
	out := map[string]string{}
	for name, pod := range l.podsOf(set) {
		out[name] = string(pod.GetUID()) + "@" + pod.GetResourceVersion()
	}
	return out
}

func revisionNames(revisions []v1alpha1.ControllerRevision) string {
	out := make([]string, 0, len(revisions))
	for _, r := range revisions {
		out = append(out, r.Name)
	}
	return strings.Join(out, " ")
}

// TestTakenOver: at rest nothing is touched, and the same revision under the same name is gone on from.
func TestTakenOver(t *testing.T) {
	l := newLab(t)
	cc := l.install(l.controller())
	set := l.set(setKind, "web", 3, "app:1")
	l.create(set)
	l.left(set, "app:1", "app:1", "app:1")
	before, names := l.versions(set), revisionNames(l.revisions(set))
	l.cairn(cc)
	l.rolledOut(set)
	if after := l.versions(set); !maps.Equal(before, after) {
		t.Errorf("pods were written: %v, %v", before, after)
	}
	if got := revisionNames(l.revisions(set)); got != names {
		t.Errorf("revisions are %s, were %s", got, names)
	}
	l.image(set, "app:2")
	l.rolledOut(set)
	l.images(set, 3, "app:2")
}

// TestTakenOverMidway: those that are updated stay, the others follow within the budget.
func TestTakenOverMidway(t *testing.T) {
	l := newLab(t)
	cc := l.install(l.controller())
	set := l.set(setKind, "web", 4, "app:2")
	l.create(set)
	l.left(set, "app:1", "app:1", "app:2", "app:2")
	before := l.uids(set)
	least := l.least(set)
	l.cairn(cc)
	l.rolledOut(set)
	l.images(set, 4, "app:2")
	if after := l.uids(set); after["web-2"] != before["web-2"] || after["web-3"] != before["web-3"] {
		t.Errorf("what was updated was replaced: %v, %v", before, after)
	}
	if n := least(); n < 3 {
		t.Errorf("only %d of 4 were ready at a time", n)
	}
}

// TestTakenOverBackwards: the parent went back while nobody ran it.
func TestTakenOverBackwards(t *testing.T) {
	l := newLab(t)
	cc := l.install(l.controller())
	set := l.set(setKind, "web", 3, "app:1")
	l.create(set)
	l.left(set, "app:1", "app:1", broken)
	before := l.uids(set)
	l.cairn(cc)
	l.rolledOut(set)
	l.images(set, 3, "app:1")
	if after := l.uids(set); after["web-0"] != before["web-0"] || after["web-1"] != before["web-1"] {
		t.Errorf("what was asked for was replaced: %v, %v", before, after)
	}
}

// TestGivenBack: at rest, Metacontroller finds what it would have written itself, and nothing else that it acts on: the
// annotations are those of its own apply, and each child is in one revision, under the name and with the patch that it
// would compute.
func TestGivenBack(t *testing.T) {
	l := newLab(t)
	set, _ := l.running(3)
	l.image(set, "app:2")
	l.rolledOut(set)
	for name, pod := range l.podsOf(set) {
		want, err := json.Marshal(l.pod(request{Parent: set}, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := pod.GetAnnotations()["metacontroller.k8s.io/last-applied-configuration"]; got != string(want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		want1 := []metav1.OwnerReference{*metav1.NewControllerRef(set, setKind)}
		if got := pod.GetOwnerReferences(); fmt.Sprint(got[0].UID, *got[0].Controller, *got[0].BlockOwnerDeletion) !=
			fmt.Sprint(want1[0].UID, true, true) {
			t.Errorf("%s: %v", name, got)
		}
	}
	for i, image := range []string{"app:1", "app:2"} {
		got, want := l.revisions(set)[i], l.metacontrollersRevision(set, image, []string{"web-0", "web-1", "web-2"})
		if got.Name != want.Name || !maps.Equal(got.Labels, want.Labels) || !bytes.Equal(got.ParentPatch.Raw, want.ParentPatch.Raw) {
			t.Errorf("revision %d is %s %v %s,\nwant %s %v %s", i, got.Name, got.Labels, got.ParentPatch.Raw, want.Name, want.Labels, want.ParentPatch.Raw)
		}
	}
	claims := l.revisions(set)
	if len(claims[0].Children) != 0 || len(claims[1].Children) != 1 || len(claims[1].Children[0].Names) != 3 {
		t.Errorf("claims: %v, %v", claims[0].Children, claims[1].Children)
	}
}
