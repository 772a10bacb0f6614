package object

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
)

// This file says what objects and revisions are called.

// Parent names the object asked about.
type Parent struct {
	schema.GroupVersionKind

	Namespace, Name string
	UID             types.UID
}

// String returns the parent as kubectl prints it: daemonset.apps/web.
func (p Parent) String() string { return KindName(p.GroupKind()) + "/" + p.Name }

// KindName returns a kind as kubectl prints it: daemonset.apps.
func KindName(gk schema.GroupKind) string {
	if gk.Group == "" {
		return strings.ToLower(gk.Kind)
	}
	return strings.ToLower(gk.Kind) + "." + gk.Group
}

// ParentOf returns the name that parent has in sentences.
func ParentOf(k Kind, parent client.Object) Parent {
	return Parent{GroupVersionKind: k.Is().GroupVersionKind, Namespace: parent.GetNamespace(), Name: parent.GetName(), UID: parent.GetUID()}
}

// RevisionName names a revision in sentences: revision 3 (web-7c9d).
func RevisionName(number int64, name string) string {
	if number == 0 {
		return "the unnumbered revision " + name
	}
	return fmt.Sprintf("revision %d (%s)", number, name)
}

// Named returns an object with nothing but the name of o: an answer is decoded into it.
func Named(o client.Object, of Parent) client.Object {
	out := &metav1.PartialObjectMetadata{}
	gvk := of.GroupVersionKind
	if known := o.GetObjectKind().GroupVersionKind(); !known.Empty() {
		gvk = known
	}
	out.SetGroupVersionKind(gvk)
	out.SetNamespace(o.GetNamespace())
	out.SetName(o.GetName())
	return out
}

// RevisionKinds are the kinds of objects that hold revisions.
var RevisionKinds = []schema.GroupVersionKind{
	appsv1.SchemeGroupVersion.WithKind("ControllerRevision"), v1alpha1.SchemeGroupVersion.WithKind("ControllerRevision"),
}

// Fields returns a copy of an object as a tree.
func Fields(o client.Object, gvk schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", Parent{GroupVersionKind: gvk, Name: o.GetName()}, err)
	}
	out := (&unstructured.Unstructured{Object: fields}).DeepCopy() // of an unstructured object the fields are its own
	out.SetGroupVersionKind(gvk)
	return out, nil
}

// Capital returns a sentence that begins with a capital letter. It must not be empty.
func Capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
