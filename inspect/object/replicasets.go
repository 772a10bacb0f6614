package object

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/dump"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history/metacontroller"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/revision"
)

// This file is the kinds whose revisions are ReplicaSets: Deployments, and whoever follows them. A ReplicaSet holds the
// pod template of its parent and a label with its hash, which its pods have as well, and its number is in an annotation
// of its parent's kind.

// ReplicaSetKind is the kind of the objects that hold the revisions of Deployments.
var ReplicaSetKind = appsv1.SchemeGroupVersion.WithKind("ReplicaSet")

// replicaSets is one of these kinds.
type replicaSets struct {
	client client.Client
	parent schema.GroupVersionKind
	// number is the annotation with the number of a revision.
	number string
	target *revision.Target
	filler filler
}

// newReplicaSets compares pod templates as Deployments' are: ReplicaSets are stored with the same defaults.
func newReplicaSets(c client.Client, parent schema.GroupVersionKind, number string) (Kind, error) {
	target, err := revision.FieldPaths(revision.Typed[appsv1.Deployment](), revision.Path{"spec", "template"})
	if err != nil {
		return nil, err
	}
	k := &replicaSets{client: c, parent: parent, number: number, target: target}
	if parent.Group != appsv1.GroupName {
		k.filler.client = c
	}
	return k, nil
}

// numberKey returns the annotation in which objects have the number of a revision, empty if none has one.
func numberKey(objects []metav1.PartialObjectMetadata) string {
	for i := range objects {
		for _, key := range slices.Sorted(maps.Keys(objects[i].Annotations)) {
			if _, err := strconv.ParseInt(objects[i].Annotations[key], 10, 64); err == nil && strings.HasSuffix(key, "/revision") {
				return key
			}
		}
	}
	return ""
}

func (k *replicaSets) Is() Identity {
	return Identity{
		GroupVersionKind: k.parent, Objects: ReplicaSetKind.GroupKind(), Child: "pod", Children: "pods", Part: "template", Target: k.target,
		Foreign: k.parent.Group != appsv1.GroupName, Copied: true,
	}
}

func (k *replicaSets) Blank() client.Object { return blankOf(k.parent)() }

func (k *replicaSets) Convert(parent client.Object) (client.Object, error) {
	if _, ok := parent.(*unstructured.Unstructured); ok {
		return parent, nil
	}
	return Fields(parent, k.parent) // objects of Go types need not say their kind
}

func (k *replicaSets) List(ctx context.Context, parent client.Object) ([]Stored, error) {
	var found unstructured.UnstructuredList
	found.SetGroupVersionKind(ReplicaSetKind.GroupVersion().WithKind("ReplicaSetList"))
	owner, err := narrowed(ctx, k.client, parent, &found)
	if err != nil {
		return nil, err
	}
	var out []Stored
	for n := range found.Items {
		if owner.Controls(&found.Items[n]) {
			out = append(out, k.read(parent, &found.Items[n]))
		}
	}
	slices.SortFunc(out, func(a, b Stored) int { return revision.CompareByNumber(a.Revision, b.Revision) })
	return out, nil
}

// read reads a ReplicaSet as a revision: its template without the labels that were added to what the parent asked for.
func (k *replicaSets) read(parent client.Object, set *unstructured.Unstructured) Stored {
	number, _ := strconv.ParseInt(set.GetAnnotations()[k.number], 10, 64) // 0 is none
	label, hash := hashOf(set)
	r := revision.Revision{
		Name: set.GetName(), UID: set.GetUID(), ResourceVersion: set.GetResourceVersion(), Number: number, Hash: hash,
		Deleting: set.GetDeletionTimestamp() != nil,
	}
	template, _, err := unstructured.NestedMap(set.Object, "spec", "template")
	if err == nil {
		unstructured.RemoveNestedField(template, "metadata", "labels", label)
		var data []byte
		if data, err = json.Marshal(map[string]any{"spec": map[string]any{"template": template}}); err == nil {
			r.Snapshot, err = k.target.Decode(data)
		}
	}
	if err != nil {
		r.Err = &revision.UndecodableError{Revision: set.GetName(), Err: err}
	}
	origin := func() (doubt, unverified string) {
		if r.Err != nil || k.named(parent, set) {
			return "", ""
		}
		return "", unproven(RevisionName(r.Number, r.Name))
	}
	return Stored{Revision: r, Object: set, Target: k.target, Origin: sync.OnceValues(origin)}
}

// named reports whether set is a ReplicaSet of a Deployment whose name follows from its template. Another name
// disproves nothing: the hash covers the fields of the API server's release, and other kinds have hashes of their own.
func (k *replicaSets) named(parent client.Object, set *unstructured.Unstructured) bool {
	if k.parent.Group != appsv1.GroupName {
		return false
	}
	var typed appsv1.ReplicaSet
	if runtime.DefaultUnstructuredConverter.FromUnstructured(set.Object, &typed) != nil {
		return false
	}
	template := &typed.Spec.Template
	delete(template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	collisions, _, _ := unstructured.NestedInt64(untyped(parent).Object, "status", "collisionCount")
	for n := range collisions + 1 {
		if set.GetName() == parent.GetName()+"-"+templateHash(template, int32(n)) {
			return true
		}
	}
	return false
}

// templateHash is the hash that the Deployment controller gives to a pod template after that many collisions.
func templateHash(template *corev1.PodTemplateSpec, collisions int32) string {
	hash := fnv.New32a()
	_, _ = io.WriteString(hash, dump.ForHash(*template))
	if collisions > 0 {
		_ = binary.Write(hash, binary.LittleEndian, int64(collisions))
	}
	return rand.SafeEncodeString(strconv.FormatUint(uint64(hash.Sum32()), 10))
}

// hashOf returns the label that makes the pods of a ReplicaSet its own: its value is the end of the name.
func hashOf(set *unstructured.Unstructured) (label, hash string) {
	selector, _, err := unstructured.NestedStringMap(set.Object, "spec", "selector", "matchLabels")
	if err != nil {
		return "", ""
	}
	for _, key := range slices.Sorted(maps.Keys(selector)) {
		if value := selector[key]; value != "" && strings.HasSuffix(set.GetName(), "-"+value) && strings.HasSuffix(key, "hash") {
			return key, value
		}
	}
	return "", ""
}

// Resolve compares with the template of the object that the parent refers to, if it has none of its own.
func (k *replicaSets) Resolve(ctx context.Context, parent client.Object, target *revision.Target, revisions []revision.Revision) (
	*revision.Resolution, []string, error,
) {
	of := untyped(parent)
	if ref := referred(of); ref != nil {
		at, err := ReadOwner(ctx, k.client, ref, parent.GetNamespace())
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("read %s, which has the template of %s: %w", at.Parent, ParentOf(k, parent), err)
		case at.Object == nil:
			return nil, nil, fmt.Errorf("%s, which has the template of %s, does not exist", at.Parent, ParentOf(k, parent))
		}
		template, _, err := unstructured.NestedMap(at.Object.Object, "spec", "template")
		if err != nil {
			return nil, nil, err
		}
		of = of.DeepCopy()
		if err := unstructured.SetNestedMap(of.Object, template, "spec", "template"); err != nil {
			return nil, nil, err
		}
	}
	return k.filler.resolve(ctx, of, target, revisions)
}

// Elsewhere returns the object that holds what is recorded of parent, nil if parent does: an Argo Rollout may refer to
// a Deployment and have no template.
func Elsewhere(k Kind, parent client.Object) *Parent {
	if _, ok := k.(*replicaSets); !ok {
		return nil
	}
	ref := referred(untyped(parent))
	if ref == nil {
		return nil
	}
	return &Parent{
		GroupVersionKind: schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), Namespace: parent.GetNamespace(), Name: ref.Name,
	}
}

// referred returns the reference to the object that has the template of parent, nil if parent has one.
func referred(parent *unstructured.Unstructured) *metav1.OwnerReference {
	if _, own, err := unstructured.NestedMap(parent.Object, "spec", "template"); err == nil && own {
		return nil
	}
	ref, found, err := unstructured.NestedStringMap(parent.Object, "spec", "workloadRef")
	if err != nil || !found {
		return nil
	}
	return &metav1.OwnerReference{APIVersion: ref["apiVersion"], Kind: ref["kind"], Name: ref["name"]}
}

func (k *replicaSets) Count(ctx context.Context, parent client.Object, log []Stored) ([]int, int, error) {
	var found metav1.PartialObjectMetadataList
	found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := k.client.List(ctx, &found, k.pods(parent)...); err != nil {
		return nil, 0, err
	}
	counts := make([]int, len(log))
	for n := range found.Items {
		if of := madeBy(&found.Items[n], log); of >= 0 {
			counts[of]++
		}
	}
	return counts, 0, nil
}

// pods are those that may belong to a ReplicaSet of parent: they have the labels of both.
func (k *replicaSets) pods(parent client.Object) []client.ListOption {
	out := []client.ListOption{client.InNamespace(parent.GetNamespace())}
	if by := selectorOf(parent); by != nil {
		out = append(out, by)
	}
	return out
}

// madeBy returns the index of the ReplicaSet that controls a pod, stray if none of log does.
func madeBy(pod client.Object, log []Stored) int {
	owner := ownership.ControllerOf(pod)
	return slices.IndexFunc(log, func(s Stored) bool {
		return owner == ownership.Owner{GroupKind: ReplicaSetKind.GroupKind(), UID: s.UID}
	})
}

func (k *replicaSets) Members(ctx context.Context, parent client.Object, log []Stored) (*Members, error) {
	var found unstructured.UnstructuredList
	found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := k.client.List(ctx, &found, k.pods(parent)...); err != nil {
		return nil, err
	}
	minReady, err := minReadyOf(parent)
	if err != nil {
		return nil, err
	}
	out := &Members{}
	ready := PodsReady(minReady)
	for n := range found.Items {
		pod := &found.Items[n]
		if of := madeBy(pod, log); of >= 0 {
			child := metacontroller.Child{GroupKind: schema.GroupKind{Kind: "Pod"}, Name: pod.GetName()}
			out.Children = append(out.Children, Member{Child: child, Object: pod, Of: of, Rolled: true, Ready: ready})
		}
	}
	if paused, _, err := unstructured.NestedBool(untyped(parent).Object, "spec", "paused"); err == nil && paused {
		out.Held = append(out.Held, fmt.Sprintf("%s is paused: every pod keeps its revision.", ParentOf(k, parent)))
	}
	return out, nil
}
